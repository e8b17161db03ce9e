"""Each defect of the backend "defective" is noticed by the checks that its table names."""

import functools
import os

import defective
import pytest
from c10d_conformance import registry
from c10d_conformance.pool import Pool
from c10d_conformance.settings import Settings
from c10d_conformance.verdicts import FAILURES

pytestmark = pytest.mark.slow

CHECKS = {check.id: check for check in registry.load()}


def outcomes(check, size, defect="", backend="defective", limit=6.0):
    """Return the outcomes of one check, by the name of the case."""
    module = "defective" if backend == "defective" else None
    settings = Settings(backend, module=module, limit=limit, checks=list(CHECKS.values()))
    os.environ["C10D_DEFECT"] = defect
    pool = Pool(settings)
    try:
        return {outcome.name: outcome for outcome in pool.run(CHECKS[check], size)}
    finally:
        pool.close()
        os.environ.pop("C10D_DEFECT")


@functools.cache
def failing_without_a_defect(check, size):
    """Return the cases of a check that fail with gloo itself."""
    cases = outcomes(check, size)
    return {name for name, outcome in cases.items() if outcome.verdict in FAILURES}


def size_of(check, size):
    """Return the number of ranks of a check: its own, or that of the defect."""
    return CHECKS[check].ranks[0] if CHECKS[check].ranks else size


@pytest.mark.parametrize("name", defective.DEFECTS)
def test_a_defect_is_noticed(name):
    defect = defective.DEFECTS[name]
    for check in defect.checks:
        size = size_of(check, defect.size)
        # No case without a hang comes near the limit, and a case that hangs should end soon.
        limit = 6.0 if check.startswith("failure") else 4.0
        cases = outcomes(check, size, name, limit=limit)
        expected = failing_without_a_defect(check, size)
        failing = [
            outcome
            for outcome in cases.values()
            if outcome.verdict in FAILURES and outcome.name not in expected
        ]
        verdicts = {name: outcome.verdict for name, outcome in cases.items()}
        assert failing, f"{check} does not notice it: {verdicts}"
        assert all(outcome.text or outcome.statuses for outcome in failing)


def test_every_defect_names_checks_of_the_suite():
    for defect in defective.DEFECTS.values():
        assert defect.checks and all(check in CHECKS for check in defect.checks)


def test_without_defects_the_verdicts_are_those_of_gloo():
    """Compare every check that some defect is for; the name of the backend is another one."""
    runs = {
        (check, size_of(check, defect.size))
        for defect in defective.DEFECTS.values()
        for check in defect.checks
    }
    for check, size in sorted(runs):
        if check in ("lifecycle.names", "lifecycle.entry_point") or "bound_device" in check:
            continue  # PyTorch binds no device to a group whose class is one of Python.
        verdicts, expected = (
            {name: outcome.verdict for name, outcome in outcomes(check, size, **options).items()}
            for options in ({}, {"backend": "gloo"})
        )
        assert verdicts == expected, check
