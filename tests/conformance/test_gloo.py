"""gloo itself: the checks that it fails, by release of PyTorch, and no others."""

import pytest
import torch
from c10d_conformance import registry
from c10d_conformance.cli import Settings
from c10d_conformance.pool import Pool
from c10d_conformance.verdicts import FAILURES

pytestmark = pytest.mark.slow

# Non-contiguous tensors: values are wrong without an error (pytorch#192920).
_LAYOUTS = {
    f"values.{name}_layouts"
    for name in ("all_reduce", "broadcast", "reduce", "scatter", "reduce_scatter")
}
_KNOWN = _LAYOUTS | {
    # The sum of two true values is the byte 2, which is no valid bool.
    "values.all_reduce_types",
    "values.reduce_types",
    "values.reduce_scatter_types",
    # is_completed() of a reduce_scatter stays False, also after wait().
    "values.reduce_scatter_sizes",
    "values.reduce_scatter_single_sizes",
    "works.completed_after_wait",
    # The receivers' tensors stay as they are.
    "values.lazy_negation",
    # A message of another size than expected ends the process.
    "failure.other_size",
    # A pending operation waits for its timeout.
    "failure.abort",
}
FAILING = {"2.15": _KNOWN}


def test_gloo_fails_what_is_known_and_nothing_else():
    release = ".".join(torch.__version__.split(".")[:2])
    if release not in FAILING:
        pytest.skip(f"nobody has noted what gloo of PyTorch {release} fails")
    checks = registry.load()
    pool = Pool(Settings("gloo", ranks=(2,), checks=checks))
    failing = {}
    try:
        for check in checks:
            size = check.ranks[0] if check.ranks else 2
            if size >= check.minimum:
                bad = [x for x in pool.run(check, size) if x.verdict in FAILURES]
                if bad:
                    failing[check.id] = f"{bad[0].name}: {bad[0].verdict}: {bad[0].text}"
                    failing[check.id] += "".join(f"\n{x.trace}" for x in bad[0].statuses)
    finally:
        pool.close()
    new = failing.keys() - FAILING[release]
    assert not new, "\n".join(f"{check}: {failing[check]}" for check in new)
    assert failing.keys() == FAILING[release], "some of these are right now"
