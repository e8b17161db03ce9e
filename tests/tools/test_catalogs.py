"""Catalogs: merging is stable, and each fault is reported with file and line."""

import re

import pytest

from tools.project.paths import LOCALES
from tools.translate.update import follow_markup

PAGE = "locales/ko/LC_MESSAGES/index.po"
CHINESE = PAGE.replace("ko", "zh_CN")
EXEMPTIONS = "locales/exemptions.csv"

TEXTS = {
    "ko": {"Title": "제목", "Other page": "다른 쪽", "The `first` text.": "`first` 문장입니다."},
    "zh_CN": {"Title": "标题", "Other page": "另一页", "The `first` text.": "`first` 文字。"},
}


@pytest.fixture(scope="module")
def translated(lasting_project):
    """A site of two pages, with translations of all their messages."""
    project = lasting_project
    project.write("docs/index.md", "# Title\n\nThe `first` text.\n")
    project.write("docs/tutorial/sample.rst", ":orphan:\n\nOther page\n==========\n")
    project.fail("tools.i18n_check")
    for language in TEXTS:
        sphinx = f"{language}/LC_MESSAGES/sphinx.po"
        project.write(f"locales/{sphinx}", (LOCALES / sphinx).read_text())
    assert project.run("tools.i18n_update")[0] == 0
    for language, texts in TEXTS.items():
        folder = f"locales/{language}/LC_MESSAGES"
        for page in ("index", "tutorial/sample"):
            catalog = project.read(f"{folder}/{page}.po")
            for text, translation in texts.items():
                catalog = catalog.replace(
                    f'msgid "{text}"\nmsgstr ""', f'msgid "{text}"\nmsgstr "{translation}"'
                )
            project.write(f"{folder}/{page}.po", catalog)
    project.write(EXEMPTIONS, exemptions_of(project.fail("tools.i18n_check")))
    return project


def exemptions_of(output):
    """Return the rows of our own exemptions that the findings of a check need."""
    header, *rows = (LOCALES / "exemptions.csv").read_text().splitlines(keepends=True)
    return "".join([header, *(x for x in rows if ",".join(x.split(",")[:3]) in output)])


@pytest.fixture
def pages(translated, tmp_path):
    """A copy, which a test may change."""
    return translated.copy(tmp_path / "clone")


def test_complete_catalogs_pass(pages):
    status, output = pages.run("tools.i18n_check")
    assert status == 0, output


def test_updating_twice_changes_no_byte(pages):
    assert pages.run("tools.i18n_update")[0] == 0
    before = pages.read(PAGE)
    assert pages.run("tools.i18n_update") == (0, "")
    assert pages.read(PAGE) == before


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
        ("nplurals=1; plural=0;", "nplurals=x;", "malformed catalog"),
        ("charset=utf-8", "charset=none", "malformed catalog"),
        ("charset=utf-8", "charset=iso-8859-1", "write charset=utf-8"),
        ("charset=utf-8", "charset=utf-7", "malformed catalog"),
        ('msgstr "제목"', 'msgstr  "제목"', "its form is not that"),
    ],
    ids=[
        "untranslated",
        "fuzzy",
        "msgid",
        "keyword",
        "unterminated",
        "quotation mark",
        "rule",
        "escape",
        "msgstr",
        "twice",
        "flag",
        "plural forms",
        "charset",
        "Latin charset",
        "charset of escapes",
        "format",
    ],
)
def test_a_fault_is_named_with_its_place(pages, old, new, expected):
    text = pages.read(PAGE)
    assert old in text
    pages.write(PAGE, text.replace(old, new, 1))
    output = pages.fail("tools.i18n_check")
    assert expected in output
    [line] = [line for line in output.splitlines() if expected in line]
    assert f"{PAGE}:" in line and line.split(f"{PAGE}:")[1].split(":")[0].isdigit()


def test_a_changed_english_text_is_noticed(pages):
    pages.write("docs/index.md", "# Title\n\nThe `second` text.\n")
    output = pages.fail("tools.i18n_check")
    assert f"{PAGE}: lacks 'The `second` text.'" in output
    assert pages.run("tools.i18n_update")[0] == 0
    assert "fuzzy: 'The `second` text.'" in pages.fail("tools.i18n_check")


