"""An edit of the English text loses no translation, and no mark that asks for a review."""

import pytest
from babel.messages.catalog import Catalog

from tools.project import paths
from tools.project.languages import Language
from tools.translate import catalogs, update

TEXT = "Every rank waits for the others before it goes on with its work."
CHANGED = "Every rank waits for all others before it goes on with its work."
AGAIN = "Every rank waits for all other ranks before it goes on with its work."
SECOND = "A collective returns only when each of them has called it."
LINKED = "See [the guide](a.md) for the calls that a backend must have."
KO = {TEXT: "기다립니다.", SECOND: "호출합니다.", LINKED: "[안내](a.md)를 봅니다."}


@pytest.fixture
def edit(tmp_path, monkeypatch):
    """Update the catalogs to pages with other texts; return what is in them then."""
    monkeypatch.setattr(catalogs, "LOCALES", tmp_path)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    language = type("Here", (Language,), {"catalogs": tmp_path})("ko", "ko", "ko", "한국어")

    def edited(**pages):
        templates = {}
        for page, texts in pages.items():
            templates[page] = Catalog()
            for text in texts:
                templates[page].add(text)
        present = {path: catalogs.read(path) for path in sorted(tmp_path.glob("*.po"))}
        for path, text in update.updated(present, templates, language):
            path.write_text(text)
            again = update.updated({path: catalogs.read(path)}, templates, language)
            assert dict(again)[path] == text, "a second update changes nothing"
        return {page: Page(tmp_path / f"{page}.po") for page in pages}

    def translated(texts=KO, **pages):
        for page in edited(**pages).values():
            for text, translation in texts.items():
                page.translate(text, translation)

    edited.translated = translated
    return edited


class Page:
    def __init__(self, path):
        self.path = path

    @property
    def text(self):
        return self.path.read_text()

    def translate(self, text, translation):
        entry = f'msgid "{text}"\nmsgstr '
        self.path.write_text(self.text.replace(f'{entry}""', f'{entry}"{translation}"'))

    def state(self, text):
        """The translation of a text, whether it is fuzzy, and what it was made for."""
        entry = catalogs.read(self.path).get(text)
        return entry.string, entry.fuzzy, *entry.previous_id

    def obsolete(self):
        return {x.id: (x.string, x.fuzzy) for x in catalogs.read(self.path).obsolete.values()}


@pytest.fixture(autouse=True)
def long_lines(monkeypatch):
    monkeypatch.setattr(catalogs, "WIDTH", 1000)


def test_a_change_of_words_then_of_a_link_stays_fuzzy(edit):
    edit.translated(a=[LINKED])
    changed = LINKED.replace("must have", "needs")
    assert edit(a=[changed])["a"].state(changed) == (KO[LINKED], True, LINKED)
    linked = changed.replace("a.md", "b.md")
    for _ in range(3):
        assert edit(a=[linked])["a"].state(linked) == (KO[LINKED], True, LINKED)


def test_a_change_of_a_link_alone_is_followed(edit):
    edit.translated(a=[LINKED])
    linked = LINKED.replace("a.md", "b.md")
    assert edit(a=[linked])["a"].state(linked) == ("[안내](b.md)를 봅니다.", False)


def test_a_text_that_changed_twice_shows_what_was_translated(edit):
    edit.translated(a=[TEXT])
    edit(a=[CHANGED])
    assert edit(a=[AGAIN])["a"].state(AGAIN) == (KO[TEXT], True, TEXT)


def test_a_text_that_is_changed_back_is_translated(edit):
    edit.translated(a=[TEXT])
    edit(a=[CHANGED])
    assert edit(a=[TEXT])["a"].state(TEXT) == (KO[TEXT], False)


def test_an_old_text_is_kept_until_the_new_one_is_reviewed(edit):
    edit.translated(a=[TEXT, SECOND])
    page = edit(a=[CHANGED, AGAIN[::-1]])["a"]
    assert page.obsolete() == {x: (KO[x], False) for x in (SECOND, TEXT)}
    page.path.write_text(page.text.replace("#, fuzzy\n", "").replace(f'#| msgid "{TEXT}"\n', ""))
    page = edit(a=[CHANGED, AGAIN[::-1]])["a"]
    assert page.obsolete() == {SECOND: (KO[SECOND], False)}, "which is just gone"


