"""
Near and far
============

Ranks of one host reach each other sooner than ranks of two hosts, and without the network card that all ranks of a
host share. An all-reduce that does not know the hosts can waste this advantage: with 64 ranks on 8 hosts, halving
sends eight times as many bytes between hosts as it must. This page shows two ways to keep bytes near, and compares
them with up to 4,096 ranks.

Halving from the near end
-------------------------

In the first step of the halving that :doc:`steps-or-bytes` shows, partners exchange half of the tensor, and in each
further step half as much. Because the algorithm is right in any order of the partners, let the largest pieces go to
the nearest rank:

.. diagram:: algorithms/near_and_far/diagram

Three lines choose the partner of each step. ``halving`` begins with the farthest partner, and ``halving_near`` with
the neighbour:

.. listing:: extension/frame/c10d_frame/include/frame/algorithms/all_reduce.hpp
   :start-at: const auto partner = [&]
   :end-at: };

The simulator of :doc:`simulated-ranks` counts what an all-reduce sends between hosts, and computes its time. By
default, each host has 8 ranks and one card with 400 Gbit/s in each direction. Besides the time for its bytes, a
message takes 5 microseconds between hosts, and 1 microsecond within a host:
"""

from shared.tables import print_table, rows, size, time_and_choice


def between(row):
    """Return what the hosts send to each other."""
    return size(row["between"])


FLAT = "algorithm=ring,doubling,halving,halving_near"
table = rows(FLAT, "ranks=64", "bytes=1048576,16777216")
print("between hosts:")
print_table(table, between, across="bytes")
print("microseconds:")
print_table(table, time_and_choice, across="bytes")

# sphinx_gallery_start_ignore
sent = {(row["algorithm"], row["bytes"]): int(row["between"]) for row in table}
assert sent["halving", "1048576"] == 8 * sent["halving_near", "1048576"] == 8 * 14 * 1048576
# sphinx_gallery_end_ignore

# %%
# Between hosts, ``halving_near`` sends 14 times the tensor, the least for 8 hosts that share the sums equally: each
# host sends 7/8 of the tensor to be added, and 7/8 as results. The ring sends little more, because 7 of 8 ranks have
# their next rank on the same host.
#
# A star marks the algorithm that a transport chooses. For 1 MiB, the ring has too many steps. For 16 MiB, the ring is
# a little faster than the choice, which does not know how fast the links are.
#
# One card for all ranks of a host
# --------------------------------
#
# All ranks of a host take the same step at the same time, so eight messages wait for one card. The next table puts 64
# ranks on fewer and fewer hosts, until all ranks are on one. It has the times for 1 MiB in microseconds:

table = []
for hosts in (64, 16, 8, 2, 1):
    table += rows(FLAT, "ranks=64", f"hosts={hosts}", "bytes=1048576")
print_table(table, time_and_choice, across="hosts")

# %%
# Doubling and halving get slower as more ranks share a card, although more of their steps stay near. Only on a single
# host does no message need the card. Near-first halving hardly changes, because with ``r`` ranks on a host, each rank
# exchanges only ``1/r`` of the tensor with other hosts.
#
# Two levels
# ----------
#
# The other way to keep bytes near is to run one algorithm within each host and another between hosts. So each rank
# sorts the ranks by ``net.host``: ``mine`` are the ranks of its host, and ``leaders`` the first ranks of all hosts:
#
# .. admonition:: ``Hosts``
#    :collapsible: closed
#
#    .. listing:: extension/frame/c10d_frame/include/frame/algorithms/all_reduce.hpp
#       :part: hosts
#
# In ``two_level``, a tree brings the sum of each host to its leader, the leaders run ``doubling``, and a tree spreads
# the result. ``Part`` makes a group of some ranks, so each level is an algorithm that exists already. ``on_sums``
# makes the operation of the leaders, which must not divide for ``AVG`` again:
#
# .. listing:: extension/frame/c10d_frame/include/frame/algorithms/all_reduce.hpp
#    :part: two-level
#
# While the leaders of ``two_level`` handle the whole tensor, the other ranks wait. In ``two_level_shares``, each rank
# of a host adds up one share, together with its peers, the ranks that have the same place on the other hosts:
#
# .. admonition:: ``two_level_shares``
#    :collapsible: closed
#
#    .. listing:: extension/frame/c10d_frame/include/frame/algorithms/all_reduce.hpp
#       :part: two-level-shares
#
# If hosts have different numbers of ranks, some shares have no peers, so ``two_level_shares`` runs ``two_level``.
#
# Which algorithm is the fastest depends on the size and the link. The first table has the links from above, the
# second has 1 millisecond and 1 Gbit/s between hosts:

