"""Read scripts in the format of sphinx-gallery, without sphinx-gallery.

Such a script is a docstring with a title, and then blocks of code and of text. A text
begins with a line ``# %%`` and is a comment in reStructuredText. The code between
``sphinx_gallery_start_ignore`` and ``sphinx_gallery_end_ignore`` is run, and not shown.
"""

import re
from collections.abc import Iterator

DOCSTRING = re.compile(r'\Ar?"""\n(.*?)\n"""\n', re.S)
TEXT = re.compile(r"^(# %%\n(?:#.*\n?)*)", re.M)
HIDDEN = re.compile(
    r"^[ \t]*# sphinx_gallery_start_ignore\n.*?# sphinx_gallery_end_ignore(?:\n|\Z)",
    re.M | re.S,
)


def split(script: str) -> list[tuple[str, str]]:
    """Return a list of (kind, source), which together are the script.

    The kind is "docstring", "text" or "code". Raises ValueError without a docstring.
    """
    docstring = DOCSTRING.match(script)
    if not docstring:
        raise ValueError('begins with no docstring: write """ on the first line, then a title')
    pieces = TEXT.split(script[docstring.end() :])
    kinds = ["code", "text"] * len(pieces)
    # The pieces are one fewer: they begin and end with code.
    blocks = [(kind, piece) for kind, piece in zip(kinds, pieces, strict=False) if piece]
    return [("docstring", docstring[0]), *blocks]


def prose(kind: str, source: str) -> str:
    """Return the reStructuredText of a docstring or a text."""
    if kind == "docstring":
        docstring = DOCSTRING.match(source)
        assert docstring, "split() found it there"
        return docstring[1]
    return re.sub(r"^# ?", "", source.partition("\n")[2].rstrip("\n"), flags=re.M)


def with_prose(kind: str, text: str) -> str:
    """Return a docstring or a text; the reverse of ``prose``.

    Raises ValueError if the text would end the docstring, begin a block or hide code.
    """
    if marks := re.findall(r"^%%|sphinx_gallery_\w+", text, re.M):
        raise ValueError(f"{marks[0]} in {text!r}")
    if kind == "docstring":
        if '"""' in text:
            raise ValueError(f'""" in {text!r}')
        prefix = "r" if "\\" in text else ""
        return f'{prefix}"""\n{text}\n"""\n'
    lines = ["# %%", *(f"# {line}" if line else "#" for line in text.split("\n"))]
    return "\n".join(lines) + "\n"


def visible(code: str) -> str:
    """Return the part of a block of code that is shown, without blank lines around it."""
    return HIDDEN.sub("", code).strip("\n")


def blank_hidden(code: str) -> str:
    """Return the code with its hidden lines empty; the other lines keep their numbers."""
    return HIDDEN.sub(lambda match: "\n" * match[0].count("\n"), code)


def code_lines(script: str) -> Iterator[tuple[str, int, int]]:
    """Yield each shown block of code, with the numbers of its first and last line."""
    number = 1
    for kind, source in split(script):
        lines = source.split("\n")
        if kind == "code" and visible(source):
            code = blank_hidden(source).split("\n")
            places = [place for place, line in enumerate(code) if line.strip()]
            yield visible(source), number + places[0], number + places[-1]
        number += len(lines) - 1
