"""The server listens on loopback only and does not insist on a port."""

import re
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

from tools.serve import make_server


@contextmanager
def serving(project, *arguments):
    command = [sys.executable, "-u", "-m", "tools.serve", *arguments]
    process = subprocess.Popen(
        command,
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield re.search(r"http://\S+", process.stdout.readline())[0]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_it_serves_the_site(project):
    project.write("_build/html/index.html", "the site")
    with serving(project) as address:
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert answer.read() == b"the site"


def test_another_port_is_taken_when_8000_is_in_use(project):
    project.write("_build/html/index.html", "the site")
    with serving(project), serving(project) as second:
        assert not second.endswith(":8000/")
        assert urllib.request.urlopen(second, timeout=10).read() == b"the site"


def test_a_port_that_was_asked_for_and_is_in_use(project):
    project.write("_build/html/index.html", "the site")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        output = project.fail("tools.serve", port)
    assert f"port {port} is in use" in output


def test_without_a_site_it_says_what_to_do(project):
    assert "run `make html` first" in project.fail("tools.serve")


def test_it_listens_on_loopback_only():
    server = make_server(0)
    try:
        assert server.server_address[0] == "127.0.0.1"
    finally:
        server.server_close()
