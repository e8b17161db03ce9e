"""Catalogs as editors leave them are read, mended, or refused in one line; nothing is lost."""

import codecs
import os
import re
import subprocess
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from tests.tools.small_catalogs import PAGE
from tools.project.errors import BuildError
from tools.project.languages import TRANSLATIONS
from tools.project.paths import ROOT
from tools.translate import catalogs, credits, laid_out, status, update

KO = next(x for x in TRANSLATIONS if x.gettext == "ko")
TITLE = 'msgid "Title"\nmsgstr "제목"\n'

POEDIT = r"""msgid ""
msgstr ""
"Project-Id-Version: c10d-backend-tutorial 1\n"
"POT-Creation-Date: \n"
"PO-Revision-Date: \n"
"Last-Translator: \n"
"Language-Team: \n"
"Language: ko\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=utf-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=1; plural=0;\n"
"X-Generator: Poedit 3.2.2\n"
"X-Poedit-Basepath: ..\n"
"""
WEBLATE = r"""# SOME DESCRIPTIVE TITLE.
# FIRST AUTHOR <EMAIL@ADDRESS>, YEAR.
#
msgid ""
msgstr ""
"Project-Id-Version: c10d-backend-tutorial 1\n"
"Report-Msgid-Bugs-To: \n"
"POT-Creation-Date: 2026-11-28 19:09+0000\n"
"PO-Revision-Date: 2026-11-28T19:09:00Z\n"
"Last-Translator: Anonymous <noreply@weblate.org>\n"
"Language-Team: LANGUAGE <LL@li.org>\n"
"Language: ko_KR\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=1; plural=0;\n"
"X-Generator: Weblate 5.14\n"
"""
MSGINIT = r"""#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: PACKAGE VERSION\n"
"POT-Creation-Date: YEAR-MO-DA HO:MI+ZONE\n"
"PO-Revision-Date: YEAR-MO-DA HO:MI+ZONE\n"
"Last-Translator: FULL NAME <EMAIL@ADDRESS>\n"
"Language: \n"
"Content-Type: text/plain; charset=CHARSET\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"
"""


def header(new):
    """Return a change of a catalog that gives it another header."""
    return lambda text: new + text[text.index("\n\n") + 1 :]


def field(name, value):
    return lambda text: re.sub(rf'(?<="{name}: )\w+', value, text)


def encoded(encoding, declared=None):
    """Return a change to another encoding, which the header names if it is given."""
    return lambda text: text.replace("utf-8", declared or "utf-8").encode(encoding)


def appended(end):
    return lambda text: text + end


