"""The process that starts the ranks for a pytest that an author's tests share.

There, a conftest may have imported the backend and started threads, so no rank can be forked from
it. The server is a new program, and what it has done is the same for each run.
"""

import contextlib
import multiprocessing
import signal
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from c10d_conformance.registry import CHECKS, Check
from c10d_conformance.settings import Mistake, Settings

if TYPE_CHECKING:
    from c10d_conformance.verdicts import Outcome

# What pytest can import, the server can import, too: its path has the folders of conftests.
_PROGRAM = """
import sys
number, sys.path = int(sys.argv[1]), sys.argv[2:]
from c10d_conformance import server
server.serve(number)
"""


class Server:
    """A pool in a process of its own, which starts with the first use."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process: subprocess.Popen | None = None
        self._pipe: Connection

    def start(self) -> None:
        """Return when the server has found the backend. Raises Mistake if there is none."""
        if self._process:
            return
        self._pipe, theirs = multiprocessing.Pipe()
        command = [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), *sys.path]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        problem = self._ask(self._settings)
        if problem:
            self.close()
            raise Mistake(problem)

    def run(self, check: Check, size: int) -> "list[Outcome]":
        """Run a check with `size` ranks and return the outcomes of its cases."""
        self.start()
        return self._ask((check.id, size))

    def close(self) -> None:
        """End the server and all ranks."""
        if self._process:
            self._pipe.close()  # ends it, unless a check runs
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _ask(self, question: object) -> Any:
        try:
            self._pipe.send(question)
            return self._pipe.recv()
        except BaseException as error:  # such as Ctrl-C
            if self._process:
                self._process.terminate()
            self.close()
            if isinstance(error, (EOFError, OSError)):
                raise Mistake("the process that starts the ranks has ended") from None
            raise


def serve(number: int) -> None:
    """Run checks for the process at the other end of a pipe, an open file, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # pytest gets Ctrl-C, too, and ends this process
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    pipe = Connection(number)
    settings = pipe.recv()
    from c10d_conformance.preparation import prepared_pool

    with contextlib.ExitStack() as stack:
        try:
            pool = stack.enter_context(prepared_pool(settings))
        except Mistake as mistake:
            pipe.send(str(mistake))
            return
        pipe.send(None)
        checks = {check.id: check for check in CHECKS}
        with contextlib.suppress(EOFError, OSError):
            while True:
                name, size = pipe.recv()
                pipe.send(pool.run(checks[name], size))
