"""Each defect of the backend "defective" is noticed by the checks that its table names."""

import functools
import os

import defective
import pytest
from c10d_conformance import registry
from c10d_conformance.cli import Settings
from c10d_conformance.pool import Pool
from c10d_conformance.verdicts import FAILURES

pytestmark = pytest.mark.slow

CHECKS = {check.id: check for check in registry.load()}
# What the suite cannot notice, with the reason.
SURVIVORS = {}


def outcomes(defect, check, size, limit=6.0):
    """Return the outcomes of one check with one defect, by the name of the case."""
    settings = Settings("defective", module="defective", limit=limit, checks=list(CHECKS.values()))
    os.environ["C10D_DEFECT"] = defect
    pool = Pool(settings)
    try:
        return {x.name: x for x in pool.run(CHECKS[check], size)}
    finally:
        pool.close()
        os.environ.pop("C10D_DEFECT")


@functools.cache
def healthy(check, size):
    """Return the cases of a check that fail without any defect: those of gloo."""
    return {name for name, x in outcomes("", check, size).items() if x.verdict in FAILURES}


def limit_of(check):
    """Return a limit that a check without a hang never reaches, short for those that hang."""
    return 6.0 if check.startswith("failure") else 4.0


@pytest.mark.parametrize("name", defective.DEFECTS)
def test_a_defect_is_noticed(name):
    _, checks, size = defective.DEFECTS[name]
    if name in SURVIVORS:
        pytest.skip(SURVIVORS[name])
    for check in checks:
        found = outcomes(
            name, check, CHECKS[check].ranks[0] if CHECKS[check].ranks else size, limit_of(check)
        )
        known = healthy(check, CHECKS[check].ranks[0] if CHECKS[check].ranks else size)
        failing = [x for x in found.values() if x.verdict in FAILURES and x.name not in known]
        assert failing, f"{check} does not notice it: " + str(
            {x.name: x.verdict for x in found.values()}
        )
        assert all(x.text or x.statuses for x in failing)


def test_every_defect_names_known_checks():
    for _, checks, _ in defective.DEFECTS.values():
        assert checks and all(check in CHECKS for check in checks)


def test_without_defects_the_verdicts_are_those_of_gloo():
    """Compare every check that some defect is for; the name of the backend is another one."""
    names = {(check, size) for _, checks, size in defective.DEFECTS.values() for check in checks}
    for check, size in sorted(names):
        if check in ("lifecycle.names", "lifecycle.entry_point") or "bound_device" in check:
            continue  # PyTorch binds no device to a group whose class is one of Python.
        size = CHECKS[check].ranks[0] if CHECKS[check].ranks else size
        settings = Settings("gloo", limit=6.0, checks=list(CHECKS.values()))
        pool = Pool(settings)
        try:
            gloo = {x.name: x.verdict for x in pool.run(CHECKS[check], size)}
        finally:
            pool.close()
        mine = {name: x.verdict for name, x in outcomes("", check, size).items()}
        assert mine == gloo, check
