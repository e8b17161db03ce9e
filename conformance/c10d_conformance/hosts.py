"""Simulated hosts on one machine: namespaces of Linux, whose networks a virtual switch joins.

    with simulated_hosts(2) as hosts:
        server = hosts[0].popen(["my-program", hosts[0].address])

A host has its own interfaces, name, processes, /dev/shm, System V memory, /proc, /sys, /etc/hosts
and boot id. Files, users, memory, CPUs and GPUs are those of the machine.

A thread can have other namespaces than its process, and what it forks begins there. So each host
is a thread of this process, and its programs are children of this process as any others are.

Links are as fast as the kernel is, unless they get a latency or a rate:

    with simulated_hosts(8, latency=0.001, rate=200e6) as hosts:  # a second has 200 Mbit
        ...
"""

import contextlib
import ctypes
import fcntl
import math
import multiprocessing
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

INTERFACE = "eth0"  # of each host
LINKS = Path(__file__).with_name("links.py")
ENVIRONMENT = {"GLOO_SOCKET_IFNAME": INTERFACE, "TP_SOCKET_IFNAME": INTERFACE}

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_NEW_HOST = _NEW_NET | 0x20000000 | 0x08000000 | 0x04000000 | 0x00020000  # PID, IPC, UTS, mounts
_BIND, _PRIVATE = 0x1000, 0x44000  # the second one with all mounts below
_CAPABILITIES = 1 << 21 | 1 << 12  # CAP_SYS_ADMIN and CAP_NET_ADMIN
_LIBC = ctypes.CDLL(None, use_errno=True)


class HostsError(Exception):
    """Hosts cannot be simulated here; the text says what is missing and what to do."""


