"""A project to download has translated comments, the same code, and other names."""

import zipfile

import pytest

CONF = """\
extensions = ["myst_parser", "sphinxext.code.project_downloads"]
exclude_patterns = ["out"]
locale_dirs = ["locales"]
templates_path = ["templates"]
project_downloads = {"acme-net": {
    "files": {"old.py": "# Old begins at SITE/old.html.\\nold = '''# Old'''\\n", "old.txt": "old"},
    "templates": {"README.md": "readme.html"},
    "names": {"old": "acme", "Old": "Acme"},
    "address": "SITE/",
    "texts": {"copied/old.txt": "The old text."},
}}
project_downloads_addresses = {"ko": "https://example.org/ko/"}
"""
KO = {
    "Old begins at SITE/old.html.": "Old는 SITE/old.html에 있습니다.",
    "Of Old": "Old에 대해",
}


@pytest.fixture
def project(documents):
    documents.write("conf.py", CONF)
    documents.write("index.md", "# A title\n\nTake [the project](acme-net.zip).\n")
    documents.write("folder/page.md", "---\norphan: true\n---\n# Page\n\n[It](acme-net.zip).\n")
    documents.write("templates/readme.html", '{{ _("Of Old") }}: old')
    documents.translate("sphinx", KO)
    return documents


def unzipped(project):
    with zipfile.ZipFile(project.root / "out/_downloads/acme-net.zip") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_pages_link_to_it(project):
    page = project.page()
    assert 'href="_downloads/acme-net.zip"' in page and "the project" in page
    assert 'href="../_downloads/acme-net.zip"' in project.page("folder/page")


def test_in_english(project):
    project.page()
    assert unzipped(project) == {
        "acme-net/README.md": "Of Acme: acme\n",
        "acme-net/acme.py": "# Acme begins at acme.html.\nacme = '''# Acme'''\n",
        "acme-net/acme.txt": "acme",
        "acme-net/copied/old.txt": "The old text.",
    }


def test_translated(project):
    project.page(language="ko")
    files = unzipped(project)
    assert files["acme-net/README.md"] == "Acme에 대해: acme\n"
    comment = "# Acme는 https://example.org/ko/acme.html에 있습니다.\n"
    assert files["acme-net/acme.py"] == comment + "acme = '''# Acme'''\n"


def test_it_is_made_again_without_a_page_and_with_the_same_bytes(project):
    project.page(language="ko")
    path = project.root / "out/_downloads/acme-net.zip"
    first = path.read_bytes()
    project.page(language="ko", fresh=False)
    assert path.read_bytes() == first
    project.translate("sphinx", KO | {"Of Old": "Old 설명"})
    project.page(language="ko", fresh=False)
    assert unzipped(project)["acme-net/README.md"] == "Acme 설명: acme\n"


def test_another_zip_file_is_not_found(project):
    project.write("index.md", "# A title\n\nTake [the project](acme.zip).\n")
    status, output = project.build()
    assert status == 1 and "'acme.zip'" in output
