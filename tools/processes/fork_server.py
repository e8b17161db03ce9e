"""Start Python programs without waiting for imports: fork them from a loaded process.

A rank spends nearly all of its life importing PyTorch. This server imports it once.
``popen`` sends it the command line of ``python`` for a program, and gets a process that has
already loaded its modules. Everything else is the program's own: session, standard streams,
environment, arguments, ``__main__``, and the whole shutdown of the interpreter at the end.

A program lives no longer than the connection that requested it. So when a program ends,
however it ends, everything that it has started through the server ends, too.

usage: python -m tools.processes.fork_server PARENT LISTENING_SOCKET MODULE...

PARENT is a process id, and LISTENING_SOCKET the number of an open file.
"""

import ctypes
import faulthandler
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from ..project.errors import BuildError
from .run import kill_tree

# The address of the server, for programs that may start others with it.
ADDRESS = "FORK_SERVER"
LONGEST_ADDRESS = 107  # bytes, without the last, as <linux/un.h> says
LONGEST_REQUEST = 2**20  # bytes
SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36  # From Linux's <linux/prctl.h>.


class ForkedProcess:
    """A process that the server forked, with the methods of subprocess.Popen that are used here."""

    def __init__(self, connection: socket.socket, command: Sequence[str]) -> None:
        self.args = command
        self.returncode: int | None = None
        self._connection = connection
        self.pid = self._receive()
        if self.pid < 0:  # The status of a process that was killed at once.
            raise ConnectionError("the process has ended")

    def _receive(self) -> int:
        if not (message := self._connection.recv(100)):
            raise ConnectionError("the fork server has ended")
        return int(message)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status; raise TimeoutExpired after ``timeout`` seconds."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            try:
                self.returncode = self._receive()
            except ConnectionError:  # The programs end with the server.
                self.returncode = -signal.SIGKILL
            self._connection.close()
        return self.returncode

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the process and everything that it has started."""
        if self.poll() is None:
            self._connection.shutdown(socket.SHUT_WR)
            self.wait()

    def children(self, recursive: bool = False) -> list[psutil.Process]:
        return psutil.Process(self.pid).children(recursive)


def popen(
    command: Sequence[str],
    *,
    stdout: Any,
    stderr: Any,
    env: Mapping[str, str],
    stdin: Any = None,
    address: str | None = None,
) -> ForkedProcess:
    """Start the program of a ``command`` of ``python``.

    Of the interpreter's options, only -W, -X faulthandler and -m are allowed. The standard
    input is empty, whatever ``stdin`` is.
    """
    request = {"arguments": command[1:], "environment": dict(env), "folder": os.getcwd()}
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(address or os.environ[ADDRESS])
        streams = [stdout.fileno(), stderr.fileno()]
        socket.send_fds(connection, [json.dumps(request).encode()], streams)
        return ForkedProcess(connection, command)
    except ConnectionError as error:
        connection.close()
        raise BuildError(
            "could not start Python: the process that loads modules for others has ended. "
            "If it names a file in .venv above, remove .venv and run the command again"
        ) from error


@contextmanager
def running(folder: Path | str, *, modules: Sequence[str], env: Mapping[str, str]) -> Iterator[str]:
    """Run a server that loads ``modules``; yield its address in ``folder``.

    The server accepts requests at once, and starts the programs when it has loaded the modules.
    """
    address = f"{folder}/fork-server"
    if len(os.fsencode(address)) > LONGEST_ADDRESS:
        raise BuildError(f"{address}: too long for a socket; set TMPDIR to a shorter path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        number = listener.fileno()
        numbers = [str(os.getpid()), str(number)]
        server = subprocess.Popen(
            [sys.executable, "-m", "tools.processes.fork_server", *numbers, *modules],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=env,
            pass_fds=[number],
            process_group=0,  # Ctrl-C is for the build, which ends the server itself.
        )
    try:
        yield address
    finally:
        server.terminate()
        server.wait()


def serve(listener: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork a keeper for each request, which forks the program.

    Returns only in the programs, with the request and the numbers of the standard streams.
    """
    server = os.getpid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The system then reaps the keepers.
    while True:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            end_with(server)
            request, streams, _, _ = socket.recv_fds(connection, LONGEST_REQUEST, 2)
            keep(connection, streams)
            return json.loads(request), streams
        connection.close()


def keep(connection: socket.socket, streams: list[int]) -> None:
    """Fork the program, and end it when its requester ends. Returns only in the program."""
    keeper = os.getpid()
    program = os.fork()
    if not program:
        end_with(keeper)
        os.setsid()  # Before the requester knows the number, which it may signal as a group.
        _send(connection, os.getpid())
        connection.close()
        return
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(program)
    readable, _, _ = select.select([ended, connection.fileno()], [], [])
    if ended not in readable:
        kill_tree(psutil.Process(program))
    # Reap the program only after its requester has read the status, so that the number is not
    # used again before.
    result = os.waitid(os.P_PID, program, os.WEXITED | os.WNOWAIT)
    assert result
    _kill_session(program)
    exited = result.si_code == os.CLD_EXITED
    _send(connection, result.si_status if exited else -result.si_status)
    with suppress(ConnectionError):
        connection.recv(1)
    os.waitpid(program, 0)
    os._exit(0)


def _send(connection: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # The requester has ended.
        connection.send(b"%d" % number)


def _kill_session(leader: int) -> None:
    """Kill the processes that a process has left behind."""
    for process in psutil.pids():
        with suppress(ProcessLookupError):
            if os.getsid(process) == leader:
                os.kill(process, signal.SIGKILL)


def end_with(parent: int) -> None:
    """Let the system kill this process when its parent dies, however that happens."""
    ctypes.CDLL(None).prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # It has died already.
        os._exit(1)


def become(request: dict[str, Any], streams: list[int]) -> types.ModuleType:
    """Turn this process into the requested one; return its main program."""
    # Processes that its children leave behind stay below it.
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for standard, stream in enumerate(streams, start=1):
        os.dup2(stream, standard)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [entry for entry in path if entry and entry not in sys.path]
    sys.excepthook = show_exception
    arguments = request["arguments"]
    while (option := arguments.pop(0)) in ("-W", "-X"):
        value = arguments.pop(0)
        if option == "-W":
            sys.warnoptions.append(value)
            warnings.simplefilter(value)
        elif value == "faulthandler":
            faulthandler.enable()
    main: Any = types.ModuleType("__main__")
    if option == "-m":
        main.__spec__ = importlib.util.find_spec(arguments.pop(0))
        main.__file__, main.__package__ = main.__spec__.origin, main.__spec__.parent
    else:
        main.__file__ = option
        sys.path[0] = str(Path(option).resolve().parent)
    sys.argv = [main.__file__, *arguments]
    sys.modules["__main__"] = main
    return main


def show_exception(
    kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
) -> None:
    """Print a traceback that begins with the program, and not with this file."""
    while trace and trace.tb_frame.f_code.co_filename != __file__:
        trace = trace.tb_next
    trace = trace and trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    listener = socket.socket(fileno=int(sys.argv[2]))
    gc.disable()  # What is imported stays.
    for module in sys.argv[3:]:
        importlib.import_module(module)
    gc.freeze()  # Collecting it would copy the pages that all the processes share.
    gc.enable()
    main = become(*serve(listener))
    exec(compile(Path(sys.argv[0]).read_bytes(), sys.argv[0], "exec"), vars(main))
