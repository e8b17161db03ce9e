"""A folder for a test, with the files that the test writes."""

HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n'


class Folder:
    def __init__(self, root):
        self.root = root

    def read(self, name):
        return (self.root / name).read_text()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def replace(self, old, new, name):
        text = self.read(name)
        assert old in text
        self.write(name, text.replace(old, new, 1))

    def write_catalog(self, page, texts, language="ko"):
        """Write the catalog of a page, from its messages with their translations."""
        entries = "".join(f'\nmsgid "{a}"\nmsgstr "{b}"\n' for a, b in texts.items())
        self.write(f"locales/{language}/LC_MESSAGES/{page}.po", HEADER + entries)

    def translate(self, texts, name):
        """Give translations to those messages of a catalog that have none."""
        catalog = self.read(name)
        for text, translation in texts.items():
            entry = f'msgid "{text}"\nmsgstr '
            catalog = catalog.replace(f'{entry}""', f'{entry}"{translation}"')
        self.write(name, catalog)
