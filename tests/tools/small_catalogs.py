"""Two pages with complete catalogs, for tests of what happens to catalogs."""

import json

import pytest
from babel.messages.catalog import Catalog

from tests.folders import Folder
from tools.project import git, languages, paths
from tools.project.errors import BuildError
from tools.project.languages import TRANSLATIONS
from tools.state import records
from tools.translate import catalogs, check, credits, exemptions, extract, update

PAGE = "locales/ko/LC_MESSAGES/index.po"
EXEMPTIONS = "locales/exemptions.csv"

TEXTS = {
    "ko": {"Title": "제목", "Other page": "다른 쪽", "The `first` text.": "`first` 문장입니다."},
    "zh_CN": {"Title": "标题", "Other page": "另一页", "The `first` text.": "`first` 文字。"},
}


class Pages(Folder):
    """Two pages with complete catalogs, whose messages need no Sphinx."""

    def __init__(self, root):
        super().__init__(root)
        self.write("docs/index.md", "")
        # The messages of each page, and which of them are plain: see sphinxext's plain_messages.
        self.messages = {"index": ["Title", "The `first` text."], "tutorial/sample": ["Other page"]}
        self.plain = {"index": {}, "tutorial/sample": {}}

    def replace(self, old, new, name=PAGE):
        super().replace(old, new, name)

    def translate(self, texts, name=PAGE):
        super().translate(texts, name)

    def extracted(self):
        """Return a catalog of msgids for each page, as the extraction by Sphinx leaves them."""
        self.write("gettext/plain-messages.json", json.dumps(self.plain))
        for page, texts in self.messages.items():
            template = Catalog()
            for text in texts:
                template.add(text)
            self.write(f"gettext/{page}.pot", catalogs.write(template))
        return {page: self.root / f"gettext/{page}.pot" for page in self.messages}

    def check(self):
        """Return the findings of the check."""
        try:
            check.check()
        except BuildError as error:
            return str(error)
        return ""


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """Two pages in two languages, whose messages need no Sphinx; the commands act on them."""
    locales = tmp_path / "locales"
    for module in (languages, catalogs):
        monkeypatch.setattr(module, "LOCALES", locales)
    for module in (catalogs, check, credits, extract, update):
        of_test = [x for x in TRANSLATIONS if x.gettext in TEXTS]
        monkeypatch.setattr(module, "TRANSLATIONS", of_test)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(git, "ROOT", tmp_path)
    monkeypatch.setattr(exemptions, "FILE", tmp_path / EXEMPTIONS)
    monkeypatch.setattr(check, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(check, "EXTRACTION", tmp_path / "gettext")
    monkeypatch.setattr(records, "RECORDS", tmp_path / "records")
    pages = Pages(tmp_path)
    for module in (check, extract):
        monkeypatch.setattr(module, "extracted", pages.extracted)
    update.update()
    for language, texts in TEXTS.items():
        for page in pages.messages:
            pages.translate(texts, PAGE.replace("ko", language).replace("index", page))
    return pages
