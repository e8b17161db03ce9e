"""Run a function in several ranks of a group of `store`."""

from functools import partial

import store_collectives
from ranks import run_by_server, start_by_server


def start(seconds=300, can_block=True, options=None):
    """Make the default group, with a timeout of `seconds`."""
    options = options or store_collectives.Options()
    options.can_block = can_block
    start_by_server("store", options, seconds)


run = partial(run_by_server, start)