class _Seat(threading.Thread):
    """A thread that calls what others give it: in its namespaces, which others do not have."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._calls: SimpleQueue[tuple[Future, Callable[[], Any]] | None] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while call := self._calls.get():
            future, function = call
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

    def call(self, function: Callable[[], Any]) -> Any:
        """Return what the function returns in this thread."""
        future: Future = Future()
        self._calls.put((future, function))
        return future.result()

    def ip(self, *commands: str) -> None:
        """Run commands of iproute2."""
        options: dict[str, Any] = {"input": "\n".join(commands), "text": True}
        done = self.call(lambda: subprocess.run(["ip", "-b", "-"], capture_output=True, **options))
        if done.returncode:
            raise HostsError(f"`ip {'; '.join(commands)}` fails: {done.stderr.strip()}")

    def end(self) -> None:
        """End the thread, and the namespaces that no process is in."""
        self._calls.put(None)
        self.join()


class _Switch:
    """A virtual switch, whose ports lead to the hosts."""

    def __init__(self) -> None:
        self._seat = _Seat()
        self._seat.call(lambda: _system("unshare", _NEW_NET))
        self._seat.ip("link add switch type bridge", "link set switch up")

    def connect(self, host: "Host") -> None:
        """Give a host its interface, which leads here."""
        port = f"port-{host.name}"
        name = f"{port} type veth peer name {INTERFACE} netns {host.first}"
        self._seat.ip(f"link add {name}", f"link set {port} master switch")
        self.cut(host, False)

    def cut(self, host: "Host", is_cut: bool) -> None:
        """Lose all packets of a host, or carry them again."""
        self._seat.ip(f"link set port-{host.name} {'down' if is_cut else 'up'}")

    def end(self) -> None:
        """End the switch."""
        self._seat.end()


class _Links:
    """Links with a latency and a rate: `links.py` carries the packets of all hosts."""

    # A packet costs the program as much CPU whatever its size is. The queue is long because TCP
    # sends more slowly after each loss.
    _INTERFACE = f"link set {INTERFACE} mtu 32000 txqueuelen 10000"
    # A connection does not begin slowly again after each pause, and what TCP does depends on
    # losses only, not on times: those of packets differ with the load of the machine.
    _TCP = {"tcp_slow_start_after_idle": "0", "tcp_congestion_control": "reno"}

    def __init__(self, latency: float, rate: float) -> None:
        if not os.path.exists("/dev/net/tun"):
            raise HostsError("latency and rate need the device /dev/net/tun: load the module tun")
        self._seat = _Seat()  # the program ends with this thread
        # Orders are not cut into pieces, or joined.
        self._orders, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        command = [sys.executable, "-I", str(LINKS), str(latency), str(rate)]
        start = partial(subprocess.Popen, command, stdin=theirs.fileno())
        self._program = self._seat.call(start)
        theirs.close()

    def connect(self, host: "Host") -> None:
        """Give a host its interface, which the program reads and writes."""
        device = host.call(_new_device)
        socket.send_fds(self._orders, [f"connect {host.address}".encode()], [device])
        os.close(device)
        for name, value in self._TCP.items():
            setting = Path("/proc/sys/net/ipv4", name)
            host.call(partial(setting.write_text, value))
        host.ip(self._INTERFACE)

    def cut(self, host: "Host", is_cut: bool) -> None:
        """Lose all packets of a host, or carry them again."""
        self._orders.send(f"{'cut' if is_cut else 'restore'} {host.address}".encode())

    def end(self) -> None:
        """End the program."""
        self._program.kill()
        self._program.wait()
        self._orders.close()
        self._seat.end()


class Host:
    """One simulated host."""

    def __init__(self, number: int, count: int, network: _Switch | _Links) -> None:
        names = [(f"10.77.0.{index + 1}", f"host{index}") for index in range(count)]
        self.address, self.name = names[number]
        self._network, self._seat = network, _Seat()
        self._programs: list[subprocess.Popen] = []
        lines = [f"{address} {name}\n" for address, name in [("127.0.0.1", "localhost"), *names]]
        self.first = self._seat.call(lambda: _new_host(self.name, "".join(lines)))

    def connect(self) -> None:
        """Connect the host with the network."""
        self._network.connect(self)
        address = f"address add {self.address}/24 dev {INTERFACE}"
        self.ip("link set lo up", address, f"link set {INTERFACE} up")

    def call(self, function: Callable[[], Any]) -> Any:
        """Call a function in a thread of this process that is inside; what it forks is so, too."""
        return self._seat.call(function)

    def ip(self, *commands: str) -> None:
        """Run commands of iproute2 inside."""
        self._seat.ip(*commands)

    def popen(self, command: Sequence[Any], **options: Any) -> subprocess.Popen:
        """Start a program inside, with the options of subprocess.Popen; it ends with the host."""
        options = {"cwd": os.getcwd()} | options
        self._programs.append(self.call(lambda: subprocess.Popen(command, **options)))
        return self._programs[-1]

    def cut(self) -> None:
        """Cut the network of this host: packets are lost, and nobody is told."""
        self._network.cut(self, True)

    def restore(self) -> None:
        """End the cut."""
        self._network.cut(self, False)

    def end(self) -> None:
        """End all processes inside, and the host."""
        os.kill(self.first, signal.SIGKILL)  # Linux then ends the others
        deadline = time.monotonic() + 10
        # The first one stays until all are gone, also those that this process must wait for.
        while not os.waitpid(self.first, os.WNOHANG)[0] and time.monotonic() < deadline:
            multiprocessing.active_children()
            for program in self._programs:
                program.poll()
            time.sleep(0.002)
        self._seat.end()


@contextlib.contextmanager
def simulated_hosts(
    count: int, latency: float = 0.0, rate: float = math.inf
) -> Iterator[list[Host]]:
    """Return hosts that last until the context, or this process, ends however it does.

    A packet takes `latency` seconds from host to host. A host sends and receives `rate` bits per
    second each, headers of packets included, so that its senders share it. Neither is exact: a
    packet is never early, and late by the time in which a program of Python carries it, on a busy
    machine by milliseconds. Only IPv4 passes.

    Without the right to create namespaces, this process moves into a user namespace for good,
    where it is root. It must not have threads then.
    """
    if sys.platform != "linux":
        raise HostsError("simulated hosts are namespaces of Linux, which this system is not")
    if not shutil.which("ip"):
        raise HostsError("simulated hosts need the command `ip`: install iproute2")
    if not (latency >= 0 and rate > 0):
        raise ValueError(f"links cannot have latency={latency} and rate={rate}")
    with contextlib.ExitStack() as stack:
        try:
            if not _is_privileged():
                _enter_user_namespace()
            is_plain = (latency, rate) == (0, math.inf)
            network = _Switch() if is_plain else _Links(latency, rate)
            stack.callback(network.end)
            hosts = []
            for number in range(count):
                hosts.append(Host(number, count, network))
                stack.callback(hosts[-1].end)
                hosts[-1].connect()
        except OSError as error:
            raise HostsError(
                f"this process may not simulate hosts ({error}): run it as root with all "
                "capabilities, or allow user namespaces (sysctl user.max_user_namespaces, "
                "kernel.apparmor_restrict_unprivileged_userns)"
            ) from None
        yield hosts


def why_not() -> str | None:
    """Return why a new process cannot simulate hosts here, or None if it can: one tries."""
    done = subprocess.run([sys.executable, "-I", __file__], capture_output=True, text=True)
    return (done.stdout + done.stderr).strip() or None


def _is_privileged() -> bool:
    with open("/proc/self/status") as file:
        effective = next(line for line in file if line.startswith("CapEff:"))
    return int(effective.split()[1], 16) & _CAPABILITIES == _CAPABILITIES


def _enter_user_namespace() -> None:
    if len(os.listdir("/proc/self/task")) > 1:
        raise HostsError(
            "without the capabilities of root, a process can simulate hosts only before it has "
            "threads, which importing PyTorch may start"
        )
    user, group = os.geteuid(), os.getegid()
    _system("unshare", _NEW_USER)
    maps = {"setgroups": "deny", "uid_map": f"0 {user} 1", "gid_map": f"0 {group} 1"}
    for name, text in maps.items():
        Path(f"/proc/self/{name}").write_text(text)


def _new_device() -> int:
    """Create the interface of the host of this thread, and return its TUN device."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    tun_without_headers = 0x0001 | 0x1000
    request = struct.pack("16sH22x", INTERFACE.encode(), tun_without_headers)
    fcntl.ioctl(device, 0x400454CA, request)  # TUNSETIFF
    return device


