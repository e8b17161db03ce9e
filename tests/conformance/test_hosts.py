"""Simulated hosts: what each has of its own, their network, their end, and the suite on them."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from c10d_conformance import hosts
from c10d_conformance.cli import ERROR
from several_hosts import hosts_or_skip

# This process has threads, and the suite has none yet: it may simulate hosts where this may not.
WHY_NOT = hosts.why_not()
needs_hosts = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
TIMEOUT = 30


@pytest.fixture(params=[{}, {"latency": 0.001, "rate": 1e9}], ids=["switch", "links"])
def two(request):
    """Return two hosts, whose links may have a latency and a rate."""
    with hosts_or_skip(2, **request.param) as both:
        yield both


def output(host, text):
    """Return the lines that a command of the shell writes inside of a host."""
    program = host.popen(["sh", "-c", text], stdout=subprocess.PIPE, text=True)
    return program.communicate(timeout=TIMEOUT)[0].splitlines()


def processes_with(mark):
    """Return the processes whose environment has a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has ended, or is not ours
            pass
    return found


def eventually(is_so):
    """Return whether something becomes true in time."""
    deadline = time.monotonic() + TIMEOUT
    while not (found := is_so()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def test_a_host_has_its_own_name_processes_memory_and_network(two):
    names = ["host0", "host1"]
    assert [output(host, "cat /proc/sys/kernel/hostname") for host in two] == [[x] for x in names]
    boots = [output(host, "cat /proc/sys/kernel/random/boot_id")[0] for host in two]
    boots.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    assert len(set(boots)) == 3
    for host in two:
        assert output(host, "ls /sys/class/net") == ["eth0", "lo"]
        first, _, own = output(host, "cd /proc; ls -d [0-9]* | sort -n; echo $$")[:3]
        assert first == "1" and int(own) < 20
        assert output(host, "ls /dev/shm; touch /dev/shm/mine; ls /dev/shm") == ["mine"]
        assert output(host, "getent hosts host1")[0].split() == [two[1].address, "host1"]
    assert not Path("/dev/shm/mine").exists() and socket.gethostname() not in names


ECHO = """
import socket
server = socket.create_server(("", 5000))
print("ready", flush=True)
connection, _ = server.accept()
while data := connection.recv(1):
    connection.send(data)
"""
ASK = """
import socket
connection = socket.create_connection(("host0", 5000))
while input():
    connection.send(b"x")
    print(connection.recv(1).decode(), flush=True)
"""


def test_a_cut_network_loses_what_is_sent_until_it_is_restored(two):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    server = two[0].popen([sys.executable, "-c", ECHO], **pipes)
    assert server.stdout.readline() == b"ready\n"
    client = two[1].popen([sys.executable, "-c", ASK], **pipes)
    os.set_blocking(client.stdout.fileno(), False)

    def answer(seconds):
        client.stdin.write(b"ask\n")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if line := client.stdout.read(2):
                return line
            time.sleep(0.01)
        return None

    assert answer(TIMEOUT) == b"x\n"
    two[0].cut()
    assert answer(1) is None and client.poll() is None
    two[0].restore()
    deadline = time.monotonic() + TIMEOUT
    while not (line := client.stdout.read(2)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert line == b"x\n"
    for program in (server, client):
        program.kill()
        program.communicate()


RECEIVE = """
import socket, sys
server = socket.create_server(("", 5000))
print("ready", flush=True)
connections = [server.accept()[0] for _ in range(2)]
for connection in connections:
    connection.sendall(connection.recv(1))
for connection in connections:
    while connection.recv(1 << 16):
        pass
"""
SEND = """
import socket, sys, time
connection = socket.create_connection(("host0", 5000))
begin = time.monotonic()
connection.sendall(b"x")
connection.recv(1)
print(time.monotonic() - begin)
connection.sendall(bytes(250_000))
connection.close()
"""


def test_links_have_a_latency_and_a_rate():
    """The card of a host is shared by those that send to it. Nothing comes too early."""
    with hosts_or_skip(3, latency=0.05, rate=10e6) as three:
        pipe = {"stdout": subprocess.PIPE, "text": True}
        receiver = three[0].popen([sys.executable, "-c", RECEIVE], **pipe)
        assert receiver.stdout.readline() == "ready\n"
        begin = time.monotonic()
        senders = [host.popen([sys.executable, "-c", SEND], **pipe) for host in three[1:]]
        round_trips = [float(sender.communicate(timeout=TIMEOUT)[0]) for sender in senders]
        receiver.communicate(timeout=TIMEOUT)
        assert min(round_trips) >= 2 * 0.05
        assert time.monotonic() - begin >= 2 * 250_000 * 8 / 10e6


@pytest.mark.parametrize("links", [{"latency": -1}, {"rate": 0}, {"rate": float("nan")}])
def test_links_that_cannot_be(links):
    with pytest.raises(ValueError, match="links cannot have"), hosts.simulated_hosts(2, **links):
        pass


def test_programs_end_with_their_hosts():
    with hosts_or_skip(3) as three:
        programs = [host.popen(["sleep", "100"]) for host in three]
    assert [program.returncode for program in programs] == [-signal.SIGKILL] * 3


HAS_LINKS = """
from c10d_conformance.hosts import simulated_hosts
with simulated_hosts(2, latency=0.001) as hosts:
    program = hosts[0].popen(["sleep", "100"])
    print("ready", flush=True)
    input()
print("ended", flush=True)
input()
"""


@needs_hosts
@pytest.mark.parametrize("is_killed", [False, True], ids=["context", "killed"])
def test_links_end_with_their_hosts(tmp_path, is_killed):
    mark = f"C10D_TEST_MARK={tmp_path}"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = {**os.environ, "C10D_TEST_MARK": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", HAS_LINKS], env=environment, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        # Two hosts, a program, the links, and this one.
        assert eventually(lambda: len(processes_with(mark)) == 5)
        if not is_killed:
            print(file=process.stdin, flush=True)
            assert process.stdout.readline() == "ended\n"
            assert processes_with(mark) == [process.pid]
        process.kill()
    assert eventually(lambda: not processes_with(mark))


SAYS_WHERE = """
import os, socket
if "RANK" in os.environ:
    with open(os.environ["PLACES"], "a") as file:
        names = ("RANK", "LOCAL_RANK", "GLOO_SOCKET_IFNAME")
        print(socket.gethostname(), *(os.environ[name] for name in names), file=file)
"""


def command(*arguments):
    """Return a command line of the suite on two hosts."""
    start = [sys.executable, "-m", "c10d_conformance", "--backend", "gloo", "--hosts", "2"]
    return [*start, *arguments]


@needs_hosts
def test_ranks_are_on_the_hosts(tmp_path):
    (tmp_path / "says_where.py").write_text(SAYS_WHERE)
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    environment = {**os.environ, "PYTHONPATH": path, "PLACES": str(tmp_path / "places")}
    report = tmp_path / "report.json"
    options = ["--import", "says_where", "--ranks", "4", "--report", str(report)]
    done = subprocess.run(
        command(*options, "-k", "registered or names"),
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 ranks on 2 hosts: " in done.stdout.splitlines()[-1]
    assert json.loads(report.read_text())["hosts"] == 2
    places = {"host0 0 0 eth0", "host0 1 1 eth0", "host1 2 0 eth0", "host1 3 1 eth0"}
    assert set((tmp_path / "places").read_text().splitlines()) == places


@needs_hosts
def test_all_init_methods_work_and_a_hang_has_stacks_on_two_hosts(tmp_path):
    report = tmp_path / "report.json"
    options = ["--import", "defective", "--ranks", "2", "--limit", "3", "--report", str(report)]
    start = [sys.executable, "-m", "c10d_conformance", "--backend", "defective", "--hosts", "2"]
    done = subprocess.run(
        [*start, *options, "-k", "init_methods or all_reduce_layouts"],
        env={**os.environ, "C10D_DEFECT": "an_empty_tensor_hangs"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    methods, layouts = json.loads(report.read_text())["checks"]
    assert methods["counts"]["right"] == 3
    stacks = layouts["failures"][0]["stacks"]
    assert "defective.py" in stacks and "rank 1" in stacks


@needs_hosts
def test_nothing_is_left_of_a_killed_suite(tmp_path):
    mark = f"C10D_TEST_MARK={tmp_path}"
    environment = {**os.environ, "C10D_TEST_MARK": str(tmp_path), "TMPDIR": str(tmp_path)}
    suite = subprocess.Popen(command(), env=environment, stdout=subprocess.PIPE, text=True)
    assert suite.stdout.readline()  # of the first check
    assert len(processes_with(mark)) > 3, "the suite, the first process of each host, and ranks"
    suite.kill()
    suite.communicate(timeout=TIMEOUT)
    assert eventually(lambda: not processes_with(mark))


def test_without_iproute2_the_suite_says_what_to_install(tmp_path):
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command(), env=environment, capture_output=True, text=True, timeout=60)
    text = "simulated hosts need the command `ip`: install iproute2"
    assert (done.returncode, done.stderr) == (ERROR, f"c10d-conformance: {text}\n")


@pytest.mark.skipif(not shutil.which("setpriv") or os.geteuid() != 0, reason="for root")
def test_without_the_right_to_create_namespaces_the_suite_says_what_to_do():
    without = ["setpriv", "--bounding-set=-all"]
    done = subprocess.run(without + command(), capture_output=True, text=True, timeout=60)
    assert done.returncode == ERROR and len(done.stderr.splitlines()) == 1
    assert "may not simulate hosts" in done.stderr and "allow user namespaces" in done.stderr
