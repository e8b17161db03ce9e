"""Every algorithm with real bytes, and what the simulator counts and finds. Without PyTorch."""

import os
import subprocess
from math import ceil, log2
from pathlib import Path

import pytest
from c10d_frame.simulate import simulate as simulated

from tools.project.paths import FRAME_PACKAGE, HEADERS, SIMULATOR

FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}", f"-I{FRAME_PACKAGE}"]
# Programs that do not end would fail a test only at its own limit.
LIMIT = 100


def compiled(source, program, *flags):
    command = [os.environ.get("CXX", "c++"), *FLAGS, *flags, source, "-o", program]
    subprocess.run(command, check=True)
    return program


@pytest.fixture(scope="module")
def simulate(tmp_path_factory):
    program = tmp_path_factory.mktemp("simulator") / "simulate"
    compiled(SIMULATOR / "simulate.cpp", program, "-O2")

    def run(**options):
        words = [f"{name}={value}" for name, value in options.items()]
        return subprocess.run([program, *words], capture_output=True, text=True, timeout=LIMIT)

    return run


@pytest.fixture(scope="module")
def transport(tmp_path_factory):
    program = tmp_path_factory.mktemp("transport") / "transport"
    source = Path(__file__).with_name("transport.cpp")
    compiled(source, program, "-O0", "-g", "-fsanitize=address")

    def run(name):
        done = subprocess.run([program, name], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return done.stdout.removesuffix("\n")

    return run


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    program = tmp_path_factory.mktemp("broken") / "broken"
    source = Path(__file__).with_name("broken.cpp")
    compiled(source, program, "-O0", "-g", "-fsanitize=address")

    def run(name, ranks, size=64, ordered="unordered"):
        command = [program, name, str(ranks), str(size), ordered]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def table(simulate):
    """Run the simulator, and return its rows as dictionaries."""

    def rows(**options):
        done = simulate(**options)
        assert done.returncode == 0, done.stderr
        names = ["algorithm", "ranks", "hosts", "bytes", "time"]
        names += ["messages", "sent", "between", "choice"]
        lines = [line.split() for line in done.stdout.splitlines()[1:]]
        return [dict(zip(names, line, strict=True)) for line in lines]

    return rows


def test_every_algorithm_is_right(simulate):
    done = simulate(check="yes")
    assert done.stdout.endswith("runs with real bytes: all right\n"), done.stderr


# The messages that n ranks send, and their bytes, for a tensor of s bytes in all, as textbooks
# count them for powers of two.
COUNTS = {
    ("all_reduce", "ring"): lambda n, s: (2 * n * (n - 1), 2 * (n - 1) * s),
    ("all_reduce", "doubling"): lambda n, s: (n * log2(n), n * log2(n) * s),
    ("all_reduce", "halving"): lambda n, s: (2 * n * log2(n), 2 * (n - 1) * s),
    ("all_reduce", "halving_near"): lambda n, s: (2 * n * log2(n), 2 * (n - 1) * s),
    ("all_reduce", "tree"): lambda n, s: (2 * (n - 1) * 16, 2 * (n - 1) * s),
    ("all_reduce", "direct"): lambda n, s: (2 * n * (n - 1), 2 * (n - 1) * s),
    ("all_gather", "ring"): lambda n, s: (n * (n - 1), (n - 1) * s),
    ("all_gather", "bruck"): lambda n, s: (n * log2(n), (n - 1) * s),
    ("reduce_scatter", "ring"): lambda n, s: (n * (n - 1), (n - 1) * s),
    ("reduce_scatter", "pairwise"): lambda n, s: (n * (n - 1), (n - 1) * s),
    ("reduce_scatter", "direct"): lambda n, s: (n * (n - 1), (n - 1) * s),
    ("broadcast", "binomial"): lambda n, s: (n - 1, (n - 1) * s),
    ("broadcast", "chain"): lambda n, s: (16 * (n - 1), (n - 1) * s),
    ("broadcast", "scatter_gather"): lambda n, s: (
        (n - 1) * (n + 1),
        (n - 1) * s + n * log2(n) / 2 * s / n,
    ),
    ("reduce", "binomial"): lambda n, s: (n - 1, (n - 1) * s),
    ("all_to_all", "direct"): lambda n, s: (n * (n - 1), (n - 1) * s),
    ("all_to_all", "pairwise"): lambda n, s: (n * (n - 1), (n - 1) * s),
    ("all_to_all", "bruck"): lambda n, s: (n * log2(n), n * log2(n) / 2 * s),
    ("gather", "direct"): lambda n, s: (n - 1, (n - 1) * s / n),
    ("scatter", "direct"): lambda n, s: (n - 1, (n - 1) * s / n),
}


@pytest.mark.parametrize(("operation", "algorithm"), COUNTS)
def test_messages_and_bytes(table, operation, algorithm):
    size = 1 << 20
    rows = table(operation=operation, algorithm=algorithm, ranks="2,16,64", bytes=size)
    for row in rows:
        expected = COUNTS[operation, algorithm](int(row["ranks"]), size)
        assert (int(row["messages"]), int(row["sent"])) == expected, row


@pytest.mark.parametrize("ranks", [2, 3, 7, 64])
def test_a_barrier_takes_few_steps(table, ranks):
    [row] = table(operation="barrier", ranks=ranks)
    assert int(row["messages"]) == ranks * ceil(log2(ranks))


def test_algorithms_that_know_hosts_send_less_between_them(table):
    rows = table(ranks=64, hosts=8, bytes=1 << 20)
    between = {row["algorithm"]: int(row["between"]) for row in rows}
    fewest = 2 * 7 * (1 << 20)  # of each host, all but its share, there and back
    assert between["halving_near"] == between["two_level_shares"] == fewest
    assert between["halving"] == between["tree"] == 8 * fewest
    assert between["ring"] == fewest * 9 / 8


def test_virtual_times_are_the_same_everywhere(table):
    rows = table(ranks=64, bytes=1 << 20, algorithm="ring,halving,halving_near,tree,two_level")
    times = {row["algorithm"]: row["time"] for row in rows}
    assert times == {
        "ring": "387.4",
        "halving": "334.9",
        "halving_near": "200.5",
        "tree": "676.6",
        "two_level": "742.9",
    }


def test_one_message_takes_what_the_model_says(table):
    """The latency, the bytes at the rate of the card, and the work of both processors."""
    link = {"latency": 1000, "rate": 0.2, "overhead": 7}
    [row] = table(
        operation="broadcast", algorithm="binomial", ranks=2, hosts=2, bytes=1 << 20, **link
    )
    assert float(row["time"]) == pytest.approx(1000 + (1 << 20) * 0.04 + 14, abs=0.1)


def test_ranks_of_a_host_share_its_card(table):
    """Eight ranks that send to eight others take as long as one with eight times the bytes."""
    far = {"operation": "scatter", "latency": 1000, "rate": 1, "hosts": 2}
    [row] = table(ranks=16, bytes=16 << 20, **far)
    assert float(row["time"]) == pytest.approx(1000 + (8 << 20) * 0.008, rel=0.01)


# Latency in microseconds, and rate in Gbit/s.
LINKS = [{"latency": 5, "rate": 400}, {"latency": 50, "rate": 10}, {"latency": 1000, "rate": 1}]
HOSTS_AND_RANKS = [(1, 2), (1, 8), (4, 4), (2, 4), (2, 16), (8, 64), (3, 9), (3, 12), (48, 48)]
KINDS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all"]


@pytest.mark.parametrize("operation", KINDS)
def test_the_choice_is_no_bad_one(table, operation):
    """It depends on sizes, ranks and hosts, but not on links, which differ between hosts.

    Many senders to one rank are slower than the simulator says.
    """
    best, chosen = {}, {}
    for number, link in enumerate(LINKS):
        for hosts, ranks in HOSTS_AND_RANKS:
            sizes = ",".join(str(8 << (3 * step)) for step in range(8))
            for row in table(operation=operation, ranks=ranks, hosts=hosts, bytes=sizes, **link):
                case, time = (number, hosts, ranks, row["bytes"]), float(row["time"])
                if row["choice"] == "yes":
                    chosen[case] = time
                elif row["algorithm"] == "direct" and ranks > 16:
                    continue
                best[case] = min(time, best.get(case, time))
    assert chosen.keys() == best.keys()
    assert max(chosen[case] / best[case] for case in best) < 3


def test_the_choice_for_many_ranks(table):
    rows = table(operation="broadcast", ranks=1024, bytes=1 << 20)
    fastest = min(rows, key=lambda row: float(row["time"]))
    assert fastest["choice"] == "yes"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # Every kind, chosen by size and ranks, gives what an exchange gives.
        ("collectives", ""),
        ("messages", ""),
        ("kept", "waits; waits; "),
        ("missing", "1 2 3 "),
        (
            "other kinds",
            "the ranks do not agree: rank 0 runs all_reduce of 40 bytes of uint32 with SUM with "
            "root 0, rank 1 runs reduce of 40 bytes of uint32 with SUM with root 0",
        ),
        (
            "other sizes",
            "the ranks do not agree: rank 0 runs all_reduce of 40 bytes of uint32 with SUM with "
            "root 0, rank 1 runs all_reduce of 44 bytes of uint32 with SUM with root 0",
        ),
        (
            "a monitored barrier",
            "the ranks do not agree: rank 0 runs barrier with root 0, rank 1 runs "
            "monitored_barrier with root 0",
        ),
        ("pieces", "the ranks do not agree: rank 1 sends 44 bytes to rank 0, which expects 40"),
        (
            "messages of other sizes",
            "the ranks do not agree: rank 0 runs send with tag 0 to rank 1, rank 1 runs recv "
            "with tag 0 from rank 0",
        ),
        (
            "disagreements",
            "the ranks do not agree: rank 0 runs send with tag 1 to rank 1, rank 1 runs recv "
            "with tag 1 from rank 0",
        ),
        (
            "an early message of another size",
            "the ranks do not agree: rank 1 sends 100 bytes to rank 0, which expects 50; 0 wait",
        ),
        # By size; by name; never a type that rounds too much, but its maximum; with equal pieces.
        ("chosen", "two_level ring direct ring direct bruck"),
    ],
)
def test_the_transport_over_messages(transport, name, text):
    assert transport(name) == text


