"""`make linkcheck` reports each dead link to a server on loopback."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tools.project.published import PUBLISHED

CHECK = "tools.linkcheck"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        is_there = "missing" not in self.path
        self.server.asked.add(self.path)
        body = b'<h1 id="there">A page</h1>' if is_there else b"no such page"
        self.send_response(200 if is_there else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = set()
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def run(project, monkeypatch):
    """Run the check of a page that holds one link in each line, from line 3 on."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    project.write("docs/tutorial/sample.rst", ":orphan:\n\nSample\n======\n")

    def check(*links):
        lines = "\n".join(f"- [link](<{link}>)" for link in links)
        project.write("docs/index.md", f"# Title\n\n{lines}\n")
        return project.run(CHECK)

    return check


def test_each_broken_link_is_named_with_its_place_and_reason(server, run):
    address = server.address
    links = [f"{address}/good#there", f"{address}/missing", f"{address}/good#gone"]
    status, output = run(*links)
    assert status == 1
    findings = [line for line in output.splitlines() if line.startswith("docs/")]
    assert len(findings) == 2, output
    assert findings[0].startswith(f"docs/index.md:4: {address}/missing: 404 ")
    assert findings[1] == f"docs/index.md:5: {address}/good#gone: Anchor 'gone' not found"


def test_what_is_not_asked(project, server, run):
    """The site itself, its sources, and anchors that GitHub makes in a script."""
    conf = project.read("conf.py")
    assert r'"https://github\.com/"' in conf
    address = f"{server.address}/good/main.cpp"
    project.write("conf.py", conf.replace(r"https://github\.com/", server.address))
    own = [f"{PUBLISHED.url}en/index.html", PUBLISHED.file_address("README.md")]
    status, output = run(*own, f"{address}#L12")
    assert status == 0, output
    assert "1 external links: no findings" in output
    assert server.asked == {"/good/main.cpp"}


def test_a_page_with_faults_is_no_success(run):
    status, output = run("missing.md")
    assert status == 1 and "docs/index.md:3: WARNING" in output
