"""The HTML of pages is valid."""

import json
from pathlib import Path

from looked_at import EACH_NIGHT_ALL, pages

from tools.project.languages import LANGUAGES
from tools.project.paths import SITE

RULES = Path(__file__).with_name("html-validate.mjs")
SCRIPT = "html-validate/bin/html-validate.mjs"


@EACH_NIGHT_ALL
def test_pages_are_valid(run_node, tmp_path, which):
    """A page with a fault beside them shows that a fault would be seen."""
    broken, report = tmp_path / "broken.html", tmp_path / "report.json"
    broken.write_text((SITE / "en/index.html").read_text().replace("</h1>", "</h2>", 1))
    # Into a file: the program cuts off long output to a pipe.
    options = ["--config", RULES, "--formatter", f"json={report}"]
    files = [SITE / x.url / name for x in LANGUAGES for name in pages(which, x)]
    files = [*SITE.glob("*.html"), *files]
    done = run_node(SCRIPT, *options, *files, broken, timeout=600)
    assert report.is_file(), done.stderr
    findings = {
        page["filePath"]: [f"{x['line']}: {x['ruleId']}: {x['message']}" for x in page["messages"]]
        for page in json.loads(report.read_text())
        if page["messages"]
    }
    assert any("close-order" in x for x in findings.pop(str(broken)))
    assert findings == {}
