"""Where the site and its sources are published, read from site.toml."""

from dataclasses import dataclass
from urllib.parse import urlencode

from .configuration import read
from .paths import ROOT

SITE_FILE = ROOT / "site.toml"


@dataclass(frozen=True)
class Site:
    url: str
    repository: str
    branch: str

    def edit_address(self, path, line=None):
        """Where to edit a file of the repository in the browser."""
        address = f"{self.repository}/edit/{self.branch}/{path}"
        return f"{address}#L{line}" if line else address

    def file_address(self, path):
        """Where to read a file of the repository in the browser."""
        return f"{self.repository}/blob/{self.branch}/{path}"

    def issue_address(self, title, body):
        """Where to open an issue that is written in part."""
        return f"{self.repository}/issues/new?{urlencode({'title': title, 'body': body})}"


PUBLISHED = read(SITE_FILE, lambda file: Site(**file))
