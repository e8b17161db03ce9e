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


def test_it_serves_the_site_at_another_port_if_8000_is_in_use(project):
    project.write("_build/html/index.html", "the site")
    with serving(project), serving(project) as second:
        assert second.startswith("http://127.0.0.1:") and not second.endswith(":8000/")
        assert urllib.request.urlopen(second, timeout=10).read() == b"the site"


def test_what_prevents_it_is_said(project):
    assert "run `make html` first" in project.fail("tools.serve")
    project.write("_build/html/index.html", "the site")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port} is in use" in project.fail("tools.serve", port)
    for port in ("abc", "99999", "-1"):
        expected = f"error: PORT={port}: a port is a number up to 65535\n"
        assert project.run("tools.serve", port) == (1, expected)


def test_it_listens_on_loopback_only():
    with make_server(0) as server:
        assert server.server_address[0] == "127.0.0.1"
