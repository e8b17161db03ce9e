"""What the catalogs need of the samples is in the repository."""

import re

import pytest

from tools.execute.samples import samples, source_of
from tools.pages.sources import unexecuted_page

PRINTED = re.compile(
    r"^\.\. rst-class:: sphx-glr-script-out\n\n \.\. code-block:: none\n(?:\n|  .*\n)*", re.M
)
SHOWS = """
from result_table import show_table
show_table(["call", "meaning"], [["wait", "it waits"], ["ask", "no answer"]])
print("It was run.")  # It says so.
"""
OUTPUT = """\
* - call
  - meaning
* - ``wait``
  - it waits
* - ``ask``
  - no answer

It was run.
"""


@pytest.mark.parametrize("script", samples(), ids=lambda script: script.stem)
def test_an_unexecuted_page_has_the_texts_of_an_executed_one(script):
    executed = source_of(script).read_text().partition("\n\n\n")[2]
    assert _texts(PRINTED.sub("", executed)) == _texts(unexecuted_page(script))


def _texts(page):
    # In any order: tables of a function of the script's own come last.
    return sorted(line.strip() for line in page.splitlines() if line.strip())


def test_translators_need_neither_torch_nor_a_compiler(project):
    project.write("docs/index.md", "# Title\n\n```{toctree}\ntutorial/sample\n```\n")
    project.sample(SHOWS, output=OUTPUT)
    project.replace('简体中文"', '简体中文"\ncomplete = false', "languages.toml")
    for command in (["i18n_add", "pt_BR"], ["i18n_update"], ["i18n_status"]):
        status, output = project.run_without_torch(f"tools.{command[0]}", *command[1:])
        assert status == 0, output
    status, output = project.run_without_torch("tools.i18n_check")
    assert status == 1 and "not translated: 'It says so.'" in output
    catalog = project.read("locales/pt_BR/LC_MESSAGES/tutorial/sample.po")
    assert re.findall('msgid "(.+)"', catalog) == [
        *("sample", "A text.", "It says so.", "call", "meaning", "it waits", "no answer")
    ]
    assert not (project.root / "docs/tutorial").exists()
    assert not list((project.root / "_build").glob("execute/*/*.rst")), "nothing was executed"
