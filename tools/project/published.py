"""The addresses of the site and its sources, read from site.toml."""

from dataclasses import dataclass
from urllib.parse import urlencode

from .configuration import read
from .paths import ROOT

SITE_FILE = ROOT / "site.toml"
# The addresses of all pages that the site has ever had, without .html, one a line.
ADDRESSES_FILE = ROOT / "addresses.txt"


@dataclass(frozen=True)
class Site:
    url: str
    repository: str
    branch: str
    moved: dict[str, str]  # old addresses of pages, without .html, and where they are now

    @property
    def moved_files(self):
        """Return the files of the old addresses, each below the folder of a language."""
        return {f"{page}.html" for page in self.moved}

    def edit_address(self, path, line=None):
        """Return the address at which to edit a file of the repository in the browser."""
        address = f"{self.repository}/edit/{self.branch}/{path}"
        return f"{address}#L{line}" if line else address

    def file_address(self, path):
        """Return the address at which to read a file of the repository in the browser."""
        return f"{self.repository}/blob/{self.branch}/{path}"

    def issue_address(self, title, body):
        """Return the address at which to open an issue with a title and a beginning."""
        return f"{self.repository}/issues/new?{urlencode({'title': title, 'body': body})}"


PUBLISHED = read(SITE_FILE, lambda file: Site(**file))
