"""Offer the comments and docstrings of listings to translators, and nothing else.

Every paragraph of a comment is a message in the catalog of the page that shows it: the
builder ``gettext`` collects it. A translated page shows its translation in the same place,
broken into lines anew. The code around it cannot change: if the listing would hold other
code than before, there is a warning, and the original is shown. A translation may take more
or fewer lines; the lines of code that ``emphasize-lines`` names stay highlighted.

There is no configuration. The project must provide catalogs, in the folders of
``locale_dirs``, and the language of each listing, as in ``.. code-block:: python`` or the
option ``language`` of ``literalinclude``: Pygments' lexer for the language finds the
comments. A ``literalinclude`` without a language has none, whatever ``highlight_language``
is.

``code_without_comments`` returns what is code. It serves to compare listings.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from docutils import nodes
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, String
from pygments.util import ClassNotFound
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.i18n import Locale, PreserveTranslatableMessages
from sphinx.util import logging

from ..text.line_breaking import break_lines
from .plain_messages import plain_messages, translations

logger = logging.getLogger(__name__)

MINIMAL_WIDTH = 72  # columns
# Comments that speak to a program: of linters, and markers such as "[step-1]".
DIRECTIVE = re.compile(
    r"noqa|type:|fmt:|pylint:|NOLINT|clang-format|sphinx_gallery_|namespace\b|"
    r"\[/?[\w-]+\]$|!"
)
BACKSLASHES = re.compile(r"\\.?")  # They end lines and strings, or keep them from it.
# Begin, end, prefix and message, see ``paragraphs``.
Paragraph = tuple[int, int, str | None, str]
LETTER = re.compile(r"[^\W\d_]")
COLUMNS = re.compile(r"\S {2,}\S")  # of a table, which would lose its layout


class comment_messages(nodes.Invisible, nodes.Element):
    """The messages of the listing before it; gone before anything is written."""


def code_without_comments(text: str, language: str) -> list[str]:
    """Return the lines of code of a listing, with its comments and docstrings empty."""
    return [code for _, code in lines_of_code(text, language)]


def lines_of_code(text: str, language: str) -> list[tuple[int, str]]:
    """Return the number and the code of each line that has some beside comments."""
    lines, number, position = [(1, "")], 1, 0
    for start, end, _ in [*_comments(text, language), (len(text), len(text), "")]:
        first, *others = text[position:start].split("\n")
        lines[-1] = (lines[-1][0], lines[-1][1] + first)
        lines += [(number + x, line) for x, line in enumerate(others, 1)]
        number += text.count("\n", position, end)
        position = end
    # Lines that hold nothing but the mark of a comment are no code, however many.
    lines = [(x, re.sub(r"(//+<?|#+)$", "", line.rstrip()).rstrip()) for x, line in lines]
    return [(x, line) for x, line in lines if line]


@lru_cache(maxsize=1024)  # Each listing is looked at several times.
def _comments(text: str, language: str) -> list[tuple[int, int, str]]:
    """Return begin, end and kind of the inner text of each comment.

    The kind is "line" for one that ends with its line, "block" for ``/* */``, and
    "docstring".
    """
    return list(_find_comments(text, language))


def _find_comments(text: str, language: str) -> Iterator[tuple[int, int, str]]:
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return
    if "po" in lexer.aliases:
        return  # A catalog's own comments say how it is to be used.
    for start, token, value in lexer.get_tokens_unprocessed(text):
        value = value.rstrip("\n")
        if token in String.Doc:
            opening = re.match(r"""[a-zA-Z]*(\"""|'''|"|')""", value)
            if opening and value.endswith(opening[1]) and len(value) >= 2 * len(opening[1]):
                end = start + len(value) - len(opening[1])
                yield start + opening.end(), end, "docstring"
        elif token in Comment and token not in (Comment.Preproc, Comment.PreprocFile):
            opening = re.match(r"//+<?|#+|/\*+", value)
            if opening and token not in Comment.Hashbang:
                end = start + len(value)
                if not value.startswith("/*"):
                    yield start + opening.end(), end, "line"
                elif text[end:].partition("\n")[0].strip() == "":
                    yield start + opening.end(), end - 2, "block"


