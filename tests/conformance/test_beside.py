"""Checks that run beside others, with answers in place of ranks and of the servers."""

import pytest
from c10d_conformance import beside, registry
from c10d_conformance.beside import AHEAD, FEWEST, Beside
from c10d_conformance.settings import Settings

CHECKS = [(check, 2) for check in registry.load()]
BESIDE = {check.id for check, _ in CHECKS if check.waits or check.examples}


class Place:
    """A pool, or a server that answers at once or only when it must."""

    def __init__(self, fast=False):
        self.fast, self.ran, self.answered, self.most = fast, [], 0, 0

    def timed(self, check, size):
        self.ran.append(check.id)
        return check.id

    def ask(self, name, size):
        self.ran.append(name)
        self.most = max(self.most, len(self.ran) - self.answered)

    def has_answered(self):
        return self.fast and self.answered < len(self.ran)

    def answer(self):
        self.answered += 1
        return self.ran[self.answered - 1]


@pytest.fixture
def run(monkeypatch):
    """Run checks, and return what the pool and each server have run."""

    def run(checks, fast, device="cpu"):
        pool, servers = Place(), []
        monkeypatch.setattr(beside, "Server", lambda _: servers.append(Place(fast)) or servers[-1])
        ranks = Beside(pool, Settings("gloo", device=device))
        ranks.plan(checks)
        assert [ranks.timed(*check) for check in checks] == [check.id for check, _ in checks]
        assert all(x.answered == len(x.ran) and x.most <= AHEAD for x in servers)
        return pool.ran, [server.ran for server in servers]

    return run


@pytest.mark.parametrize("fast", [True, False])
def test_each_check_runs_once_and_those_that_do_not_wait_in_the_pool(run, fast):
    pool, servers = run(CHECKS, fast)
    beside = [name for server in servers for name in server]
    assert sorted(pool + beside) == sorted(check.id for check, _ in CHECKS)
    assert len(servers) == 2 and all(servers) and {*beside} <= BESIDE
    assert [check.id for check, _ in CHECKS if check.id in pool] == pool


def test_fast_servers_run_all_that_wait(run):
    last = sorted(CHECKS, key=lambda check: check[0].id in BESIDE)  # so the servers have time
    pool, servers = run(last, fast=True)
    assert {name for server in servers for name in server} == BESIDE and not BESIDE & {*pool}


def test_few_checks_and_those_of_a_device_run_alone(run):
    few = [(check, size) for check, size in CHECKS if check.waits][: FEWEST - 1]
    assert run(few, fast=True)[1] == [] == run(CHECKS, fast=True, device="sim")[1]