# What an update brings into the usual form, without a change of any translation.
MENDED = {
    "Poedit": header(POEDIT),
    "Weblate": header(WEBLATE),
    "msginit": header(MSGINIT),
    "no header": header(""),
    "an empty header": header('msgid ""\nmsgstr ""\n'),
    "a header in one line": header(r'msgid ""' "\n" r'msgstr "Language: ko\nX: \"y\"\n"' "\n"),
    "a header that is not the first": lambda text: header("")(text) + "\n" + POEDIT,
    "no charset": header('msgid ""\nmsgstr "Language: ko\\n"\n'),
    "an unknown charset": lambda text: text.replace("utf-8", "none"),
    "the charset of msginit": lambda text: text.replace("utf-8", "ASCII"),
    "a Latin charset that is not true": lambda text: text.replace("utf-8", "iso-8859-1"),
    "the language with its territory": field("Language", "ko_KR"),
    "the language with a hyphen": field("Language", "ko-kr"),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n"),
    "line ends of old Macs": lambda text: text.replace("\n", "\r"),
    "line ends that were changed twice": lambda text: text.replace("\n", "\r\r\n"),
    "mixed line ends": lambda text: text.replace("\n", "\r\n", 5),
    "a mark of UTF-8": encoded("utf-8-sig"),
    "a mark and line ends of Windows": lambda x: x.replace("\n", "\r\n").encode("utf-8-sig"),
    "UTF-16": encoded("utf-16"),
    "UTF-16 that says so": encoded("utf-16", "UTF-16"),
    "UTF-16, the other end first": lambda x: codecs.BOM_UTF16_BE + x.encode("utf-16-be"),
    "UTF-32": encoded("utf-32"),
    "EUC-KR": encoded("euc-kr", "EUC-KR"),
    "CP949": encoded("cp949", "cp949"),
    "no line end at the end": lambda text: text.rstrip("\n"),
    "empty lines": appended("\n\n\n"),
    "empty lines in an entry": lambda text: text.replace('\nmsgstr "제', '\n\nmsgstr "제'),
    "indented, as by msgcat": lambda text: re.sub('(?m)^(msg|#|")', r"  \1", text),
    "tabs": lambda text: text.replace("msgid ", "msgid\t").replace("msgstr ", "msgstr\t"),
    "no space": lambda text: text.replace("msgid ", "msgid").replace("msgstr ", "msgstr"),
    "other widths": lambda text: text.replace('"제목"', '""\n"제"\n"목"'),
    "references and comments of tools": lambda text: text.replace(
        'msgid "Title"', '#. for readers\n#: index.md:1\n#: index.md:2\n#, no-wrap\nmsgid "Title"'
    ),
    "a previous text": lambda text: text.replace(
        'msgid "Title"', '#| msgctxt "x"\n#| msgid "Tittle"\nmsgid "Title"'
    ),
    "lines of Vim and Emacs at the end": appended("\n# vim: set ft=po:\n"),
    "obsolete texts": appended('\n#~ msgid "Gone"\n#~ msgstr "없음"\n'),
    "obsolete texts of msgmerge": appended(
        '\n#, fuzzy\n#~| msgid "Goon"\n#~ msgid "Gone"\n#~ msgstr "없음"\n'
    ),
    "obsolete texts without spaces": appended('\n#~msgid "Gone"\n#~msgstr "없음"\n'),
    "a context": lambda text: text.replace('msgid "Title"', 'msgctxt "menu"\nmsgid "Title"'),
    "another order": lambda text: _swapped(text),
}


def _swapped(text):
    head, first, second = text.rstrip("\n").split("\n\n")
    return "\n\n".join([head, second, first]) + "\n"


# What is refused, with the line and the reason.
REFUSED = {
    "no byte": (lambda text: "", r":1: .*is empty"),
    "line ends alone": (lambda text: "\n\n\n", ":1: .*is empty"),
    "comments alone": (lambda text: "# 한국어 (ko)\n", ":1: .*no message"),
    "a page of something else": (lambda text: "<!doctype html>\n<p>x\n", ":1: .*a line is a comm"),
    "cut off within a line": (lambda text: text[: text.index("목")], r":\d+: .*'msgstr \"제'"),
    "cut off within a letter": (
        lambda text: text.encode()[: text.encode().index("제".encode()) + 2],
        r":\d+: .*not UTF-8 ",
    ),
    "cut off behind a msgid": (
        lambda text: text[: text.index('msgstr "제목')],
        r":\d+: .*missing msgstr",
    ),
    "zero bytes": (lambda text: text + "\0" * 400, r":\d+: .*zero bytes"),
    "UTF-16 without a mark": (encoded("utf-16-le"), ":1: .*UTF-16 without a mark"),
    "EUC-KR that does not say so": (encoded("euc-kr"), r":\d+: .*not UTF-8 "),
    "EUC-KR that says UTF-7": (encoded("euc-kr", "UTF-7"), r":\d+: .*not UTF-8, nor UTF-7"),
    "broken UTF-8 that says Latin": (
        lambda text: text.replace("utf-8", "iso-8859-1").encode() + b"\n# \xff\n",
        r":\d+: .*not UTF-8, nor iso-8859-1",
    ),
    "a conflict": (
        lambda text: text.replace(TITLE, f"<<<<<<< HEAD\n{TITLE}=======\n{TITLE}>>>>>>> x\n"),
        r":\d+: .*a conflict that git left",
    ),
    "a message twice": (appended("\n" + TITLE), r":\d+: .*'Title' stands twice, in line \d+"),
    "an obsolete message twice": (
        appended('\n#~ msgid "Gone"\n#~ msgstr "없음"\n' * 2),
        r":\d+: .*'Gone' stands twice",
    ),
    "two headers": (appended('\nmsgid ""\nmsgstr "Language: ko\\n"\n'), r":\d+: .*stands twice"),
    "plural forms": (
        appended('\nmsgid "a"\nmsgid_plural "b"\nmsgstr[0] "가"\n'),
        r":\d+: .*a plural form",
    ),
    "escapes of msgcat": (
        lambda text: text.replace("제목", r"\354\240\234"),
        r":\d+: .*write the character itself",
    ),
    "curved quotation marks": (
        lambda text: text.replace('"제목"', "“제목”"),
        r":\d+: .*a curved quotation mark",
    ),
    "a mark between two parts": (
        lambda text: text + "\ufeff# more\n",
        r":\d+: .*a byte order mark within",
    ),
    "another language": (field("Language", "ja"), ":1: its header says `Language: ja`, not ko"),
}