def _new_host(name: str, addresses: str) -> int:
    """Give this thread the namespaces of a new host, and return the id of its first process."""
    _system("unshare", _NEW_HOST)
    _mount("none", "/", flags=_PRIVATE)
    socket.sethostname(name)
    _mount("tmpfs", "/dev/shm", "tmpfs")
    _mount("sysfs", "/sys", "sysfs")  # it names the interfaces
    _mount_text(addresses, "/etc/hosts")
    with contextlib.suppress(FileNotFoundError):  # no name server can be reached
        services = Path("/etc/nsswitch.conf").read_text()
        _mount_text(re.sub(r"(?m)^hosts:.*", "hosts: files", services), "/etc/nsswitch.conf")
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        # Python warns if a library has threads; the new process uses none.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _be_first(ours, theirs)
    os.close(theirs)
    with open(ours) as file:
        problem = file.read()
    if problem != "ready":
        os.waitpid(child, 0)
        raise OSError(problem)
    return child


def _be_first(ours: int, theirs: int) -> None:
    """Keep a PID namespace as its first process, until the thread ends that has forked it."""
    try:
        _LIBC.prctl(1, signal.SIGKILL)
        os.close(ours)
        os.setsid()  # Ctrl-C is for the others
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for orphans
        try:
            _mount("proc", "/proc", "proc")
            _mount_text(f"{uuid.uuid4()}\n", "/proc/sys/kernel/random/boot_id")
            os.write(theirs, b"ready")
        except OSError as error:
            os.write(theirs, str(error).encode())
            return
        for name in os.listdir("/proc/self/fd"):  # others wait for the ends of pipes
            with contextlib.suppress(OSError):
                os.close(int(name))
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _mount(source: str, target: str, kind: str = "none", flags: int = 0) -> None:
    _system("mount", source.encode(), target.encode(), kind.encode(), flags, None, where=target)


def _mount_text(text: str, target: str) -> None:
    """Let a file of the host have this text."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        os.chmod(file.name, 0o644)
        _mount(file.name, target, flags=_BIND)


def _system(name: str, *arguments: Any, where: str = "") -> None:
    if getattr(_LIBC, name)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name} {where}".strip() + f": {os.strerror(number)}")


if __name__ == "__main__":  # what `why_not` starts
    try:
        with simulated_hosts(2):
            pass
    except HostsError as problem:
        print(problem)
