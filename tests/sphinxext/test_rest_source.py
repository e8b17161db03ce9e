"""The source of a text is translated, and its structure stays."""

from sphinxext.text.rest_source import translate_rest

TEXT = """\
Two words
=========

A paragraph that goes
on for two lines.

* An item of
  two lines.
* Another one.

1. A number.

.. note::

   Beware of
   this.

.. admonition:: What is folded
   :collapsible: closed

   .. code-block:: python

      run()  # now

.. list-table::
   :header-rows: 1

   * - A cell
     - :mod:`x` and
       more
"""
MESSAGES = [
    "Two words",
    "A paragraph that goes on for two lines.",
    "An item of two lines.",
    "Another one.",
    "A number.",
    "Beware of this.",
    "What is folded",
    "A cell",
    ":mod:`x` and more",
]


def test_the_messages_are_those_of_the_text():
    asked = []
    assert translate_rest(TEXT, lambda x: asked.append(x) or x, 60) == TEXT
    assert [x for x in asked if x in MESSAGES] == MESSAGES
    others = [x for x in asked if x not in MESSAGES]
    assert all(x.startswith(("..", "closed", "run()", "1")) for x in others)


def test_a_translation_takes_the_place_of_its_source():
    changed = translate_rest(TEXT, lambda x: f"<{x}>" if x in MESSAGES else x, 60)
    assert "<Two words>\n===========\n" in changed
    assert "\n* <An item of two lines.>\n* <Another one.>\n" in changed
    assert "   * - <A cell>\n     - <:mod:`x` and more>" in changed
    assert ".. admonition:: <What is folded>\n   :collapsible: closed\n" in changed
    assert "   run()  # now\n" in changed and "   :header-rows: 1\n" in changed


def test_the_line_below_a_title_is_as_wide_as_its_characters():
    assert translate_rest("Title\n-----", lambda x: "全归约 a", 60) == "全归约 a\n--------"


def test_lines_are_broken_by_width_and_never_in_or_beside_markup():
    long = "所有 rank 都会参与*集合操作*，并且等待。" * 6
    lines = translate_rest("* Text.", lambda x: long, 40).split("\n")
    assert len(lines) > 4
    assert lines[0].startswith("* ") and all(x.startswith("  ") for x in lines[1:])
    assert all(len(x) + sum(ord(y) > 0x2FFF for y in x) <= 46 for x in lines)
    assert sum("*集合操作*" in x for x in lines) == 6
    assert not any(x.rstrip().endswith("*") or x[2:].startswith("*是") for x in lines)


def test_line_breaks_of_a_translation_do_not_leave_the_text():
    assert translate_rest("Text.", lambda x: "x\nimport\ros\u2028a", 60) == "x import os a"