ALL = "algorithm=doubling,halving_near,two_level,two_level_shares"
SIZES = "bytes=8,65536,1048576,16777216"
print_table(rows(ALL, "ranks=64", SIZES), time_and_choice, across="bytes")
print_table(rows(ALL, "ranks=64", SIZES, "latency=1000", "rate=1"), time_and_choice, across="bytes")

# %%
# On the slow links, ``two_level`` is the fastest for 64 KiB: like doubling, it takes three steps between hosts, but
# with one message on each card instead of eight. For 8 bytes, the card hardly matters, and doubling is a little
# faster.
#
# For large tensors, ``two_level_shares`` sends the same bytes between hosts as ``halving_near``, and their times are
# close. So choose by the layout: ``halving_near`` is at its best where the number of ranks is a power of two, and
# ``two_level_shares`` needs equally many ranks on each host.
#
# From 64 to 4,096 ranks
# ----------------------
#
# The first table has the times for 1 MiB with 8 ranks on each host, the second what all hosts together send:

MANY = "algorithm=ring,doubling,halving,halving_near,two_level,two_level_shares"
table = rows(MANY, "ranks=64,512,4096", "bytes=1048576")
print_table(table, time_and_choice, across="ranks")
print_table(table, between, across="ranks")

# sphinx_gallery_start_ignore
times = {(row["algorithm"], row["ranks"]): float(row["time"]) for row in table}
assert times["ring", "4096"] > 50 * times["halving_near", "4096"]
assert times["halving_near", "4096"] < 1.4 * times["halving_near", "64"]
# sphinx_gallery_end_ignore

# %%
# With 4,096 ranks, near-first halving takes only a third longer than with 64, because its 12 further steps have small
# messages. The ring takes 40 times as long as with 64, because each of its 8,190 steps has a latency, which no rate
# shortens.
#
# Bug: ranks that are dealt to hosts in turn
# ------------------------------------------
#
# Near-first halving and the ring expect that ranks with neighbouring numbers share a host. ``torchrun`` numbers ranks
# like that, but a launcher may also deal ranks to the hosts in turn, as Slurm does with ``--distribution=cyclic``.
# This header numbers the simulated ranks in that way, and runs near-first halving:
#
# .. listing:: gallery/algorithms/near_and_far/dealt.hpp
#    :part: dealt

header = ["near_and_far/dealt.hpp"]
names = "algorithm=halving,halving_near,dealt,dealt_by_host"
table = rows(names, "ranks=64", "bytes=1048576", headers=header)
for row in table[:-1]:
    print(f"{row['algorithm']:13}{row['time']:>6} us, {between(row):>8} between hosts")

# sphinx_gallery_start_ignore
assert [row["algorithm"] for row in table] == ["halving", "halving_near", "dealt", "dealt_by_host"]
assert table[2]["between"] == table[0]["between"] and table[3]["between"] == table[1]["between"]
# sphinx_gallery_end_ignore

# %%
# All results are right, so no test of results finds this bug. Only the last line shows it: ``dealt`` sends as many
# bytes between hosts as ``halving``, and is as slow. ``two_level`` and ``two_level_shares`` ask ``net.host``, so the
# numbers of the ranks do not matter to these algorithms.
#
# Exercise
# --------
#
# Write an all-reduce that halves from the near end, whatever the numbers of the ranks are.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Sort the ranks by host, and let ``halving_near`` count them in this order. All ranks sort alike, because
#    ``net.host`` is equal on all of them. An all-reduce gives all ranks the same result, in whatever order they are;
#    for an all-gather, the pieces would have to be sorted, too.
#
#    .. listing:: gallery/algorithms/near_and_far/dealt.hpp
#       :part: solution
#
# The solution with ranks that are dealt in turn:

row = table[-1]
print(f"{row['algorithm']:13}{row['time']:>6} us, {between(row):>8} between hosts")

# %%
# The bytes and the time are those of ``halving_near`` again, although the numbers of the ranks have not changed.
#
# .. admonition:: After this page you have decided
#
#    - whether your algorithm relies on the numbers of the ranks, or asks ``net.host``;
#    - which algorithm reduces small, middle and large tensors on your links;
#    - what runs if the hosts have different numbers of ranks.
#
# Not run here: hosts with several cards, networks whose switches are slower than the cards, and shared memory between
# the ranks of a host, about which :doc:`predictions` has more.
