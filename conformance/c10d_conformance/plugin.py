"""The plugin that pytest finds when the suite is installed: checks beside an author's own tests.

Each pytest of an environment imports this module, so it imports nothing that takes long.
"""

from typing import TYPE_CHECKING

import pytest

from c10d_conformance.options import add_options, settings_of
from c10d_conformance.registry import CAPABILITIES
from c10d_conformance.settings import Mistake, Settings

if TYPE_CHECKING:
    from c10d_conformance.report import Result

START = "--c10d-"
NODE = "c10d"  # the ids of checks begin with it
MARKER = "c10d"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, which are those of the command line."""
    group = parser.getgroup("c10d-conformance", "checks of a backend of torch.distributed")
    add_options(group.addoption, START)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers and, if a backend is named, the plugin that has the checks."""
    register_markers(config)
    if config.getoption("c10d_backend"):
        try:
            settings = settings_of(config.option, START)
        except Mistake as mistake:
            raise pytest.UsageError(str(mistake)) from None
        config.pluginmanager.register(Checks(settings))


def register_markers(config: pytest.Config) -> None:
    """Register a marker for all checks, and one for each capability."""
    config.addinivalue_line("markers", f"{MARKER}: checks of c10d-conformance")
    for name, title in CAPABILITIES.items():
        config.addinivalue_line("markers", f"{MARKER}_{name}: checks of {title}")


class Checks:
    """The checks of a session; pytest calls the methods whose names begin with `pytest_`."""

    def __init__(self, settings: Settings) -> None:
        from c10d_conformance.server import Server

        self.settings = settings
        self.pool = Server(settings)
        self._wanted: list[str] = []  # ids of checks and of tests that the command line names

    def add(self, result: "Result") -> None:
        """Do nothing with the result of a check: pytest's own reports say all."""

    def pytest_report_header(self) -> str:
        """Return the line about the backend."""
        settings = self.settings
        ranks = ",".join(map(str, settings.ranks))
        return f"c10d: {settings.backend} on {settings.device}, {ranks} ranks"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """End a session with a wrong backend before it begins, and before pytest-xdist does."""
        if hasattr(session.config, "workerinput"):
            return  # a process of pytest-xdist: the one that starts these has come by here
        try:
            self.pool.start()
        except Mistake as mistake:
            raise pytest.UsageError(str(mistake)) from None
        if session.config.getoption("numprocesses", None):
            self.pool.close()  # the processes have servers of their own

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Keep ids of checks from pytest, which would look for a file."""
        arguments = session.config.args
        self._wanted = [x for x in arguments if "::" in x]
        arguments[:] = [x for x in arguments if not x.startswith(f"{NODE}::")]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add the checks behind the tests, before options such as -k and -m choose among them."""
        from c10d_conformance.items import Collection

        checks = Collection.from_parent(session, name=NODE, nodeid=NODE, run=self)
        for item in session.genitems(checks):
            if not self._wanted or item.nodeid in self._wanted:
                items.append(item)

    def pytest_unconfigure(self) -> None:
        """End the ranks."""
        self.pool.close()