def paragraphs(text: str, language: str) -> Iterator[Paragraph]:
    """Yield begin, end, prefix and message of each paragraph of each comment.

    ``text[begin:end]`` is what the paragraph takes up, from the first character of its
    words to the last, and ``prefix`` what its further lines begin with.
    """
    lines = []  # begin, end, prefix, whether it goes on from the line before
    for start, end, kind in _comments(text, language):
        first_line = text[text.rfind("\n", 0, start) + 1 :]
        indentation = first_line[: len(first_line) - len(first_line.lstrip())]
        for match in re.finditer(r"[^\n]+", text[start:end]):
            begin = start + match.start()
            line_begin = text.rfind("\n", 0, begin) + 1
            before = text[line_begin:begin]
            words = match[0].strip()
            if kind == "block":
                words = words.lstrip("*").strip()
            begin = text.index(words, begin) if words else begin
            if kind == "line":
                alone = not re.sub(r"[/#<\s]", "", before)
                prefix = text[line_begin:begin] if alone else None
            else:
                alone = match.start() > 0
                prefix = indentation + (" * " if kind == "block" else "")
            if DIRECTIVE.match(words):
                words = ""
            lines.append((begin, begin + len(words), prefix, alone, words))
    group: list[tuple[int, int, str | None, bool, str]] = []
    for line in lines:
        begin, _, prefix, alone, words = line
        goes_on = (
            group
            and words
            and alone
            and text[group[-1][1] : begin].count("\n") == 1
            and (group[-1][2] == prefix)
        )
        if not goes_on:
            yield from _paragraph(group)
            group = []
        if words:
            group.append(line)
    yield from _paragraph(group)


def _paragraph(group: list[tuple[int, int, str | None, bool, str]]) -> Iterator[Paragraph]:
    message = " ".join(words for *_, words in group)
    if LETTER.search(message) and not COLUMNS.search(message):
        yield group[0][0], group[-1][1], group[0][2], message


def translate(text: str, language: str, translated: Mapping[str, str]) -> str:
    """Return the listing with its comments translated.

    ``translated`` maps messages to translations. Raises ValueError if the code would not be
    the same, or if a line of a comment would be one for linters and the like.
    """
    width = max([MINIMAL_WIDTH, *map(len, text.splitlines())])
    result, position = "", 0
    for begin, end, prefix, message in paragraphs(text, language):
        translation = " ".join(translated.get(message, message).split())
        if translation == message:
            continue
        if BACKSLASHES.findall(translation) != BACKSLASHES.findall(message):
            raise ValueError(f"other backslashes than in {message!r}")
        result += text[position:begin]
        if prefix is None:  # Behind code; it cannot be continued on another line.
            lines = [translation]
        else:
            room = width - len(prefix)
            lines = break_lines(translation, room, narrow=1, wide=2)
        if any(DIRECTIVE.match(line) for line in lines):
            raise ValueError(f"speaks to a program: {translation!r}")
        result += ("\n" + (prefix or "")).join(lines)
        position = end
    result += text[position:]
    if code_without_comments(result, language) != code_without_comments(text, language):
        raise ValueError("the code would not be the same")
    return result


class OfferComments(SphinxTransform):
    default_priority = PreserveTranslatableMessages.default_priority - 1

    def apply(self, **kwargs: Any) -> None:
        for block in list(self.document.findall(nodes.literal_block)):
            text = block.astext()
            texts = [p[-1] for p in paragraphs(text, block.get("language", "none"))]
            if texts:
                messages = comment_messages("", *plain_messages(texts, block))
                block.parent.insert(block.parent.index(block) + 1, messages)


class TranslateComments(SphinxTransform):
    default_priority = Locale.default_priority + 1

    def apply(self, **kwargs: Any) -> None:
        if self.app.builder.name == "gettext":
            return  # It comes later, to collect the messages.
        for messages in list(self.document.findall(comment_messages)):
            block = messages.parent[messages.parent.index(messages) - 1]
            translated = translations(messages.children)
            messages.parent.remove(messages)
            try:
                text = translate(block.astext(), block["language"], translated)
            except ValueError as error:
                logger.warning("translated comments: %s", error, location=block)
                continue
            if highlighted := block.get("highlight_args", {}).get("hl_lines"):
                before, after = (
                    [number for number, _ in lines_of_code(x, block["language"])]
                    for x in (block.astext(), text)
                )
                places = dict(zip(before, after, strict=True))
                block["highlight_args"]["hl_lines"] = [places.get(x, x) for x in highlighted]
            block.rawsource = text
            block.children = []
            block += nodes.Text(text)


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinxext.translation.plain_messages")
    app.add_node(comment_messages)
    app.add_transform(OfferComments)
    app.add_transform(TranslateComments)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
