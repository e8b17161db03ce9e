"""Output is labelled, and folded when it is long."""

from bs4 import BeautifulSoup

CONFIGURATION = """
extensions = ["sphinxext.code.program_output"]
exclude_patterns = ["out"]
html_theme = "basic"
program_output_lines = 3
"""


def boxes(documents, lines):
    documents.write("conf.py", CONFIGURATION)
    output = "".join(f"    line {i}\n" for i in range(lines))
    documents.write(
        "index.rst",
        "Title\n=====\n\n.. code-block:: none\n\n    code\n\n"
        f".. rst-class:: sphx-glr-script-out\n\n.. code-block:: none\n\n{output}",
    )
    return BeautifulSoup(documents.page(), "html.parser").select(".program-output")


def test_short_output_has_a_label(documents):
    [box] = boxes(documents, 3)
    assert box.name == "div" and box.p.get_text() == "Output"
    assert box.pre.get_text().splitlines() == ["line 0", "line 1", "line 2"]


def test_long_output_is_folded(documents):
    [box] = boxes(documents, 4)
    assert box.name == "details" and box.summary.get_text() == "Output, 4 lines"
    assert len(box.pre.get_text().splitlines()) == 4
