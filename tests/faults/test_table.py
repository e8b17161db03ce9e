"""Each row of faults.toml fits the present project; `make test-faults` injects them."""

import injection
import pytest

from tools.project.paths import ROOT

FAULTS = injection.faults()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.area}: {fault.id}")
def test_a_fault_has_a_place(fault):
    fault.require_place(ROOT)


def test_the_table_is_as_large_as_it_should_be():
    assert len({fault.id for fault in FAULTS}) == len(FAULTS) >= 60
    areas = {fault.area for fault in FAULTS}
    assert areas == {"C++", "Python", "docs", "catalog", "configuration", "environment"}
