"""A project to download has translated comments, the same code, and addresses of the language."""

import zipfile

import pytest

CONF = """\
from sphinxext.code.project_downloads import Project
extensions = ["myst_parser", "sphinxext.code.project_downloads"]
project_downloads = {"acme-net": Project(
    sources={"acme.py": "# Acme begins at SITE/acme.html.\\nacme = '''# Acme'''\\n"},
    templates={"README.md": "readme.html"},
    copies={"copied/SITE.txt": b"The SITE/ stays."},
    address="SITE/",
    values={"version": "1.2"},
)}
"""
KO = {
    "Acme begins at SITE/acme.html.": "Acme는 SITE/acme.html에 있습니다.",
    "Of Acme": "Acme에 대해",
}


@pytest.fixture
def project(documents):
    documents.configure(CONF)
    documents.write("index.md", "# A title\n\nTake [the project](acme-net.zip).\n")
    documents.write("folder/page.md", "---\norphan: true\n---\n# Page\n\n[It](acme-net.zip).\n")
    documents.write("other.rst", ":orphan:\n\nOther\n=====\n\n:doc:`It <acme-net.zip>`\n")
    documents.write("templates/readme.html", '{{ _("Of Acme") }} {{ version }}: SITE/')
    documents.write_catalog("sphinx", KO)
    return documents


def unzipped(project):
    with zipfile.ZipFile(project.root / "out/_downloads/acme-net.zip") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_in_english(project):
    page = project.page()
    assert 'href="_downloads/acme-net.zip"' in page and "the project" in page
    assert 'href="../_downloads/acme-net.zip"' in project.page("folder/page")
    assert 'href="_downloads/acme-net.zip"' in project.page("other")
    assert unzipped(project) == {
        "acme-net/README.md": "Of Acme 1.2: https://example.org/en/\n",
        "acme-net/acme.py": "# Acme begins at https://example.org/en/acme.html.\n"
        "acme = '''# Acme'''\n",
        "acme-net/copied/SITE.txt": "The SITE/ stays.",
    }


def test_translated_and_made_again_with_the_same_bytes(project):
    project.page(language="ko")
    files = unzipped(project)
    assert files["acme-net/README.md"] == "Acme에 대해 1.2: https://example.org/ko/\n"
    comment = "# Acme는 https://example.org/ko/acme.html에 있습니다.\n"
    assert files["acme-net/acme.py"] == comment + "acme = '''# Acme'''\n"
    path = project.root / "out/_downloads/acme-net.zip"
    first = path.read_bytes()
    project.page(language="ko", fresh=False)
    assert path.read_bytes() == first
    project.write_catalog("sphinx", KO | {"Of Acme": "Acme 설명"})
    project.page(language="ko", fresh=False)
    assert unzipped(project)["acme-net/README.md"].startswith("Acme 설명 1.2:")


def test_another_zip_file_is_not_found(project):
    project.write("index.md", "# A title\n\nTake [the project](acme.zip).\n")
    status, output = project.build()
    assert status == 1 and "'acme.zip'" in output