@pytest.mark.parametrize("name", ["all_reduce=rign", "reduce=ring", "ring", "=", "all_reduce"])
def test_names_of_algorithms_that_do_not_exist(transport, name):
    assert transport(name).startswith(f'there is no algorithm "{name}"; there are: all_reduce=ring')


def test_options_that_do_not_exist(simulate):
    for options, text in [
        ({"algorithm": "rign"}, "not all of rign are algorithms of all_reduce, which are: ring"),
        ({"operation": "all_reduc"}, "not all of all are algorithms of all_reduc"),
        ({"rank": 4}, "cannot use rank=4; the options are: algorithm bytes"),
        ({"ranks": "four"}, "ranks=four is not a number"),
        ({"bytes": "-1"}, "bytes=-1 is not a number"),
    ]:
        done = simulate(**options)
        assert done.returncode == 1
        assert text in done.stderr


@pytest.mark.parametrize(
    ("name", "ranks", "text"),
    [
        ("receives first", 3, "rank 0 receives 64 bytes from rank 2 (its transfer 1)\n"),
        ("receives first", 3, "deadlock: 3 of 3 ranks wait for ever\n"),
        ("receives first", 300, "  and 284 more\n"),
        ("sends first", 3, "rank 2 sends 64 bytes to rank 0 (its transfer 1)\n"),
        ("does not receive", 2, "rank 0 sends 0 bytes to rank 1 (its transfer 1)\n"),
        (
            "talks to itself",
            2,
            "rank 0 fails before its first transfer: rank 0 sends to itself\n",
        ),
        ("talks to nobody", 3, "its first transfer: there is no rank 3 among 3 ranks\n"),
        ("differs in sizes", 2, "this one sends 8 bytes, and rank 0 receives 16 bytes"),
        ("does not wait", 2, "rank 0 gives up a message from rank 1 that has not ended\n"),
        ("adds early", 2, "element 0 of output 0 of rank 0 is wrong\n"),
        ("divides twice", 2, "element 0 of output 0 of rank 0 is wrong\n"),
        ("mixes channels", 4, "all_reduce mixes channels of 64 bytes with 4 ranks"),
    ],
)
def test_broken_algorithms(broken, name, ranks, text):
    assert text in broken(name, ranks)


