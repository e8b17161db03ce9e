"""The HTML of every page is valid."""

import json
from pathlib import Path

from tools.project.paths import SITE

RULES = Path(__file__).with_name("html-validate.mjs")
SCRIPT = "html-validate/bin/html-validate.mjs"


def findings(run_node, folder, report):
    # Into a file: the program cuts off long output to a pipe.
    options = ["--config", RULES, "--formatter", f"json={report}"]
    done = run_node(SCRIPT, *options, f"{folder}/**/*.html")
    assert report.is_file(), done.stderr
    return [
        f"{page['filePath']}:{x['line']}: {x['ruleId']}: {x['message']}"
        for page in json.loads(report.read_text())
        for x in page["messages"]
    ]


def test_pages_are_valid(run_node, tmp_path):
    found = findings(run_node, SITE, tmp_path / "report.json")
    assert not found, "\n".join(found)


def test_a_fault_would_be_found(run_node, tmp_path):
    page = (SITE / "en" / "index.html").read_text()
    (tmp_path / "index.html").write_text(page.replace("</h1>", "</h2>", 1))
    assert any("close-order" in x for x in findings(run_node, tmp_path, tmp_path / "report.json"))
