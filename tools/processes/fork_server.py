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
import selectors
import signal
import socket
import subprocess
import sys
import types
import warnings
from contextlib import contextmanager
from pathlib import Path

import psutil

from ..project.errors import BuildError
from .run import kill_tree

# The address of the server, for programs that may start others with it.
ADDRESS = "FORK_SERVER"
LONGEST_ADDRESS = 107  # bytes, without the last, as <linux/un.h> says
SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36  # From Linux's <linux/prctl.h>.


class ForkedProcess:
    """A process that the server forked, with the methods of subprocess.Popen that are used here."""

    def __init__(self, connection, command):
        self.args = command
        self.returncode = None
        self._connection = connection
        self.pid = self._receive()
        if self.pid is None or self.pid < 0:  # No number, or the status of one killed.
            raise ConnectionError("the fork server has ended, or the process ended at once")

    def _receive(self):
        line = b""
        while not line.endswith(b"\n"):
            if not (byte := self._connection.recv(1)):
                return None
            line += byte
        return int(line)

    def wait(self, timeout=None):
        """Return the exit status; raise TimeoutExpired after ``timeout`` seconds."""
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._connection, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(self.args, timeout)
            status = self._receive()
            # Without the server its programs do not live long.
            self.returncode = -signal.SIGKILL if status is None else status
            self._connection.close()
        return self.returncode

    def poll(self):
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        """End the process and everything that it has started."""
        if self.poll() is None:
            self._connection.shutdown(socket.SHUT_WR)
            self.wait()

    def children(self, recursive=False):
        return psutil.Process(self.pid).children(recursive)


def popen(command, *, stdout, stderr, env, stdin=None, address=None):
    """Start the program of a ``command`` of ``python``.

    Of the interpreter's options, only -W, -X faulthandler and -m are allowed. The standard
    input is empty, whatever ``stdin`` is.
    """
    request = {"arguments": command[1:], "environment": env, "folder": os.getcwd()}
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address or os.environ[ADDRESS])
        socket.send_fds(connection, [b"\n"], [stdout.fileno(), stderr.fileno()])
        connection.sendall(json.dumps(request).encode() + b"\n")
        return ForkedProcess(connection, command)
    except ConnectionError as error:
        connection.close()
        raise BuildError(
            "could not start Python: the process that loads modules for others has ended. "
            "If it names a file in .venv above, remove .venv and run the command again"
        ) from error


@contextmanager
def running(folder, *, modules, env):
    """Run a server that loads ``modules``; yield its address in ``folder``.

    The server accepts requests at once, and starts the programs when it has loaded the modules.
    """
    address = f"{folder}/fork-server"
    if len(os.fsencode(address)) > LONGEST_ADDRESS:
        raise BuildError(f"{address}: too long for a socket; set TMPDIR to a shorter path")
    with socket.socket(socket.AF_UNIX) as listener:
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


def serve(listener):
    """Fork a process for each request. Returns only in these processes, with the request."""
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    connections, told = {}, set()  # by process id
    while True:
        # Last who has ended: by then, whoever it had asked for gets killed, too.
        for key, _ in sorted(selector.select(), key=lambda x: x[0].fileobj is woken):
            if key.fileobj is listener:
                connection, request, streams = _accept(listener)
                process = os.fork()
                if not process:
                    os.setsid()  # Before who asked for it may send a signal.
                    _tell(connection, os.getpid())
                    signal.set_wakeup_fd(-1)
                    for mine in (selector, listener, woken, wake, connection):
                        mine.close()
                    for other in connections.values():
                        other.close()
                    return request, streams
                for stream in streams:
                    os.close(stream)
                connections[process] = connection
                selector.register(connection, selectors.EVENT_READ, process)
            elif key.fileobj is woken:
                woken.recv(4096)
                for process in connections.keys() - told:
                    if (status := _status_of_ended(process)) is not None:
                        _kill_session(process)
                        _tell(connections[process], status)
                        told.add(process)
            else:  # Who asked for the process wants it to end, knows its end, or has ended.
                selector.unregister(key.fileobj)
                if key.data not in told:
                    kill_tree(psutil.Process(key.data))
        # Until whoever asked for a process knows its end, its number remains its own.
        for process in told.copy():
            if connections[process] not in selector.get_map():
                os.waitpid(process, 0)
                connections.pop(process).close()
                told.remove(process)


def _accept(listener):
    connection, _ = listener.accept()
    _, streams, _, _ = socket.recv_fds(connection, 1, 2)
    with connection.makefile("rb") as file:
        return connection, json.loads(file.readline()), streams


def _tell(connection, number):
    try:
        connection.sendall(b"%d\n" % number)
    except BrokenPipeError:
        pass


def _status_of_ended(process):
    """Return the exit status, and leave the process on the system's list; or return None."""
    ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    exited = ended.si_code == os.CLD_EXITED
    return ended.si_status if exited else -ended.si_status


def _kill_session(leader):
    """Kill the processes that a process has left behind."""
    for process in psutil.pids():
        try:
            if os.getsid(process) == leader:
                os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def end_with(parent):
    """Let the system kill this process when its parent dies, however that happens."""
    ctypes.CDLL(None).prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # It has died already.
        os._exit(1)


def become(server, request, streams):
    """Turn this process into the requested one; return its main program."""
    end_with(server)
    # What its children leave behind when they end stays below it.
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
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
    main = types.ModuleType("__main__")
    if option == "-m":
        name = arguments.pop(0)
        main.__spec__ = importlib.util.find_spec(name)
        main.__file__, main.__package__ = main.__spec__.origin, main.__spec__.parent
    else:
        main.__file__ = option
        sys.path[0] = str(Path(option).resolve().parent)
    sys.argv = [main.__file__, *arguments]
    sys.modules["__main__"] = main
    return main


def show_exception(kind, error, trace):
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
    main = become(os.getpid(), *serve(listener))
    exec(compile(Path(main.__file__).read_bytes(), main.__file__, "exec"), vars(main))