def test_the_others_touch_only_their_memory(broken):
    assert broken("none", 6, 2000) == "all right\n"


def test_an_order_that_differs_between_ranks(broken):
    assert broken("in any order", 2) == "all right\n"
    other = "element 0 of output 0 of rank 1 is not the same as on rank 0"
    assert other in broken("in any order", 2, ordered="ordered")


# -- Algorithms of one's own -----------------------------------------------------------

MINE = """\
#include "frame/algorithms/algorithms.hpp"
inline frame::Steps mine(frame::Messages& net, const frame::Operation& op) {{
  return frame::all_reduce::ring(net, op);
}}
inline const frame::Added kMine({{frame::Kind::all_reduce, "{name}", mine}});
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Return the path of a header with an algorithm, given its name."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def write(name):
        path = tmp_path / f"{name}.hpp"
        path.write_text(MINE.format(name=name))
        return path

    return write


def test_an_added_algorithm_is_known_by_its_name(mine):
    header = mine("mine")
    ring, added = (
        simulated(f"algorithm={name}", "ranks=3", headers=(header,)).splitlines()[1].split()
        for name in ("ring", "mine")
    )
    assert added[0] == "mine" and added[1:-1] == ring[1:-1]
    checked = simulated("algorithm=mine", "check=yes", headers=(header,))
    assert checked == "720 runs with real bytes: all right\n"


def test_a_name_is_added_once(mine):
    with pytest.raises(RuntimeError, match="there are two algorithms all_reduce=ring"):
        simulated(headers=(mine("ring"),))


def test_the_simulator_says_what_it_lacks(mine, monkeypatch, tmp_path):
    with pytest.raises(RuntimeError, match=r"none.hpp: No such file"):
        simulated(headers=(tmp_path / "none.hpp",))
    with pytest.raises(RuntimeError, match="no algorithm has such a name"):
        simulated("algorithm=yours", "check=yes", headers=(mine("mine"),))
    monkeypatch.setenv("CXX", "no-compiler")
    with pytest.raises(RuntimeError, match="cannot run no-compiler; install a C"):
        simulated()
