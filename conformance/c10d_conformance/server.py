"""A process that starts ranks: all those of a pytest that an author's tests share, or some.

There, a conftest may have imported the backend and started threads, so no rank can be forked from
it. The server is a new program, and what it has done is the same for each run. From the command
line, it runs some checks beside others.
"""

import contextlib
import multiprocessing
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, TypeAlias

from c10d_conformance.registry import CHECKS, Check
from c10d_conformance.settings import Mistake, Settings

if TYPE_CHECKING:
    from c10d_conformance.verdicts import Outcome

Answer: TypeAlias = "tuple[list[Outcome], float]"  # with the seconds of the check

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
        self._is_starting = False
        self._pipe: Connection

    def start(self) -> None:
        """Return when the server has found the backend. Raises Mistake if there is none."""
        self._begin()
        self._end_start()

    def timed(self, check: Check, size: int) -> Answer:
        """Return the outcomes of a check with `size` ranks, and its seconds."""
        self.ask(check.id, size)
        return self.answer()

    def ask(self, name: str, size: int) -> None:
        """Let the server run a check, after those for which it has been asked."""
        self._begin()
        self._send((name, size))

    def has_answered(self) -> bool:
        """Tell whether `answer` or an error is there."""
        if self._is_starting and self._pipe.poll():
            self._end_start()
        return not self._is_starting and self._pipe.poll()

    def answer(self) -> Answer:
        """Wait for the first answer that has not been returned."""
        self._end_start()
        return self._receive()

    def _begin(self) -> None:
        if self._process:
            return
        self._pipe, theirs = multiprocessing.Pipe()
        command = [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), *sys.path]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self._is_starting = True
        self._send(self._settings)

    def _end_start(self) -> None:
        if self._is_starting:
            problem = self._receive()
            self._is_starting = False
            if problem:
                self.close()
                raise Mistake(problem)

    def stop(self) -> None:
        """End the server and all ranks at once, also while a check runs."""
        if self._process:
            self._process.terminate()
        self.close()

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

    def _send(self, question: object) -> None:
        with self._ending():
            self._pipe.send(question)

    def _receive(self) -> Any:
        with self._ending():
            return self._pipe.recv()

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        """End the server after an error, such as Ctrl-C."""
        try:
            yield
        except BaseException as error:
            self.stop()
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
                pipe.send(pool.timed(checks[name], size))
