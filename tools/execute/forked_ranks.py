"""Run torchrun, with ranks that come from the fork server (tools/processes/fork_server.py).

usage: python -m tools.execute.forked_ranks, with the arguments of torchrun

torchrun does the rest: rendezvous, environment, logs, and watching the ranks.
"""

from torch.distributed import run
from torch.distributed.elastic.multiprocessing.subprocess_handler import (
    subprocess_handler,
)

from ..processes import fork_server


def popen(args, *, stdout, stderr, env, start_new_session):
    return fork_server.popen(args, stdout=stdout, stderr=stderr, env=env)


if __name__ == "__main__":
    # torchrun has no parameter for it.
    setattr(subprocess_handler, "Popen", popen)  # noqa: B010
    run.main()
