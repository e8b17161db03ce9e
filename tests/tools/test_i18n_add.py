"""One command adds a language, whose pages say what is not translated yet."""

import pytest

from tools.translate.add import tag


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
    assert project.run("tools.i18n_update")[0] == 0
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
    assert project.run("tools.i18n_add", "pt_BR")[0] == 0
    entry = project.read("languages.toml").rsplit("[[language]]", 1)[1]
    assert 'url = "pt-br"' in entry and 'html = "pt-BR"' in entry
    assert 'name = "português (Brasil)"' in entry and "complete = false" in entry

    assert project.run("tools.i18n_update")[0] == 0
    catalog = project.read("locales/pt_BR/LC_MESSAGES/index.po")
    assert 'msgid "The `first` text."\nmsgstr ""' in catalog
    status, output = project.run("tools.i18n_check")
    assert status == 0, output
    assert "has pt_BR already" in project.fail("tools.i18n_add", "pt_BR")


def test_a_language_that_nobody_speaks(project):
    before = project.read("languages.toml")
    assert "'klingon' is no language" in project.fail("tools.i18n_add", "klingon")
    assert "'../x' is no language" in project.fail("tools.i18n_add", "../x")
    assert project.read("languages.toml") == before
