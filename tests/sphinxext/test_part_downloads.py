"""The zip file of a part: two samples that share a file."""

import zipfile

import pytest

CONF = """\
from sphinxext.code.sample_downloads import ZipFile

extensions = ["sphinxext.translation.translatable_comments", "sphinxext.code.part_downloads"]
sample_downloads = {{
    f"part/{{x}}": ZipFile(
        script=f"code/{{x}}.py",
        files={{f"code/{{y}}.py": f"{root}/_code/{{y}}.py" for y in (x, "shared")}},
        copies={{"requirements.txt": f"torch==1\\n{{x}}==2\\n".encode()}},
    )
    for x in ("one", "two")
}}
"""
TEMPLATES = {
    "sample-note": "At {{ address }}",
    "sample-readme": "{{ title }}",
    "sample-downloads": "",
    "part-downloads": "<a href='{{ href }}'>{{ count }} samples</a>",
    "part-readme": "{{ title }} at {{ address }}: {{ samples }}, {{ files | length }} files",
}
PAGE = "{title}\n=====\n\n.. code-block:: Python\n\n   work()  # Begin.\n"
TOCTREE = ".. toctree::\n\n{}\n"


@pytest.fixture
def part(documents):
    documents.configure(CONF.format(root=documents.root))
    documents.write("_code/shared.py", "pass  # Shared.\n")
    for name, template in TEMPLATES.items():
        documents.write(f"templates/{name}.html", template)
    for name in ("one", "two"):
        documents.write(f"_code/{name}.py", f'"""\n{name}\n=====\n"""\n\nwork()  # Begin.\n')
        documents.write(f"part/{name}.rst", PAGE.format(title=name))
    documents.write("part/index.rst", "Part\n====\n\n" + TOCTREE.format("   one\n   two"))
    documents.write("index.rst", "Home\n====\n\n" + TOCTREE.format("   part/index"))
    documents.write_catalog("part/index", {"Part": "단원"})
    documents.write_catalog("part/two", {"Begin.": "시작합니다."})
    return documents


def unzipped(part):
    with zipfile.ZipFile(part.root / "out/_downloads/part.zip") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_the_part_links_to_all_of_its_samples(part):
    assert "<a href='../_downloads/part.zip'>2 samples</a>" in part.page("part/index")
    assert "samples" not in part.page("index")
    assert unzipped(part) == {
        "part/README.txt": "Part at https://example.org/en/part/index.html: "
        "[('one', 'code/one.py'), ('two', 'code/two.py')], 7 files\n",
        "part/code/one.ipynb": unzipped(part)["part/code/one.ipynb"],
        "part/code/one.py": '# At https://example.org/en/part/one.html\n"""\none\n=====\n"""\n\n'
        "work()  # Begin.\n",
        "part/code/shared.py": "pass  # Shared.\n",
        "part/code/two.ipynb": unzipped(part)["part/code/two.ipynb"],
        "part/code/two.py": '# At https://example.org/en/part/two.html\n"""\ntwo\n=====\n"""\n\n'
        "work()  # Begin.\n",
        "part/requirements.txt": "torch==1\none==2\ntwo==2\n",
    }


def test_it_is_in_the_language_of_the_page(part):
    part.page("part/index", language="ko")
    files = unzipped(part)
    assert files["part/README.txt"].startswith("단원 at https://example.org/ko/part/index.html")
    assert "work()  # 시작합니다.\n" in files["part/code/two.py"]


def test_one_sample_needs_no_further_zip_file(part):
    part.write("part/index.rst", "Part\n====\n\n" + TOCTREE.format("   one"))
    part.write("part/two.rst", ":orphan:\n\n" + PAGE.format(title="two"))
    assert "samples" not in part.page("part/index")
    assert not (part.root / "out/_downloads/part.zip").exists()