def test_an_exemption_holds_until_a_text_changes(pages):
    text = pages.read(PAGE).replace('msgstr "`first` 문장입니다."', 'msgstr "`other` 문장입니다."')
    pages.write(PAGE, text)
    output = pages.fail("tools.i18n_check")
    [row] = set(re.findall(rf"add to {EXEMPTIONS}:  (ko,markup,.*)REASON", output))
    others = pages.read(EXEMPTIONS)
    pages.write(EXEMPTIONS, f"{others}{row}for the test\n")
    status, output = pages.run("tools.i18n_check")
    lines = others.count("\n")
    assert status == 0 and f"{lines} exemptions in {EXEMPTIONS}" in output, output
    pages.write(PAGE, text.replace("`other` 문장입니다.", "`third` 문장입니다."))
    assert "markup: lacks" in pages.fail("tools.i18n_check")
    pages.write(PAGE, text.replace("`other` 문장입니다.", "`first` 문장입니다."))
    assert f"{EXEMPTIONS}:{lines + 1}: ko,markup," in pages.fail("tools.i18n_check")


def test_a_catalog_does_not_exempt_itself(pages):
    text = pages.read(PAGE).replace('msgstr "`first` 문장입니다."', 'msgstr "`other` 문장입니다."')
    pages.write(PAGE, text)
    row = re.search(r"  ko,(markup),(\w+),REASON", pages.fail("tools.i18n_check"))
    comment = f"# allow {row[1]} {row[2]}: because\n"
    pages.write(PAGE, text.replace('msgid "The `first`', f'{comment}msgid "The `first`'))
    assert "markup: lacks" in pages.fail("tools.i18n_check")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("language,rule,why\n", f"{EXEMPTIONS}:1: its first line must be"),
        ("language,rule,texts,reason\nko,markup,0a1b2c, \n", f"{EXEMPTIONS}:2: needs 4 cells"),
        (
            "language,rule,texts,reason\n" + "ko,markup,0a,x\n" * 2,
            f"{EXEMPTIONS}:3: is there twice",
        ),
    ],
    ids=["header", "reason", "twice"],
)
def test_a_fault_of_the_exemptions_is_named(pages, text, expected):
    pages.write(EXEMPTIONS, text)
    assert expected in pages.fail("tools.i18n_check")


@pytest.mark.parametrize(
    "name, expected",
    [
        ("locales/en/LC_MESSAGES/index.po", "is in the folder of no translation"),
        ("locales/xx/LC_MESSAGES/index.po", "is in the folder of no translation"),
        ("locales/ko/index.po", "is in the folder of no translation"),
        ("locales/ko/LC_MESSAGES/gone.mo", "is no catalog"),
        ("locales/ko/LC_MESSAGES/index.po~", "is no catalog"),
    ],
    ids=["source language", "no language", "no folder", "compiled", "backup"],
)
def test_a_file_that_is_no_catalog_is_named(pages, name, expected):
    pages.write(name, pages.read(PAGE))
    assert f"{name}: {expected}" in pages.fail("tools.i18n_check")


def test_a_catalog_that_leads_elsewhere_is_not_read(pages):
    (pages.root / "secret").write_text("the secret")
    page, folder = pages.root / PAGE, pages.root / "locales/ko/LC_MESSAGES/linked"
    page.unlink()
    folder.symlink_to(pages.root)
    for target in ("../../../secret", "/dev/zero"):
        page.symlink_to(target)
        for command in ("tools.i18n_check", "tools.i18n_update", "tools.i18n_status"):
            output = pages.fail(command, timeout=20)
            assert f"{PAGE}: is a link" in output and "linked: is a link" in output
            assert "secret" not in output
        page.unlink()


