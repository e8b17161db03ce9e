"""Numbers that pages, drawings and downloads print, and that no message has."""

import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from sphinxext.pages.counts import filled_in
from tools.pages.counts import checks
from tools.project.paths import SUITE

CONFIGURATION = """
extensions = ["myst_parser", "sphinxext.pages.counts", "sphinxext.pages.diagrams"]
counts = {"checks": 1193}
"""
PAGES = {
    "index.rst": "Title\n=====\n\nIt has :count:`checks` checks.\n\n.. diagram:: d\n",
    "page.md": "---\norphan: true\n---\n# Page\n\nIt has {count}`checks` checks.\n",
    "_diagrams/d.svg": '<svg><text>{{ _("{} checks").format(count("checks")) }}</text></svg>',
}
ROLES = {"index": ":count:`checks`", "page": "{count}`checks`"}


@pytest.fixture
def numbers(documents):
    documents.configure(CONFIGURATION)
    for name, text in PAGES.items():
        documents.write(name, text)
    return documents


def test_pages_and_drawings_print_a_number_and_messages_do_not(numbers):
    page = numbers.page()
    assert "It has 1,193 checks." in page and "<text>1,193 checks</text>" in page
    assert "It has 1,193 checks." in (numbers.root / "out/page.html").read_text()
    numbers.build("gettext")
    for name, role in ROLES.items():
        template = (numbers.root / f"out/{name}.pot").read_text()
        assert "1,193" not in template and f"It has {role} checks." in template


def test_a_translation_prints_it_too(numbers):
    for name, role in ROLES.items():
        numbers.write_catalog(name, {f"It has {role} checks.": f"검사 수: {role}."})
    numbers.page(language="ko")
    for name in ROLES:
        assert "검사 수: 1,193." in (numbers.root / f"out/{name}.html").read_text()


@pytest.mark.parametrize("name, text", [("index.rst", ":count:`x`"), ("page.md", "{count}`x`")])
def test_an_unknown_name_is_an_error_at_its_place(numbers, name, text):
    numbers.write(name, PAGES[name] + f"\n{text}\n")
    status, output = numbers.build()
    assert status == 1
    assert re.search(rf"{name}:\d+: .*counts has no name 'x', only \['checks'\]", output), output


def test_a_downloaded_script_has_numbers():
    config = SimpleNamespace(counts={"checks": 1193, "lines": 5})
    text = "It has :count:`checks` checks, :doc:`x`,\n:count:`lines` lines."
    assert filled_in(config, text) == "It has 1,193 checks, :doc:`x`,\n5 lines."


def test_checks_are_counted_without_pytorch():
    command = [sys.executable, "-m", "c10d_conformance", "--list"]
    listed = subprocess.run(command, cwd=SUITE, capture_output=True, text=True, check=True).stdout
    assert checks() == len(re.findall(r"^\w+\.\w+ ", listed, re.M)) > 100