def test_a_draft_is_not_taken_for_the_translation_of_the_old_text(edit):
    edit.translated(a=[TEXT])
    page = edit(a=[CHANGED])["a"]
    page.path.write_text(page.text.replace('\nmsgstr "기다립니다."', '\nmsgstr "모두 기다립니다."'))
    page = edit(a=[TEXT])["a"]
    assert page.state(TEXT) == (KO[TEXT], False)
    assert page.obsolete()[CHANGED] == ("모두 기다립니다.", True), "and is kept"
    assert edit(a=[CHANGED])["a"].state(CHANGED) == ("모두 기다립니다.", True, TEXT)


@pytest.mark.parametrize("others", [{"a": []}, {}], ids=["its text moves", "its page is renamed"])
@pytest.mark.parametrize(
    "text, state",
    [(TEXT, (KO[TEXT], False)), (CHANGED, (KO[TEXT], True, TEXT))],
    ids=["reviewed", "fuzzy"],
)
def test_a_translation_goes_where_its_text_goes(edit, text, state, others):
    edit.translated(a=[TEXT])
    edit(a=[text])
    assert edit(b=[text], **others)["b"].state(text) == state


def test_a_fuzzy_translation_is_kept_when_its_text_is_gone(edit):
    edit.translated({CHANGED: KO[TEXT]}, a=[CHANGED, SECOND])
    page = edit(a=[CHANGED, SECOND])["a"]
    page.path.write_text(page.text.replace(f'msgid "{CHANGED}', f'#, fuzzy\nmsgid "{CHANGED}'))
    page = edit(a=[SECOND])["a"]
    assert page.obsolete()[CHANGED] == (KO[TEXT], True)
    assert "#, fuzzy\n#~ msgid" in page.text
    assert edit(a=[CHANGED])["a"].state(CHANGED) == (KO[TEXT], True)


def test_a_paragraph_that_moves_and_changes_is_fuzzy(edit):
    edit.translated(a=[TEXT], b=[])
    assert edit(a=[], b=[CHANGED])["b"].state(CHANGED) == (KO[TEXT], True, TEXT)


def test_two_paragraphs_that_are_joined_lose_no_translation(edit):
    edit.translated(a=[TEXT, SECOND])
    page = edit(a=[f"{TEXT} {SECOND}"])["a"]
    assert page.state(f"{TEXT} {SECOND}") == (KO[TEXT], True, TEXT)
    assert page.obsolete() == {x: (KO[x], False) for x in (TEXT, SECOND)}


def test_a_paragraph_that_is_split_keeps_its_translation_twice(edit):
    both = f"{TEXT} {SECOND}"
    edit.translated({both: KO[TEXT]}, a=[both])
    page = edit(a=[TEXT, SECOND])["a"]
    assert page.state(TEXT) == page.state(SECOND) == (KO[TEXT], True, both)


def test_what_is_like_a_text_that_is_still_there_is_not_translated_like_it(edit):
    edit.translated(a=[TEXT])
    assert edit(a=[TEXT, CHANGED])["a"].state(CHANGED) == ("", False)


def test_a_mark_that_was_set_by_hand_stays(edit):
    edit.translated(a=[TEXT], b=[TEXT])
    page = edit(a=[TEXT], b=[TEXT])["a"]
    page.path.write_text(page.text.replace(f'msgid "{TEXT}', f'#, fuzzy\nmsgid "{TEXT}'))
    assert edit(a=[TEXT], b=[TEXT])["a"].state(TEXT) == (KO[TEXT], True)


def test_an_exemption_goes_with_its_text(edit):
    edit.translated(a=[TEXT])
    page = edit(a=[TEXT])["a"]
    # Longer than a line: what would be broken would be no exemption any more.
    exemption = f"# allow word 0a1b2c: {'because of ' * 30}this"
    page.path.write_text(page.text.replace(f'msgid "{TEXT}', f'{exemption}\nmsgid "{TEXT}'))
    assert f"\n{exemption}\n#~ msgid" in edit(a=[])["a"].text
    assert f"\n{exemption}\nmsgid" in edit(b=[TEXT])["b"].text


def test_what_gettext_writes_is_read(edit, tmp_path):
    edit.translated(a=[TEXT])
    page = edit(a=[TEXT])["a"]
    written = '\n#, fuzzy\n#~| msgid "Old."\n#~ msgid "Gone."\n#~ msgstr "사라졌습니다."\n'
    page.path.write_text(page.text + written)
    assert written in edit(a=[TEXT])["a"].text


def test_a_text_that_was_not_translated_is_not_kept(edit):
    edit.translated({TEXT: TEXT}, a=[TEXT])
    assert edit(a=[])["a"].obsolete() == {}