def test_a_name_that_would_begin_a_line_of_output(pages):
    pages.write("locales/ko/LC_MESSAGES/x\n::error::y.po", "nonsense")
    for command in ("tools.i18n_check", "tools.i18n_status"):
        output = pages.fail(command)
        assert "\n::error" not in output and "x\\n::error::y.po: has a name with" in output


def test_a_very_long_translation_is_refused_at_once(pages):
    translation = "가나다라 마바사아 " * 4000
    text = pages.read(PAGE).replace('msgstr "제목"', f'msgstr "{translation}"')
    pages.write(PAGE, text)
    assert "length: " in pages.fail("tools.i18n_check", timeout=10)


def test_a_malformed_catalog_is_all_that_an_extraction_speaks_of(pages):
    pages.write("docs/index.md", "# Title\n\nThe `second` text.\n")
    pages.write(PAGE, pages.read(PAGE).replace('msgid "Title"', 'nonsense "Title"'))
    pages.write(CHINESE, pages.read(CHINESE).replace('msgid "Title"', 'nonsense "Title"'))
    output = pages.fail("tools.i18n_update")
    assert "Traceback" not in output and "Configuration" not in output
    place = rf"(?:error: )?(?:{PAGE}|{CHINESE}):\d+: malformed catalog: .*\n"
    assert re.fullmatch(rf"({place})+", output) and PAGE in output and CHINESE in output, output


def test_the_same_text_is_translated_in_the_same_way(pages):
    other = PAGE.replace("index", "tutorial/sample")
    pages.write("docs/tutorial/sample.rst", ":orphan:\n\nTitle\n=====\n")
    assert pages.run("tools.i18n_update")[0] == 0
    pages.write(
        other, pages.read(other).replace('"Title"\nmsgstr "제목"', '"Title"\nmsgstr "표제"')
    )
    output = pages.fail("tools.i18n_check")
    assert f"{PAGE}:" in output and "agreement: 'Title' is translated in another way" in output


def test_different_texts_of_a_page_are_not_translated_in_the_same_way(pages):
    texts = {
        "Even ranks send.": "짝수 랭크가 보냅니다.",
        "Odd ranks send.": "홀수 랭크가 보냅니다.",
    }
    texts |= {"A barrier": "배리어", "Barriers": "배리어"}
    pages.write("docs/index.md", "# Title\n\n" + "\n\n".join(["The `first` text.", *texts]) + "\n")
    assert pages.run("tools.i18n_update")[0] == 0
    text = pages.read(PAGE)
    for english, korean in texts.items():
        text = text.replace(f'"{english}"\nmsgstr ""', f'"{english}"\nmsgstr "{korean}"')
    pages.write(PAGE, text)
    assert "difference" not in pages.fail("tools.i18n_check")
    pages.write(PAGE, text.replace("홀수", "짝수"))
    output = pages.fail("tools.i18n_check")
    assert re.search(
        rf"{PAGE}:\d+: difference: says the same as 'Even ranks send.' in line", output
    )


FIRST_USE = """\
# Title

```{code-block} python
run()  # Waits for the store.
```

## The store

The store is shared.
"""


def test_the_english_of_a_term_stands_behind_its_first_use(pages):
    """It counts where readers read: comments and labels are no first use."""
    texts = {
        "Waits for the store.": "저장소를 기다립니다.",
        "The store": "저장소",
        "The store is shared.": "저장소(store)를 공유합니다.",
    }
    pages.write("docs/index.md", FIRST_USE + "\nThe `first` text.\n")
    assert pages.run("tools.i18n_update")[0] == 0
    text = pages.read(PAGE)
    for english, korean in texts.items():
        text = text.replace(f'"{english}"\nmsgstr ""', f'"{english}"\nmsgstr "{korean}"')
    pages.write(PAGE, text)
    found = re.findall(rf"{PAGE}:(\d+): first-use: (.*)", pages.fail("tools.i18n_check"))
    line = text[: text.index('msgid "The store"')].count("\n") + 1
    assert found == [(str(line), "lacks the English behind '저장소', on its first use here")]
    pages.write(PAGE, text.replace('"저장소"', '"저장소(store)"'))
    assert "first-use" not in pages.fail("tools.i18n_check")


