"""One command adds a language, whose pages say what is not translated yet."""


def test_a_language_is_added_once_and_may_be_incomplete(project):
    project.write("docs/index.md", "# Title\n\nThe `first` text.\n")
    project.write("docs/tutorial/sample.rst", ":orphan:\n\nPage\n====\n")
    for language in ("ko", "zh_CN"):  # Only the new one is of interest here.
        text = project.read("languages.toml")
        name = f'gettext = "{language}"\n'
        project.write("languages.toml", text.replace(name, name + "complete = false\n"))
    assert project.run("tools.i18n_add", "pt_BR")[0] == 0
    entry = project.read("languages.toml").rsplit("[[language]]", 1)[1]
    assert 'url = "pt-br"' in entry and 'html = "pt-BR"' in entry
    assert 'name = "português (Brasil)"' in entry and "complete = false" in entry

    assert project.run("tools.i18n_update")[0] == 0
    catalog = project.read("locales/pt_BR/LC_MESSAGES/index.po")
    assert 'msgid "The `first` text."\nmsgstr ""' in catalog
    status, output = project.run("tools.i18n_check")
    assert status == 0, output

    wrong = catalog.replace('text."\nmsgstr ""', 'text."\nmsgstr "O `segundo` texto."')
    project.write("locales/pt_BR/LC_MESSAGES/index.po", wrong)
    assert "markup: lacks" in project.fail("tools.i18n_check"), "existing translations are checked"
    assert "has pt_BR already" in project.fail("tools.i18n_add", "pt_BR")


def test_a_language_that_nobody_speaks(project):
    before = project.read("languages.toml")
    assert "'klingon' is no language" in project.fail("tools.i18n_add", "klingon")
    assert "'../x' is no language" in project.fail("tools.i18n_add", "../x")
    assert project.read("languages.toml") == before
