"""One command adds a language, whose pages say what is not translated yet."""

import re

import pytest

from tools.project.errors import BuildError
from tools.project.languages import TRANSLATIONS
from tools.project.paths import ROOT
from tools.translate.add import add, named, needed, tag
from tools.translate.names import whole


@pytest.mark.parametrize(
    "gettext, expected",
    [
        ("pt_BR", "pt-BR"),
        ("sr@latin", "sr-Latn"),
        ("uz_UZ@cyrillic", "uz-Cyrl-UZ"),
        ("zh_Hant_TW", "zh-Hant-TW"),
        ("ca@valencia", "ca-valencia"),
    ],
)
def test_the_tag_of_a_language(gettext, expected):
    assert tag(gettext) == expected


def test_the_direction_and_the_tag_are_on_its_pages(project):
    project.write("docs/index.md", "# Title\n\nThe `first` text.\n")
    project.write("docs/tutorial/sample.rst", ":orphan:\n\nPage\n====\n")
    project.only_english()
    for language in ("ar", "sr@latin"):
        assert project.run("tools.i18n_add", language)[0] == 0
    status, output = project.run("tools.render")
    assert status == 0, output
    arabic = project.read("_build/render/ar/index.html")
    assert '<html class="no-js" lang="ar" dir="rtl"' in arabic
    serbian = project.read("_build/render/sr-latn/index.html")
    assert '<html class="no-js" lang="sr-Latn" data' in serbian
    assert '<section lang="ar" dir="rtl"' in project.read("_build/render/404.html")
    box = arabic.split('class="incomplete"')[1].split("</p>")[0]
    assert '<span lang="en">Texts of this page that are still shown in English: ' in box
    assert '<span lang="en">See which ones</span>' in box or "See which" not in box


def test_a_language_is_added_once_and_may_be_incomplete(project):
    project.write("docs/index.md", "# Title\n\nThe `first` text.\n")
    project.write("docs/tutorial/sample.rst", ":orphan:\n\nPage\n====\n")
    project.only_english()
    status, output = project.run("tools.i18n_add", "pt_BR")
    assert status == 0 and "português (Brasil) (pt_BR) is on the site, in English until" in output
    assert "\n  tools/translate/rules/pt_br.py\n" in output and "card-pt-br.png" in output
    entry = project.read("languages.toml").rsplit("[[language]]", 1)[1]
    assert 'url = "pt-br"' in entry and 'html = "pt-BR"' in entry
    assert 'name = "português (Brasil)"' in entry and "complete = false" in entry

    catalog = project.read("locales/pt_BR/LC_MESSAGES/index.po")
    assert 'msgid "The `first` text."\nmsgstr ""' in catalog
    status, output = project.run("tools.i18n_check")
    assert status == 0, output
    assert "has pt_BR already" in project.fail("tools.i18n_add", "pt_BR")


@pytest.mark.parametrize("language", TRANSLATIONS, ids=lambda language: language.gettext)
def test_a_translation_has_all_places_that_a_new_one_is_told(language):
    """A place that is renamed, or a language that lacks one, shows that the list is not true."""
    for place in re.findall("^  (\\S+)$", needed(language.gettext), re.M):
        assert (ROOT / place).exists(), place


@pytest.mark.parametrize(
    "spelling, expected",
    [
        *((x, "languages.toml has ko already") for x in ("ko", "KO", "Ko", "ko_KR", "ko_kore")),
        *((x, "languages.toml has zh_CN already") for x in ("zh_cn", "zh", "zh-Hans", "zh-CN")),
        *((x, "languages.toml has en already") for x in ("en", "en_US")),
        ("zh-TW", "gettext spells 'zh-TW' zh_TW: write LANGUAGE=zh_TW"),
        ("PT_br", "gettext spells 'PT_br' pt_BR: write LANGUAGE=pt_BR"),
        *((x, f"{x!r} is no language; ") for x in ("fr@x", "pt_BR;touch x", "klingon", "../x")),
        *((x, f"{x!r} is no language; ") for x in ("ja_JP.UTF-8", "ko_XX", "xx", "ja\n", "ja ")),
    ],
)
def test_a_language_is_not_added_under_another_spelling(spelling, expected):
    with pytest.raises(BuildError) as error:
        add(spelling)
    assert str(error.value).startswith(expected) and "\n" not in str(error.value)


def test_the_name_of_a_language_is_in_its_own_script():
    assert named("sr@latin")[1].get_display_name() == "srpski (latinica)"
    assert whole("sr@latin") != whole("sr") and whole("en_GB") != whole("en")


def test_a_language_of_the_same_address_is_refused(project):
    english = project.read("languages.toml")
    again = '[[language]]\ngettext = "KO"\nurl = "ko"\nhtml = "KO"\nname = "x"\n'
    project.write("languages.toml", f"{english}\n{again}")
    expected = "error: languages.toml: two languages have the gettext ko: remove one\n"
    assert project.run("tools.i18n_status") == (1, expected)


def test_a_language_is_removed_unless_translations_would_be_lost(project):
    project.write("docs/index.md", "# Title\n")
    project.write("docs/tutorial/sample.rst", ":orphan:\n\nPage\n====\n")
    project.only_english()
    before = project.read("languages.toml").rstrip()
    status, output = project.run("tools.i18n_add", "ja")
    assert status == 0 and len(output.splitlines()) < 60, output
    project.write("locales/exemptions.csv", "language,rule,texts,reason\nja,x,y,z\n")
    project.translate({"Title": "題"}, "locales/ja/LC_MESSAGES/index.po")
    expected = "locales/ja has translations that no commit has, such as those of locales/ja/LC_ME"
    assert expected in project.fail("tools.i18n_remove", "ja")
    project.replace('"題"', '""', "locales/ja/LC_MESSAGES/index.po")
    status, output = project.run("tools.i18n_remove", "ja")
    assert status == 0 and "Removed 日本語 (ja) from languages.toml, with locales/ja." in output
    assert project.read("languages.toml").rstrip() == before
    assert not (project.root / "locales/ja").exists()
    assert project.read("locales/exemptions.csv") == "language,rule,texts,reason\n"
    for name in ("ja", "en"):
        assert "name a translation: " in project.fail("tools.i18n_remove", name)
