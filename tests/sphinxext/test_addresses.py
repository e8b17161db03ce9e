"""The addresses of pages: in the switcher, in anchors and in the sitemap."""

import json
from xml.etree import ElementTree

import pytest
from sphinx.util.inventory import InventoryFile

from sphinxext.addresses.language_switcher import locale_of

CONFIGURATION = """
extensions = [
    "sphinxext.addresses.language_switcher",
    "sphinxext.addresses.section_labels",
    "sphinxext.addresses.sitemap",
    "sphinxext.addresses.stable_anchors",
]
html_baseurl = "https://example.org/docs/"
"""
BASE = "https://example.org/docs/"


@pytest.fixture
def site(documents):
    documents.configure(CONFIGURATION)
    documents.write("index.rst", "Title\n=====\n\n.. toctree::\n\n   guide/start\n")
    documents.write("guide/start.rst", "The start\n=========\n\nFirst step\n----------\n")
    documents.write(
        "templates/page.html",
        "{{ {'own': pageurl, 'default': default_address, 'others': languages"
        "|map(attribute='address')|list, 'locales': languages|map(attribute='locale')"
        "|list}|tojson }}",
    )
    return documents


def test_templates_receive_absolute_addresses(site):
    page = json.loads(site.page("guide/start", language="ko"))
    assert page == {
        "own": f"{BASE}ko/guide/start.html",
        "default": f"{BASE}en/guide/start.html",
        "others": [f"{BASE}en/guide/start.html", f"{BASE}ko/guide/start.html"],
        "locales": ["en_US", "ko_KR"],
    }


def test_the_default_of_the_first_page_is_the_start_page(site):
    assert json.loads(site.page())["default"] == BASE


@pytest.mark.parametrize(
    "language, locale",
    [("zh_CN", "zh_CN"), ("ja", "ja_JP"), ("pt_BR", "pt_BR"), ("sr@latin", "sr_RS")],
)
def test_locales(language, locale):
    assert locale_of(language) == locale


def test_the_sitemap_lists_the_pages_in_all_languages(site):
    site.page(language="ko")
    first, second = ElementTree.parse(site.root / "out/sitemap.xml").getroot()
    assert [x.text for x in (first[0], second[0])] == [
        f"{BASE}ko/guide/start.html",
        f"{BASE}ko/index.html",
    ]
    assert {x.get("hreflang"): x.get("href") for x in second[1:]} == {
        "en": f"{BASE}en/index.html",
        "ko": f"{BASE}ko/index.html",
        "x-default": BASE,
    }


def test_sections_can_be_referred_to_by_anchor(site):
    site.write(
        "index.rst",
        "Title\n=====\n\n:ref:`guide/start#first-step`\n\n.. toctree::\n\n   guide/start\n",
    )
    site.write("templates/page.html", "{{ body }}")
    site.write_catalog("guide/start", {"First step": "첫 단계"})
    assert '<a class="reference internal" href="guide/start.html#first-step">' in site.page(
        language="ko"
    )
    with open(site.root / "out/objects.inv", "rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, uri: uri)
    item = inventory["std:label"]["guide/start#first-step"]
    assert (item.uri, item.display_name) == ("guide/start.html#first-step", "첫 단계")
