"""Every fault of faults.toml makes a command fail, with a message that names the place.

Not part of `make test`, because it compiles, renders and runs much: see `make test-faults`.
"""

import re

import injection
import pytest

FAULTS = injection.faults()
TIMEOUT = pytest.mark.timeout(1800)  # The first one waits for the runs of others, too.


@TIMEOUT
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.area}: {fault.id}")
def test_fault(fault, outcomes):
    outcome = outcomes[fault.batch].result()
    noticed = outcome.status != 0 and re.search(fault.message, outcome.output, re.M)
    if fault.test:
        noticed = noticed and f"FAILED {fault.test}" in outcome.output
    injection.noticed.append((fault, bool(noticed), outcome.seconds))
    if fault.survives:
        assert not noticed, "it is noticed by now: remove `survives` from its row"
    else:
        assert noticed, f"exit status {outcome.status}\n{outcome.output}"


@TIMEOUT
def test_without_faults_the_tests_pass(outcomes):
    if "healthy" in outcomes:
        outcome = outcomes["healthy"].result()
        assert outcome.status == 0, outcome.output
