"""Translate the source of a text in reStructuredText, paragraph by paragraph.

Paragraphs, items of lists, cells of list tables, underlined titles and those of admonitions are
messages, as in Sphinx. Everything else is left unchanged: other directives, options, grid tables.
"""

import re
from collections.abc import Callable

from docutils.utils import column_width

from .line_breaking import CJK, UNBREAKABLE, break_lines

# Indentation, marks of list items or the name of an option or an admonition, and words.
MARKS = r"(?:(?:[*+-]|\d+\.|#\.)\s+)+|:[\w-]+:\s+|\.\. admonition::\s+|"
LINE = re.compile(rf"(\s*)({MARKS})(\S.*)?$")
ADORNMENT = re.compile(r"([=~^\"'*+#:.`_-])\1{2,}")
# A line break in or beside inline markup would be taken for a space.
MARKUP = r"``.+?``|`[^`]+`_*|\*\*.+?\*\*|\*[^*\s][^*]*\*"
WORDS = re.compile(rf"(?:[^\s{CJK}]*?(?:{MARKUP}))+[^\s{CJK}]*|{UNBREAKABLE.pattern}")


def translate_rest(text: str, gettext: Callable[[str], str], width: int) -> str:
    """Return ``text`` with each message passed through ``gettext``.

    Translated messages are broken into lines of ``width`` columns again.
    """
    lines, result = text.split("\n"), []
    while lines:
        original = [lines.pop(0)]
        indentation, mark, words = _parts(original[0])
        prefix = indentation + mark
        is_title = bool(words and lines and ADORNMENT.fullmatch(lines[0]))
        if is_title:
            original.append(lines.pop(0))
        else:
            while words and lines and _goes_on(lines[0], prefix):
                original.append(lines.pop(0))
                words += " " + original[-1].strip()
        translation = gettext(words) if words else words
        if translation == words:
            result += original
            continue
        translation = " ".join(translation.split())
        if is_title:
            result += [translation, original[1][0] * column_width(translation)]
        else:
            room = width - len(prefix)
            broken = break_lines(translation, room, narrow=1, wide=2, words=WORDS)
            result += [prefix + broken[0], *(" " * len(prefix) + x for x in broken[1:])]
    return "\n".join(result)


def _parts(line: str) -> tuple[str, str, str]:
    """Return the indentation of a line, the mark of its list entry, and its words."""
    parts = LINE.fullmatch(line)
    assert parts, "each part may be empty"
    indentation, mark, words = parts.groups()
    return indentation, mark, words


def _goes_on(line: str, prefix: str) -> bool:
    """Return whether a line belongs to the paragraph whose first line begins with a prefix."""
    indentation, mark, words = _parts(line)
    return bool(words) and not mark and len(indentation) == len(prefix)
