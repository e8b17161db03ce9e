"""Readers see what was not executed, and find the run behind everything else."""

import json
from collections import Counter

import pytest
from bs4 import BeautifulSoup

from tools.project.paths import SITE

MARK = 'class="not-executed"'


@pytest.fixture(scope="module")
def listings():
    return json.loads((SITE / "provenance.json").read_text())["listings"]


def test_what_was_not_executed_is_marked(language, listings):
    folder = SITE / language.url
    pages = {x.relative_to(folder).as_posix(): x.read_text() for x in folder.rglob("*.html")}
    parsed = {
        name: BeautifulSoup(page, "html.parser").select("div.not-executed")
        for name, page in pages.items()
        if MARK in page
    }
    expected = Counter(f"{x['page']}.html" for x in listings if x["not_executed"])
    marked = {name: sum(len(x.select("div.highlight")) for x in parsed[name]) for name in parsed}
    assert marked == expected
    if language.gettext != "en" and language.complete:
        reasons = [x.select_one("p:not(.label)").get_text() for y in parsed.values() for x in y]
        assert not [x for x in reasons if x.isascii()]


def test_the_foot_of_a_page_leads_to_the_run_of_each_listing(language, listings):
    path = SITE / language.url / "tutorial/basics.html"
    [link] = BeautifulSoup(path.read_text(), "html.parser").select(".verified-with > a")
    assert (path.parent / link["href"]).resolve() == (SITE / "provenance.json").resolve()
    assert len(listings) > 200 and all(x["runs"] for x in listings if not x["not_executed"])
