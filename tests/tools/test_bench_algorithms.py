"""The comparison of algorithms with their predictions, and its ranks on simulated hosts."""

import csv

import pytest
from c10d_conformance.hosts import why_not

from tools import bench_algorithms
from tools.bench_algorithms import rows, summary
from tools.measure.cases import Case
from tools.measure.on_hosts import GLOO, SHM, TCP, Network, measure_on_hosts
from tools.measure.summary import as_csv

WHY_NOT = why_not()
CASE = Case("all_reduce", 1 << 20)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return rows whose times are made up, and whose predictions are not."""
    network = Network(2, 1, latency=0.001, rate=1e9)
    found = [[12_500, 11_000, 19_000], [80_000], [9_000]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("simulator")))
        return rows(network, ["doubling", "ring", GLOO], [CASE], [found], overhead=100)


def test_rows_have_the_median_the_least_and_the_prediction(table):
    columns = ("algorithm", "samples", "median", "least")
    found = [
        [row[name] for name in columns] for row in csv.DictReader(as_csv(table, "").split("\n")[1:])
    ]
    assert found[0] == ["doubling", "3", "12500.0", "11000.0"]
    assert found[2] == ["gloo", "1", "9000.0", "9000.0"]
    # The latency, 1 MiB at 1 Gbit/s, a send and a receive; and a byte costs the processor a little.
    assert float(table[0]["predicted"]) == pytest.approx(1000 + (8 << 20) / 1000 + 200, rel=0.02)
    assert table[2]["predicted"] == ""
    assert summary(table) == "of 2 predictions, 0 are within 20% of the median, and 1 of the least"


def test_lines_for_people(table):
    text = bench_algorithms.line(table[1])
    assert text.startswith("2 ranks on 2 hosts, 1000 Mbit/s all_reduce             1 MiB  ring")


@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
def test_ranks_on_hosts_take_at_least_the_latency():
    network = Network(2, 1, latency=0.005)
    cases = [Case("all_reduce", 4), Case("broadcast and answer", 4)]
    found = measure_on_hosts(network, [TCP, GLOO, "ring"], cases, rounds=2)
    for of_case in found:
        assert [*of_case] == [TCP, GLOO, "ring"]
        assert all(len(times) == 2 and min(times) >= 5000 for times in of_case.values())


@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
def test_shared_memory_is_measured_on_one_host():
    [found] = measure_on_hosts(Network(1, 2), [TCP, SHM], [CASE], rounds=2)
    assert [(name, len(times)) for name, times in found.items()] == [(TCP, 2), (SHM, 2)]
