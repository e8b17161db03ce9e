"""Serve _build/html on the loopback interface.

usage: python -m tools.serve [PORT]

Without PORT, the server uses 8000, or any free port if that is in use. It sends a
Content-Security-Policy that allows nothing from other hosts and no script within a page.
"""

import errno
import functools
import http.server
from pathlib import Path

from .project.errors import BuildError, run_command
from .project.paths import SITE, relative
from .project.ports import port_error, port_of

# The drawings and the theme have styles in the page.
CONTENT_SECURITY_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Sends the policy with every page, and 404.html for an unknown address."""

    def end_headers(self):
        self.send_header("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        super().end_headers()

    def send_error(self, code, message=None, explain=None):
        page = Path(self.directory, "404.html")
        if code != 404 or not page.is_file():
            super().send_error(code, message, explain)
            return
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def make_server(port, folder=SITE):
    """Return a server for a folder; ``port`` 0 means any free one."""
    handler = functools.partial(Handler, directory=str(folder))
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)


def main(text: str = "") -> None:
    port = port_of(text)
    if not (SITE / "index.html").is_file():
        raise BuildError(f"there is no site in {relative(SITE)}: run `make html` first")
    try:
        server = make_server(8000 if port is None else port)
    except OSError as error:
        if port is None and error.errno == errno.EADDRINUSE:
            server = make_server(0)
        else:
            raise BuildError(port_error(port, error)) from None
    print(f"Serving {relative(SITE)} at http://127.0.0.1:{server.server_port}/", flush=True)
    print("Stop with Ctrl-C.", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    run_command(main, __doc__)
