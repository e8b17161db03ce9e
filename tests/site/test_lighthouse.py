"""The scores of Lighthouse on a simulated phone with a slow connection."""

import json
import statistics

import pytest

pytestmark = pytest.mark.audit

FLAGS = "--headless=new --no-sandbox --disable-background-networking --disable-sync"
OPTIONS = ["--output=json", "--quiet", "--no-enable-error-reporting"]
LEAST_PERFORMANCE = 95


def measure(run_node, address):
    """Return all scores, in percent, and the audits that are not passed."""
    script = "lighthouse/cli/index.js"
    done = run_node(script, address, *OPTIONS, f"--chrome-flags={FLAGS}")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert "runtimeError" not in report, report["runtimeError"]
    scores = {x: round(100 * y["score"]) for x, y in report["categories"].items()}
    failed = [x for x, y in report["audits"].items() if y["score"] not in (None, 1)]
    return scores, failed


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "name",
    [
        "en/index.html",
        "ko/tutorial/step-1-subclass-backend.html",
        "zh-cn/operations/collectives.html",
    ],
)
def test_scores(run_node, address, name):
    scores, failed = measure(run_node, f"{address}/{name}")
    for category in ("accessibility", "best-practices", "seo"):
        assert scores[category] == 100, f"{category}: {failed}"
    # A busy machine is slow now and then: the median of three tries counts.
    performance = [scores["performance"]]
    while performance[0] < LEAST_PERFORMANCE and len(performance) < 3:
        performance.append(measure(run_node, f"{address}/{name}")[0]["performance"])
    assert statistics.median(performance) >= LEAST_PERFORMANCE, (performance, failed)