def translations(catalog):
    return {x.id: x.string for x in catalog if x.id}


@pytest.mark.parametrize("change", MENDED.values(), ids=MENDED)
def test_what_an_editor_writes_is_mended(pages, change, tmp_path):
    good = pages.read(PAGE)
    expected = translations(catalogs.read(pages.root / PAGE))
    changed = change(good)
    assert changed != good
    (pages.root / PAGE).write_bytes(changed if isinstance(changed, bytes) else changed.encode())
    assert translations(catalogs.read(pages.root / PAGE)) == expected
    # What Sphinx shows:
    laid_out.lay_out_catalogs(KO, tmp_path / "copies")
    with open(tmp_path / "copies/ko/LC_MESSAGES/index.po", "rb") as file:
        assert translations(read_po(file, abort_invalid=True)) == expected
    assert status.status_of(KO)["index"].translated == len(expected)
    assert re.search("its form is not that|not in the English", pages.check())
    update.update()
    assert translations(catalogs.read(pages.root / PAGE)) == expected
    assert pages.check() == ""
    kept = re.sub(r"# vim: .*\n|(?s:\n(?:#, fuzzy\n)?#~.*)", "", pages.read(PAGE))
    assert kept.rstrip() == good.rstrip()


@pytest.mark.parametrize("change, reason", REFUSED.values(), ids=REFUSED)
def test_what_is_no_catalog_is_refused_in_one_line(pages, change, reason, tmp_path):
    changed = change(pages.read(PAGE))
    content = changed if isinstance(changed, bytes) else changed.encode()
    (pages.root / PAGE).write_bytes(content)
    commands = {
        "check": pages.check,
        "update": update.update,
        "status": lambda: status.status_of(KO),
        "preview": lambda: laid_out.lay_out_catalogs(KO, tmp_path / "copies"),
    }
    for name, command in commands.items():
        try:
            text = command() or ""
        except BuildError as error:
            text = str(error)
        lines = text.removeprefix("message catalogs:\n").splitlines()
        assert len(lines) == 1 and re.match(PAGE + reason, lines[0]), f"{name}: {text}"
    assert (pages.root / PAGE).read_bytes() == content
    assert not (tmp_path / "copies").exists()


# What real editors and tools wrote: Poedit 3.2.2, gettext 0.21, polib 1.2, translate-toolkit 3.
WRITTEN = sorted(Path(__file__).with_name("editors").glob("*.po"))
LONG = (
    "A text that is long enough for Poedit to break its lines, since it is longer than a line "
    "of a catalog."
)
LONG_KO = "Poedit이 줄을 나눌 만큼 긴 글입니다. 한 줄의 길이보다 더 길기 때문입니다."


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_what_editors_wrote_is_read(pages, path):
    pages.messages["index"].append(LONG)
    (pages.root / PAGE).write_bytes(path.read_bytes())
    for _ in range(2):
        catalog = catalogs.read(pages.root / PAGE)
        assert translations(catalog) == {
            "Title": "제목!",
            "The `first` text.": "`first` 문장입니다.",
            LONG: LONG_KO,
        }
        assert [x.string for x in catalog.obsolete.values()] == ["없음"]
        assert catalog.get("The `first` text.").fuzzy == (path.stem == "msgmerge")
        assert ("A Translator" in " ".join(catalog.header.comments)) == (path.stem == "toolkit")
        update.update()
    assert "its form" not in pages.check()


# -- Losses ------------------------------------------------------------------------


