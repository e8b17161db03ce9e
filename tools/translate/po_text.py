"""The text of a catalog, from whatever bytes an editor left.

Catalogs may come in another encoding, with a byte order mark, with the line ends of another
system, and with a header of which Babel can read only some. Each is brought into one form here,
line by line, so that line numbers stay those of the file.
"""

import codecs
import re
from dataclasses import dataclass, field

from babel.messages.pofile import escape, unescape

BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # It begins with that of UTF-16.
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
CHARSET = re.compile(rb"charset=([\w.:-]+)")
# What no text has, but UTF-8 has when it is read as an encoding of one byte a character.
CONTROLS = re.compile("[\x80-\x9f]")
STRING = r'"(?:\\.|[^"\\\n])*"[ \t]*'
KEYWORD = re.compile(r'^([ \t]*(?:#~[ \t]*)?msg(?:ctxt|id|str))[ \t]*(?=")', re.M)
HEADER = re.compile(
    rf'^[ \t]*msgid[ \t]+(?:""[ \t]*\n[ \t]*)+msgstr[ \t]*({STRING}(?:\n[ \t]*{STRING})*)', re.M
)
READ_BY_BABEL = "Content-Type: text/plain; charset=utf-8\n"
# Comments of translators, not of tools: flags, references, earlier and obsolete texts.
COMMENT = re.compile(r"#(?![,.:|~])(.*)")
# What gettext's tools put where a name should be.
PLACEHOLDER = re.compile(
    r"SOME DESCRIPTIVE TITLE|FIRST AUTHOR|FULL NAME|EMAIL@ADDRESS|\bYEAR\b|LL@li\.org|"
    r"noreply@weblate\.org|^(?:LANGUAGE|none)$|^ ?Automatically generated|'S COPYRIGHT HOLDER$"
)


class Unreadable(ValueError):
    """Bytes that are no text; ``line`` is the first that is none."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True)
class Header:
    """The comments at the top and at the end of a catalog, and its fields by their names."""

    comments: tuple[str, ...] = ()
    fields: dict[str, str] = field(default_factory=dict)

    def credit(self, name: str) -> str:
        """Return the value of a field that names people, or "" where nobody is named."""
        value = self.fields.get(name.lower(), "")
        return "" if PLACEHOLDER.search(value) else value


def decoded(content: bytes) -> str:
    """Return the text of a catalog with the line ends of Unix. Raises Unreadable."""
    if not content.strip():
        raise Unreadable(1, "it is empty, as an editor that was ended leaves it")
    marked = [name for mark, name in BYTE_ORDER_MARKS.items() if content.startswith(mark)][:1]
    declared = [match[1].decode() for match in CHARSET.finditer(content)][:1]
    for encoding in marked or ["utf-8", *declared]:
        try:
            text = content.decode(encoding)
        except (UnicodeError, LookupError):
            continue
        if "\0" not in text and (encoding not in declared or not CONTROLS.search(text)):
            return re.sub("\r\n?", "\n", text)
    raise Unreadable(*_reason(content, (marked or declared or ["utf-8"])[0]))


def _reason(content: bytes, encoding: str) -> tuple[int, str]:
    lines = re.split(b"\r\n?|\n", content)
    if b"\0" in content:
        number = next(n for n, line in enumerate(lines, 1) if b"\0" in line)
        return number, "it has zero bytes, so it is damaged or in UTF-16 without a mark"
    for number, line in enumerate(lines, 1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            named = "" if encoding.lower() in ("utf-8", "utf8") else f", nor {encoding}"
            byte = f"0x{line[error.start]:02x}"
            return number, f"it is not UTF-8{named} (byte {byte}); save it as UTF-8"
    return 1, f"it is not in {encoding}, as its first bytes say; save it as UTF-8"


def for_babel(text: str) -> tuple[str, Header]:
    """Return a text with the one header that Babel needs, and what the header was."""
    # Gettext's tools write this above an obsolete text, and Babel does not read it.
    text = re.sub("^#~[|]", "#|", text, flags=re.M)
    text = KEYWORD.sub(r"\1 ", text)
    match = HEADER.search(text)
    if not match:
        return text, Header(tuple(_last_comments(text)))
    value = "".join(unescape(string.strip()) for string in re.findall(STRING, match[1]))
    fields = {}
    for line in value.splitlines():
        name, _, of_name = line.partition(":")
        fields[name.strip().lower()] = of_name.strip()
    before, after = text[: match.start()], text[match.end() :]
    lines = '\n""' * match[1].count("\n")
    text = text[: match.start(1)] + escape(READ_BY_BABEL) + lines + text[match.end(1) :]
    return text, Header((*_last_comments(before), *_last_comments(after)), fields)


def _last_comments(text: str) -> list[str]:
    """Return the comments at the end of a text, which belong to no message in it."""
    comments: list[str] = []
    for line in reversed(text.splitlines()):
        match = COMMENT.match(line)
        if match and not PLACEHOLDER.search(match[1]):
            comments.insert(0, match[1].removeprefix(" ").rstrip())
        elif line.strip() and not line.startswith("#,") and not match:
            break
    return comments


def header_text(title: str, fields: dict[str, str], header: Header) -> str:
    """Return the text of a header, with the comments of the present one below a title."""
    comments = [title, *(x for x in header.comments if x != title)]
    while comments and not comments[-1]:
        comments.pop()
    lines = [*(f"# {x}".rstrip() for x in comments), 'msgid ""', 'msgstr ""']
    lines += [escape(f"{name}: {value}\n") for name, value in fields.items() if value]
    return "\n".join(lines) + "\n"
