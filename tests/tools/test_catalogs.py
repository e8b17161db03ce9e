"""Catalogs: each fault is reported with file and line, and the commands find and mend it."""

import re

import pytest

from tests.tools.small_catalogs import EXEMPTIONS, PAGE, TEXTS
from tools.project.paths import LOCALES
from tools.translate import update
from tools.translate.update import follow_markup

CHINESE = PAGE.replace("ko", "zh_CN")
COLUMNS = "language,rule,texts,reason\n"

# -- The commands ------------------------------------------------------------------


@pytest.fixture(scope="module")
def translated(lasting_project):
    """A site of one page, with translations of all its messages."""
    project = lasting_project
    project.write("docs/index.md", "# Title\n\nThe `first` text.\n")
    for language in TEXTS:
        sphinx = f"{language}/LC_MESSAGES/sphinx.po"
        project.write(f"locales/{sphinx}", (LOCALES / sphinx).read_text())
    assert f"{PAGE}: missing; run `make i18n-update`" in project.fail("tools.i18n_check")
    assert project.run("tools.i18n_update")[0] == 0
    for language, texts in TEXTS.items():
        project.translate(texts, PAGE.replace("ko", language))
    return project


@pytest.fixture
def clone(translated, tmp_path):
    """A copy, which a test may change."""
    return translated.copy(tmp_path / "clone")


def test_a_changed_english_text_is_noticed(clone):
    status, output = clone.run("tools.i18n_check")
    assert status == 0 and f"no findings, 0 exemptions in {EXEMPTIONS}" in output, output
    clone.write("docs/index.md", "# Title\n\nThe `second` text.\n")
    assert f"{PAGE}: lacks 'The `second` text.'" in clone.fail("tools.i18n_check")
    assert clone.run("tools.i18n_update")[0] == 0
    assert "fuzzy: 'The `second` text.'" in clone.fail("tools.i18n_check")
    assert clone.run("tools.i18n_update") == (0, ""), "a second update changes nothing"


def test_a_malformed_catalog_is_all_that_an_extraction_speaks_of(clone):
    clone.write("docs/index.md", "# Title\n\nThe `second` text.\n")
    for name in (PAGE, CHINESE):
        clone.replace('msgid "Title"', 'nonsense "Title"', name)
    output = clone.fail("tools.i18n_update")
    place = rf"(?:error: )?(?:{PAGE}|{CHINESE}):\d+: malformed catalog: .*\n"
    assert re.fullmatch(rf"({place})+", output) and PAGE in output and CHINESE in output, output


def test_what_is_dangerous_in_the_folder_is_not_read(clone):
    """A link that leads elsewhere, a device, and a name that would begin a line of output."""
    clone.write("secret", "the secret")
    folder = (clone.root / PAGE).parent
    (folder / "linked").symlink_to(clone.root)
    (folder / "endless.po").symlink_to("/dev/zero")
    (folder / "folder.po").mkdir()
    (folder / "stolen.po").symlink_to(clone.root / "secret")
    (folder / "x\n::error::y.po").write_text("nonsense")
    for command in ("tools.i18n_check", "tools.i18n_update", "tools.i18n_status"):
        output = clone.fail(command, timeout=600)
        for name in ("linked", "endless.po", "folder.po", "stolen.po"):
            assert f"{name}: is no file of its own" in output
        assert "the secret" not in output
        assert "\n::error" not in output and "x\\n::error::y.po: has a name with" in output


RULES = """
from .language import LanguageRules

def greeting(message):
    yield "does not greet"

RULES = LanguageRules(rules=(greeting,))
"""


def test_the_rules_of_a_new_language_are_one_new_file(clone):
    clone.write("tools/translate/rules/pt_br.py", RULES)
    assert clone.run("tools.i18n_add", "pt_BR")[0] == 0
    assert clone.run("tools.i18n_update")[0] == 0
    path = PAGE.replace("ko", "pt_BR")
    clone.translate({"Title": "Título"}, path)
    findings = re.findall(r"^(\S+):\d+: ([\w-]+): ", clone.fail("tools.i18n_check"), re.M)
    assert findings == [(path, "greeting")], "and nothing in other languages"


