"""A sample of a few lines, and the downloads of its page."""

import json
import zipfile

import pytest

SCRIPT = '''\
"""
A title
=======

A text.
"""

from helper import work

work()  # Begin.

# %%
# *More* text, see the :ref:`end <the-end>`.

# sphinx_gallery_start_ignore
assert work
# sphinx_gallery_end_ignore
# Go on.
print("the end")

# %%
# .. _the-end:
#
# The end
# -------
#
# Last words.

# sphinx_gallery_start_ignore
print("checked")
# sphinx_gallery_end_ignore
'''
PAGE = """\
A title
=======

A text.

.. code-block:: Python

    from helper import work

    work()  # Begin.

*More* text, see the :ref:`end <the-end>`.

.. code-block:: Python

    # Go on.
    print("the end")

.. rst-class:: sphx-glr-script-out

 .. code-block:: none

    the end

.. _the-end:

The end
-------

Last words.
"""
CONF = """\
from sphinxext.code.sample_downloads import ZipFile

extensions = ["sphinxext.translation.translatable_comments", "sphinxext.code.sample_downloads"]
sample_downloads = {"index": ZipFile(
    script="code/sample.py",
    files={"code/sample.py": "SCRIPT", "code/helper.py": "HELPER"},
    copies={"LICENSE": b"Do as you like."},
)}
"""
OTHER = """\
:orphan:

Other
=====

.. code-block:: python

   f()  # Shown elsewhere.
"""
TEMPLATES = {
    "note": "At {{ address }}\n{{ needed | join }}",
    "readme": "{{ title }}: {{ files | join(' ') }}",
    "downloads": "",
}
KO = {
    "A title": "제목",
    "A text.": "글입니다.",
    "Begin.": "시작합니다.",
    "Go on.": "계속합니다.",
    "*More* text, see the :ref:`end <the-end>`.": "*글*\\\\ 이 더 있습니다. :ref:`끝 <the-end>`.",
    "The end": "끝",
    "Last words.": "마지막 말입니다.",
}


@pytest.fixture
def sample(documents):
    root = documents.root
    documents.write("_code/sample.py", SCRIPT)
    documents.write("_code/helper.py", "def work():\n    pass  # Shown elsewhere.\n")
    conf = CONF.replace("SCRIPT", f"{root}/_code/sample.py")
    documents.configure(conf.replace("HELPER", f"{root}/_code/helper.py"))
    documents.write("index.rst", PAGE)
    documents.write("other.rst", OTHER)
    for name, template in TEMPLATES.items():
        documents.write(f"templates/sample-{name}.html", template)
    documents.write_catalog("index", KO)
    documents.write_catalog("other", {"Shown elsewhere.": "다른 곳에 있습니다."})
    return documents


def offered(sample, kind):
    return sample.root / "out/_downloads" / f"sample.{kind}"


def test_the_english_script_is_the_source(sample):
    sample.page()
    note = "# At https://example.org/en/index.html\n# helper.py\n"
    hint = "import work  # in the zip file of this sample\n"
    script = offered(sample, "py").read_text()
    assert script == note + SCRIPT.replace("import work\n", hint)


def test_a_translated_script(sample):
    sample.page(language="ko")
    script = offered(sample, "py").read_text()
    note = "# At https://example.org/ko/index.html\n# helper.py\n"
    assert script.startswith(f'{note}"""\n제목\n====\n')
    assert "work()  # 시작합니다.\n" in script
    assert "# *글*\\ 이 더 있습니다. :ref:`끝 <the-end>`.\n" in script
    assert "# 끝\n# --\n#\n# 마지막 말입니다.\n" in script
    assert '# sphinx_gallery_end_ignore\n# 계속합니다.\nprint("the end")\n' in script


def test_a_translated_notebook(sample):
    sample.page(language="ko")
    cells = json.loads(offered(sample, "ipynb").read_text())["cells"]
    assert [(cell["id"], cell["cell_type"]) for cell in cells] == [
        ("cell-1", "markdown"),
        ("cell-2", "code"),
        ("cell-3", "markdown"),
        ("cell-4", "code"),
        ("cell-5", "markdown"),
        ("cell-6", "code"),
    ]
    texts = ["".join(cell["source"]) for cell in cells]
    assert texts[0].startswith("# 제목\n\n> At https://example.org/ko/index.html")
    assert texts[2] == "*글*이 더 있습니다. [끝](https://example.org/ko/index.html#the-end)."
    assert texts[3].endswith('# 계속합니다.\nprint("the end")')
    assert texts[4] == "## 끝\n\n마지막 말입니다."
    assert 'print("checked")' in texts[5]


def test_a_translated_zip_file(sample):
    sample.page(language="ko")
    with zipfile.ZipFile(offered(sample, "zip")) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert list(files) == [
        "sample/LICENSE",
        "sample/README.txt",
        "sample/code/helper.py",
        "sample/code/sample.ipynb",
        "sample/code/sample.py",
    ]
    assert files["sample/README.txt"] == "제목: code/helper.py code/sample.py\n"
    assert files["sample/code/helper.py"] == "def work():\n    pass  # 다른 곳에 있습니다.\n"
    for kind in ("py", "ipynb"):
        assert files[f"sample/code/sample.{kind}"] == offered(sample, kind).read_text()


def test_a_page_of_another_script_is_reported(sample):
    sample.write("_code/sample.py", SCRIPT.replace('"the end"', '"something else"'))
    status, output = sample.build()
    assert status == 1 and "sample.py has changed since this page was made" in output


def test_no_translation_adds_code(sample):
    ends_the_docstring = '\\"\\"\\"\\nimport os\\n\\"\\"\\"'
    sample.write_catalog("index", KO | {"A text.": ends_the_docstring})
    status, output = sample.build(language="ko")
    assert status == 1 and "translated sample: " in output
    script = offered(sample, "py").read_text()
    assert not any(line.startswith("import os") for line in script.splitlines())
    compile(script, "sample.py", "exec")