@pytest.fixture
def committed(pages):
    git = ["git", "-C", pages.root, "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for arguments in (["init", "-q"], ["add", "locales"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *arguments], check=True)
    return pages


def test_an_update_refuses_to_lose_what_was_committed(committed):
    """A file that was cut off between two messages is a whole catalog, as far as it goes."""
    text = committed.read(PAGE)
    cut = text[: text.index('msgid "Title"')]
    committed.write(PAGE, cut)
    reason = f"{PAGE}:1: lacks 2 messages that the last commit has translated, such as 'Title': "
    with pytest.raises(BuildError, match=re.escape(reason)):
        update.update()
    assert committed.read(PAGE) == cut
    assert re.findall(r"(?m)^\S+:\d+: .*", committed.check()) == [
        line for line in committed.check().splitlines() if line.startswith(reason)
    ]
    subprocess.run(["git", "-C", committed.root, "restore", PAGE], check=True)
    update.update()
    assert committed.check() == ""


def test_an_update_after_edits_of_both_texts_is_no_loss(committed):
    committed.replace('msgstr "제목"', 'msgstr ""')  # Emptied by hand.
    committed.messages["index"].remove("The `first` text.")
    update.update()
    assert "#~ msgid" in committed.read(PAGE)
    committed.messages["new"] = committed.messages.pop("index")
    committed.plain["new"] = {}
    (committed.root / PAGE).rename(committed.root / PAGE.replace("index", "new"))
    update.update()


# -- Files beside a catalog --------------------------------------------------------

BESIDE = [
    *(".#index.po", "#index.po#", "index.po~", "index.po.~1~", ".index.po.swp", ".index.po.swo"),
    *("4913", "index.po.bak", "index.po.orig", "index.po.rej", "index.po.tmp", "index.po.lock"),
    *(".index.po.kate-swp", "index.po.Ab1cDe", ".~lock.index.po#", ".goutputstream-AB12CD"),
    *(".DS_Store", "._index.po", "Thumbs.db", "desktop.ini", "index.po.save", "ko.lokalize"),
]


@pytest.mark.parametrize("name", BESIDE)
def test_files_of_editors_are_ignored(pages, name, tmp_path):
    path = (pages.root / PAGE).with_name(name)
    if name == ".#index.po":
        path.symlink_to("me@host.1:1")  # As Emacs marks unsaved text: a link to nothing.
    else:
        path.write_bytes(b"\0 unsaved work")
    assert pages.check() == ""
    update.update()
    assert status.status_of(KO)["index"].translated == 2
    assert laid_out.lay_out_catalogs(KO, tmp_path / "copies") == {"index", "tutorial/sample"}
    assert os.path.lexists(path)
    command = ["git", "-C", ROOT, "check-ignore", "-q", PAGE.replace("index.po", name)]
    assert subprocess.run(command).returncode == 0, "and git ignores it"


# -- Credits -----------------------------------------------------------------------


def test_credits_are_kept(pages):
    pages.replace(
        "# 한국어 (ko)\n", "# 한국어 (ko)\n# Translators:\n# 김 씨 <kim@example.org>, 2026\n"
    )
    people = '"Last-Translator: 김 씨 <kim@example.org>\\n"\n"Language-Team: 한국어\\n"\n'
    pages.replace('"Language: ', f'{people}"Language: ')
    before = pages.read(PAGE)
    assert pages.check() == ""
    update.update()
    assert pages.read(PAGE) == before
    assert credits.translators() == {"ko": ["김 씨"]}


@pytest.mark.parametrize(
    "comment, names",
    [
        ("Translators:", []),
        ("A. Translator <a@example.org>, 2026.", ["A. Translator"]),
        ("Translator: 다른 번역자, 2025, 2026", ["다른 번역자"]),
        ("A. Translator <a@example.org>", ["A. Translator"]),
        ("Copyright (C) 2026 The authors", []),
        ("FIRST AUTHOR <EMAIL@ADDRESS>, YEAR.", []),
        ("Automatically generated, 2026.", []),
        ("This file is distributed under the same license as the package.", []),
        ("See https://example.org, 2026", []),
    ],
)
def test_the_people_of_a_header(pages, comment, names):
    pages.replace("# 한국어 (ko)\n", f"# 한국어 (ko)\n# {comment}\n")
    assert credits.translators() == ({"ko": names} if names else {})
