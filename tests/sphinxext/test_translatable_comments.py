"""Comments are translated, and code is not."""

import json
import re

import pytest

from sphinxext.translation.translatable_comments import code_without_comments, paragraphs, translate

PYTHON = '''\
def send(tensor):
    """Send a tensor.

    It must be contiguous, and it may not
    be changed meanwhile.
    """
    # A message without a receiver
    # waits for ever.
    #
    # Second paragraph.
    wait()  # noqa: B018
    text = "# no comment"
    go(text)  # Behind code.
'''
CPP = """\
// First line
// and second line.
int f(int /*rank*/) {
  /* A block
   * of two lines. */
  return 0; // "Zero".
} // namespace
"""


def messages(text, language):
    return [message for *_, message in paragraphs(text, language)]


def test_python_comments_and_docstrings_are_offered_by_paragraph():
    assert messages(PYTHON, "python") == [
        "Send a tensor.",
        "It must be contiguous, and it may not be changed meanwhile.",
        "A message without a receiver waits for ever.",
        "Second paragraph.",
        "Behind code.",
    ]


@pytest.mark.parametrize(
    "text, language, comments",
    [
        (CPP, "cpp", ["First line and second line.", "A block of two lines.", '"Zero".']),
        ("# Build it.\npip install . # now\n", "sh", ["Build it.", "now"]),
        ('# A note.\nmsgid "x"\nmsgstr "y"\n', "po", []),
        ("# 3 items\n", "none", []),
        ("# 3 items\n", "no-such", []),
    ],
)
def test_comments_of_other_languages_are_offered(text, language, comments):
    assert messages(text, language) == comments


def test_translations_stand_at_the_same_place_with_lines_broken_anew():
    long = "받는 쪽이 없는 메시지는 영원히 기다립니다. " * 3
    translated = translate(
        PYTHON,
        "python",
        {
            "A message without a receiver waits for ever.": long,
            "It must be contiguous, and it may not be changed meanwhile.": "연속이어야 합니다.",
            "Behind code.": "코드 뒤.",
        },
    )
    assert '"""Send a tensor.\n\n    연속이어야 합니다.\n    """\n' in translated
    assert "    go(text)  # 코드 뒤.\n" in translated
    comment = [line for line in translated.splitlines() if "기다립니다" in line]
    assert len(comment) >= 2 and all(line.startswith("    # ") for line in comment)
    assert "    #\n    # Second paragraph.\n" in translated
    compile(translated, "listing", "exec")


def test_translated_block_comment():
    translated = translate(CPP, "cpp", {"A block of two lines.": "块注释。"})
    assert "  /* 块注释。 */\n" in translated


@pytest.mark.parametrize("translation", ["x\nimport os", "x\rimport os"])
def test_line_breaks_of_a_translation_do_not_leave_the_comment(translation):
    translated = translate("# Comment.\nrun()\n", "python", {"Comment.": translation})
    assert translated == "# x import os\nrun()\n"


@pytest.mark.parametrize(
    "text, language, translation",
    [
        ('"""Comment."""\nrun()\n', "python", 'x""" + open("f") + """'),
        ('"""Comment."""\nrun()\n', "python", "ends with a quote\\"),
        ("/* Comment. */\nrun();\n", "cpp", "x */ system(); /*"),
        ("// Comment.\nrun();\n", "cpp", "swallows the next line \\"),
        ("# Comment.\nrun()\n", "python", "sphinx_gallery_end_ignore"),
        ("# Comment.\nrun()\n", "python", "a word " * 10 + "sphinx_gallery_start_ignore"),
        ("run()  # Comment.\n", "python", "noqa"),
    ],
)
def test_a_translation_that_changes_the_code_is_refused(text, language, translation):
    with pytest.raises(ValueError):
        translate(text, language, {"Comment.": translation})


def test_a_table_in_a_comment_keeps_its_layout():
    table = "// What a rank gives:\n//\n//   one    all\n//   two    none\nint x;\n"
    assert messages(table, "cpp") == ["What a rank gives:"]
    assert translate(table, "cpp", {}) == table


def test_code_without_comments():
    code = code_without_comments(PYTHON, "python")
    assert '    text = "# no comment"' in code and "    wait()" in code
    assert not any("Behind" in line or "Send" in line for line in code)
    assert code != code_without_comments(PYTHON.replace("wait()", "wait( )"), "python")
    assert code == code_without_comments(PYTHON.replace("Behind", "After"), "python")


def test_a_translated_page(documents):
    documents.configure('extensions = ["sphinxext.translation.translatable_comments"]')
    listing = ".. code-block:: python\n\n   run()  # Start.\n"
    documents.write("index.rst", f"Title\n=====\n\n{listing}")
    status, output = documents.build("gettext")
    assert status == 0, output
    assert 'msgid "Start."' in (documents.root / "out" / "index.pot").read_text()
    plain = json.loads((documents.root / "out" / "plain-messages.json").read_text())
    assert plain == {"index": {"Start.": False}}, "which is no prose"
    # As reStructuredText, this would be a fault: the build would not succeed.
    translation = "`run`을 시작합니다. # noqa"
    documents.write_catalog("index", {"Start.": translation})
    page = documents.page(language="ko")
    assert translation in page and "Start." not in page


def test_highlighted_lines_are_the_same_code_in_a_translation(documents):
    documents.configure('extensions = ["sphinxext.translation.translatable_comments"]')
    comment = '   """Begin."""\n   # A comment that takes\n   # two lines.\n'
    options = "   :emphasize-lines: 5\n\n"
    listing = f".. code-block:: python\n{options}{comment}   start()\n   run()\n   end()\n"
    documents.write("index.rst", f"Title\n=====\n\n{listing}")
    long = "시작합니다. " * 20
    messages = {"A comment that takes two lines.": "한 줄.", "Begin.": long.strip()}
    documents.write_catalog("index", messages)
    for language in ("en", "ko"):
        [line] = re.findall(r'<span class="hll">(.*)', documents.page(language=language))
        assert "run" in line, language
