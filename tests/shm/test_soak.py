"""Random operations in random groups, in most of which a rank is lost: see soak.py."""

import os
import random
import time
from collections import Counter

import pytest
import soak

MINUTES = float(os.environ.get("SOAK_MINUTES", 10))
SEED = os.environ.get("SOAK_SEED")


def test_a_short_episode():
    assert soak.episode(7).loss == "SIGKILL"


@pytest.mark.soak
@pytest.mark.timeout(60 * MINUTES + 2 * soak.LIMIT)
def test_many_episodes():
    if SEED:
        soak.episode(int(SEED))
        return
    started, losses = time.monotonic(), Counter()
    while time.monotonic() < started + 60 * MINUTES:
        losses[soak.episode(random.randrange(10**9)).loss or "nobody"] += 1
    print("\nepisodes, by what a rank was lost to:", dict(losses))