# -- The check ---------------------------------------------------------------------


def test_complete_catalogs_pass(pages):
    assert pages.check() == ""


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ('msgstr "`first` 문장입니다."', 'msgstr ""', "not translated: 'The `first` text.'"),
        ('msgid "Title"', '#, fuzzy\nmsgid "Title"', "fuzzy: 'Title'"),
        ('msgid "Title"', 'msgid "Tittle"', "not in the English text: 'Tittle'"),
        ('msgid "Title"', 'nonsense "Title"', "malformed catalog: 'nonsense"),
        ('msgid "Title"', 'msgid "Title', "malformed catalog"),
        ('msgstr "`first` 문장입니다."', 'msgstr "`first` "문장입니다."', "malformed catalog"),
        ('msgstr "`first` 문장입니다."', 'msgstr "`other` 문장입니다."', "markup: lacks"),
        ('msgstr "제목"', 'msgstr "제목\\q"', "malformed catalog"),
        ('msgstr "제목"', 'msgstr "제목"\nmsgstr "쪽"', "without a msgid"),
        ('msgid "Title"', 'msgid "Title"\nmsgstr "쪽"\n\nmsgid "Title"', "stands twice"),
        ('msgid "Title"', '#, c-format\nmsgid "Title"', "its form is not that"),
        ('msgstr "제목"', 'msgstr  "제목"', "its form is not that"),
    ],
    ids=[
        *("untranslated", "fuzzy", "msgid", "keyword", "unterminated", "quotation mark", "rule"),
        *("escape", "msgstr", "twice", "flag", "format"),
    ],
)
def test_a_fault_is_named_with_its_place(pages, old, new, expected):
    pages.replace(old, new)
    [line] = [line for line in pages.check().splitlines() if expected in line]
    assert re.match(rf"{PAGE}:\d+: ", line)


@pytest.mark.parametrize("wrong", ["``first`` 문장", "`other` 문장"], ids=["backticks", "code"])
def test_a_fault_of_markup_is_reported_once(pages, wrong):
    pages.replace("`first` 문장", wrong)
    assert len(re.findall(rf"{PAGE}:\d+: ", pages.check())) == 1


def test_an_exemption_holds_until_a_text_changes(pages):
    pages.replace("`first` 문장", "`other` 문장")
    [row] = set(re.findall(rf"add to {EXEMPTIONS}:  (ko,markup,.*)REASON", pages.check()))
    pages.write(EXEMPTIONS, f"{COLUMNS}{row}for the test\n")
    assert pages.check() == ""
    pages.replace("`other` 문장", "`third` 문장")
    assert "markup: lacks" in pages.check()
    pages.replace("`third` 문장", "`first` 문장")
    assert f"{EXEMPTIONS}:2: {row[:-1]} exempts nothing any more" in pages.check()


def test_a_catalog_does_not_exempt_itself(pages):
    pages.replace("`first` 문장", "`other` 문장")
    digest = re.search(r"  ko,markup,(\w+),REASON", pages.check())[1]
    comment = f"# allow markup {digest}: because\n"
    pages.replace('msgid "The `first`', f'{comment}msgid "The `first`')
    assert "markup: lacks" in pages.check()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("language,rule,why\n", ":1: its first line must be"),
        (f"{COLUMNS}ko,markup,0a1b2c, \n", ":2: needs 4 cells"),
        (COLUMNS + "ko,markup,0a,x\n" * 2, ":3: is there twice"),
    ],
    ids=["header", "reason", "twice"],
)
def test_a_fault_of_the_exemptions_is_named(pages, text, expected):
    pages.write(EXEMPTIONS, text)
    assert EXEMPTIONS + expected in pages.check()


