"""Output is labelled, and folded when it is long."""

from bs4 import BeautifulSoup


def boxes(documents, lines):
    documents.configure('extensions = ["sphinxext.code.program_output"]')
    output = "".join(f"    line {i}\n" for i in range(lines))
    documents.write(
        "index.rst",
        "Title\n=====\n\n.. code-block:: none\n\n    code\n\n"
        f".. rst-class:: sphx-glr-script-out\n\n.. code-block:: none\n\n{output}",
    )
    return BeautifulSoup(documents.page(), "html.parser").select(".program-output")


def test_short_output_has_a_label(documents):
    [box] = boxes(documents, 16)
    assert box.name == "div" and box.p.get_text() == "Output"
    assert box.pre.get_text().splitlines() == [f"line {i}" for i in range(16)]


def test_long_output_is_folded(documents):
    [box] = boxes(documents, 17)
    assert box.name == "details" and box.summary.get_text() == "Output, 17 lines"
    assert len(box.pre.get_text().splitlines()) == 17