RULES = """
from .language import LanguageRules

def greeting(message):
    yield "does not greet"

RULES = LanguageRules(rules=(greeting,))
"""


def test_the_rules_of_a_new_language_are_one_new_file(pages):
    pages.write("tools/translate/rules/pt_br.py", RULES)
    assert pages.run("tools.i18n_add", "pt_BR")[0] == 0
    assert pages.run("tools.i18n_update")[0] == 0
    path = PAGE.replace("ko", "pt_BR")
    pages.write(path, pages.read(path).replace('"Title"\nmsgstr ""', '"Title"\nmsgstr "Título"'))
    findings = re.findall(r"^(\S+):\d+: ([\w-]+): ", pages.fail("tools.i18n_check"), re.M)
    assert findings == [(path, "greeting")], "and nothing in other languages"


def test_a_paragraph_that_moves_keeps_its_translation(pages):
    pages.write("docs/index.md", "# Title\n\nAnother.\n")
    pages.write(
        "docs/tutorial/sample.rst", ":orphan:\n\nOther page\n==========\n\nThe `first` text.\n"
    )
    pages.write("docs/moved.md", "---\norphan: true\n---\n# Title\n\nThe `first` text.\n")
    assert pages.run("tools.i18n_update")[0] == 0
    assert '"`first` 문장입니다."' in pages.read(PAGE.replace("index", "moved"))
    assert '"`first` 文字。"' in pages.read(CHINESE.replace("index", "moved"))
    assert "sample.po: its page is gone" not in pages.fail("tools.i18n_check")
    (pages.root / "docs/tutorial/sample.rst").rename(pages.root / "docs/tutorial/renamed.rst")
    assert pages.run("tools.i18n_update")[0] == 0
    assert '"`first` 문장입니다."' in pages.read(PAGE.replace("index", "tutorial/renamed"))
    assert "sample.po: its page is gone" in pages.fail("tools.i18n_check")
    assert "#, fuzzy" not in pages.read(PAGE.replace("index", "moved"))


def test_an_obsolete_text_comes_back(pages):
    before = pages.read(PAGE), pages.read(CHINESE)
    pages.write("docs/index.md", "# Title\n\nSomething quite different, and long.\n")
    assert pages.run("tools.i18n_update")[0] == 0
    assert '#~ msgstr "`first` 문장입니다."' in pages.read(PAGE)
    pages.write("docs/index.md", "# Title\n\nThe `first` text.\n")
    assert pages.run("tools.i18n_update")[0] == 0
    assert (pages.read(PAGE), pages.read(CHINESE)) == before


def test_a_fuzzy_text_shows_the_english_that_it_was_for(pages):
    pages.write("docs/index.md", "# Title\n\nThe `first` texts.\n")
    assert pages.run("tools.i18n_update")[0] == 0
    text = pages.read(PAGE)
    assert '#, fuzzy\n#| msgid "The `first` text."\nmsgid "The `first` texts."' in text
    assert pages.run("tools.i18n_update") == (0, ""), "and stays as it is"


@pytest.mark.parametrize(
    "old, new, translation, expected",
    [
        ("See [x](a.md).", "See [x](b.md).", "[엑스](a.md) 참고.", "[엑스](b.md) 참고."),
        (
            "`x <https://a.org>`__",
            "`x <https://b.org>`__",
            "`가 <https://a.org>`__",
            "`가 <https://b.org>`__",
        ),
        (":func:`f` it", ":class:`f` it", "그 :func:`f`", "그 :class:`f`"),
        ("See [x](a.md).", "See [y](b.md).", "[엑스](a.md) 참고.", None),
        ("[x](a) [y](a)", "[x](b) [y](c)", "[엑스](a) [와이](a)", None),
        ("See [x](a.md).", "See [x](b.md).", "엑스 참고.", None),
    ],
    ids=["link", "address", "role", "text", "ambiguous", "missing"],
)
def test_a_change_of_markup_only_is_followed_when_that_is_safe(old, new, translation, expected):
    assert follow_markup(old, new, translation) == expected