@pytest.mark.parametrize(
    "name, expected",
    [
        ("locales/en/LC_MESSAGES/index.po", "is in the folder of no translation"),
        ("locales/xx/LC_MESSAGES/index.po", "is in the folder of no translation"),
        ("locales/ko/index.po", "is in the folder of no translation"),
        ("locales/ko/LC_MESSAGES/gone.mo", "is no catalog"),
        ("locales/ko/LC_MESSAGES/index.txt", "is no catalog"),
        ("locales/ko/LC_MESSAGES/gone.po", "its page is gone"),
    ],
    ids=["source language", "no language", "no folder", "compiled", "other", "no page"],
)
def test_a_file_that_is_no_catalog_is_named(pages, name, expected):
    pages.write(name, pages.read(PAGE))
    assert f"{name}: {expected}" in pages.check()


def test_a_very_long_translation_is_refused_at_once(pages):
    pages.replace('msgstr "제목"', f'msgstr "{"가나다라 마바사아 " * 4000}"')
    assert "length: " in pages.check()


def test_the_same_text_is_translated_in_the_same_way(pages):
    pages.messages["tutorial/sample"].append("Title")
    update.update()
    assert pages.check() == "", "it is translated as on the first page"
    pages.replace('msgstr "제목"', 'msgstr "표제"', PAGE.replace("index", "tutorial/sample"))
    assert "agreement: 'Title' is translated in another way" in pages.check()


def test_different_texts_of_a_page_are_not_translated_in_the_same_way(pages):
    texts = {
        "Even ranks send.": "짝수 랭크가 보냅니다.",
        "Odd ranks send.": "홀수 랭크가 보냅니다.",
        "A barrier": "배리어",
        "Barriers": "배리어",
    }
    pages.messages["index"] += texts
    update.update()
    pages.translate(texts)
    assert "difference" not in pages.check()
    pages.replace("홀수", "짝수")
    expected = rf"{PAGE}:\d+: difference: says the same as 'Even ranks send.' in line"
    assert re.search(expected, pages.check())


def test_the_english_of_a_term_stands_behind_its_first_use(pages):
    """It counts where readers read: comments and labels are no first use."""
    texts = {
        "Waits for the store.": "저장소를 기다립니다.",
        "The store": "저장소",
        "The store is shared.": "저장소(store)를 공유합니다.",
    }
    pages.messages["index"] += texts
    pages.plain["index"] = {"Waits for the store.": False}
    update.update()
    pages.translate(texts)
    text = pages.read(PAGE)
    line = text[: text.index('msgid "The store"')].count("\n") + 1
    assert re.findall(rf"{PAGE}:(\d+): first-use: (.*)", pages.check()) == [
        (str(line), "lacks the English behind '저장소', on its first use here")
    ]
    pages.replace('"저장소"', '"저장소(store)"')
    assert "first-use" not in pages.check()


def test_a_title_has_no_english_behind_a_term_and_is_no_first_use(pages):
    pages.messages["index"] = ["The store", "The store is shared."]
    update.update()
    pages.translate(
        {"The store": "저장소(store)", "The store is shared.": "저장소(store)를 공유합니다."}
    )
    assert re.search(
        rf"{PAGE}:\d+: title: '저장소\(store' has the English behind it", pages.check()
    )
    pages.replace('"저장소(store)"', '"저장소"')
    assert not re.search("title|first-use", pages.check())


@pytest.mark.parametrize(
    "old, new, translation, expected",
    [
        ("`x <http://a>`__", "`x <http://b>`__", "`가 <http://a>`__", "`가 <http://b>`__"),
        (":func:`f` it", ":class:`f` it", "그 :func:`f`", "그 :class:`f`"),
        ("[x](a) [y](a)", "[x](b) [y](c)", "[엑스](a) [와이](a)", None),
        ("See [x](a.md).", "See [x](b.md).", "엑스 참고.", None),
    ],
    ids=["address", "role", "ambiguous", "missing"],
)
def test_a_change_of_markup_only_is_followed_when_that_is_safe(old, new, translation, expected):
    assert follow_markup(old, new, translation) == expected
