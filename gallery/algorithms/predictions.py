"""
Predictions and measurements
============================

A simulator is easy to believe, because its tables never vary. If its model misses what limits your network, you
choose the wrong algorithm. To see which predictions hold, this page lays them beside times of ``tcp`` that were
recorded on simulated hosts, asks what the choice of an algorithm is worth, and shows how you measure your own.

Predicted and measured
----------------------

Because the measurement takes about ten minutes on a quiet machine, the build only reads times that ``make
bench-algorithms`` recorded earlier, on this machine:
"""

# sphinx_gallery_start_ignore
import sys

sys.path.append("predictions")
# sphinx_gallery_end_ignore
import recorded
from result_table import show_table

print(recorded.machine)

# %%
# Each row has the least and the median measured time of an all-reduce, then the predicted time, all in milliseconds.
# The deviation is that of the prediction from the median. The first table is for eight hosts with one rank each, the
# second for two hosts with two. All links have 1 millisecond and 200 Mbit/s:

for hosts, ranks in recorded.PREDICTED:
    show_table(*recorded.predictions(hosts, ranks))

# %%
# How far can you trust such predictions? We call a prediction *near* a measured time if the two differ by at most
# 20 %. The next table counts the predictions that are near the median, and those near the least time; ``8 x 1`` is
# eight hosts with one rank each. The last column is about order. It takes the pairs of algorithms whose predictions for
# a size differ by more than 20 %, and counts how many of them were measured in the predicted order:

show_table(*recorded.counts())

# %%
# To choose an algorithm, you need the order more than the time. Where the last column has two equal numbers, the
# simulator predicted all of these orders correctly.
#
# Why a prediction can be off
# ---------------------------
#
# To see where a prediction can go wrong, look at what the simulator was told. It knew the latency and the rate of the
# links. Only ``overhead`` in the line about the machine, the time for each send and each receive, was fitted. It comes
# from a single measurement: the least time in which two ranks on two hosts reduce 4 bytes. Because each rank sends
# once and receives once, this time is the latency plus twice the overhead. So the overhead also stands for what the
# model lacks: threads that wake up, TCP, and the program that forwards packets between the simulated hosts.
#
# With any algorithm, a prediction can be off for two reasons. If something else disturbs the machine, the measurement
# takes longer. With several ranks on a host, the prediction can be too long, because the model charges a message
# within a host as much overhead as one between hosts.
#
# The model also misses what limits two other algorithms, so do not rely on their predictions. In ``direct``, several
# ranks send to one at the same time, which TCP handles worse than one message after another. In ``tree`` with large
# messages, chunks that go up and down share queues.
#
# On a single host, time goes to copies, to threads that wake up, and to waiting for a processor. None of these is in
# the model, so compare algorithms there only by measurements.
#
# Simulated hosts and links
# -------------------------
#
# A prediction can be checked only on links whose latency and rate you know. Simulated hosts have such links. Each is a
# set of namespaces, as in :doc:`/library/several-hosts`, and its interface is a *TUN* device, which hands packets to a
# program instead of a cable. One program forwards the packets of all hosts. As in the model of the simulator, each host
# sends and receives one packet after another at the given rate, and the latency lies between the two. But the packets,
# TCP and the processors are real.
#
# Use such hosts in your tests, too. They need Linux, ``/dev/net/tun``, and root or user namespaces. The next program
# sends two messages over a link of 20 milliseconds and 10 Mbit/s:
#
# .. admonition:: Two hosts and two messages
#    :collapsible: closed
#
#    .. listing:: gallery/algorithms/predictions/slow_link.py
#       :part: link

from launcher import run_program

run_program("predictions/slow_link.py")

# sphinx_gallery_start_ignore
# Where hosts cannot be simulated, the program says why.
# output may differ in: ^1 B .*: True\n65536 B .*: True\n|^no simulated hosts: .*\n
# sphinx_gallery_end_ignore

# %%
# The first line shows that even a single byte takes as long as the latency. For 64 KiB, the second line adds the 52
# milliseconds that these bytes need at 10 Mbit/s.
#
# What a choice is worth: ``tcp`` and gloo
# ----------------------------------------
#
# gloo also runs over TCP, but mostly with other algorithms, so a comparison shows how much a choice can matter. Here
# ``tcp`` chooses its algorithms itself. Links have 1 Gbit/s and 1 millisecond, and sizes are those of a rank's input.
#
# Each cell is the time of gloo divided by that of ``tcp``, so above 1, ``tcp`` is faster. If the medians and the
# least times give different ratios, the cell has both, the smaller one first.
#
# .. admonition:: A broadcast is measured with an answer
#    :collapsible: closed
#
#    After each broadcast, all ranks meet in a barrier of ``tcp``. Without this barrier, the root would begin the next
#    broadcast before the last one has arrived, so a loop would measure only how fast the root can send. The barrier
#    takes the same time for both backends, so it draws the ratios of small broadcasts nearer to 1.
#
# The line below the tables counts the cases in which gloo is ahead by both ratios:

for hosts, ranks in recorded.COMPARED:
    show_table(*recorded.beside_gloo(hosts, ranks))
print(*recorded.where_gloo_is_ahead(), sep="\n")

# sphinx_gallery_start_ignore
# The text says so.
between = {x: recorded.ratios(2, x) for x in (2, 4)}
assert all(between[x]["all_reduce", "4"][0] > 1.2 for x in between)
assert between[4]["broadcast, answer", "16777216"][0] > 1.5
assert between[2]["broadcast, answer", "16777216"][1] < 1.5
assert between[2]["reduce_scatter", "16777216"][0] > 1.3
# sphinx_gallery_end_ignore

# %%
# The reasons for these ratios lie mostly in the algorithms:
#
# - *Steps*: for an all-reduce of any size, gloo runs a ring. For a small one, ``tcp`` needs a single step between two
#   hosts, however many ranks they have.
# - *Bytes*: for a reduce-scatter, PyTorch's gloo backend runs an all-reduce, and each rank keeps its share of the
#   result. That is about twice as many bytes as a rank must send, so even large tensors take longer.
# - *Hosts*: for a broadcast with two ranks on each host, gloo's tree sends from rank 0 to rank 1, and then from both
#   to the other host. 16 MiB cross the same link twice, which takes at least 268 milliseconds. The chain of ``tcp``
#   sends them once.
# - *No choice*: in an all-to-all, each piece must go to its rank. So both backends send the same bytes between the
#   same ranks, and the difference lies mostly in the cost of copies and threads.
#
# Between two hosts with one rank each, the ratio nears 1 for a large all-reduce or broadcast, because the link is the
# limit. A host must receive 16 MiB, which takes at least 134 milliseconds at 1 Gbit/s, whatever the software does.
#
# Shared memory inside a host
# ---------------------------
#
# Ranks of one host also talk through sockets, although they could share memory. To see what memory would save, the
# next table divides the time of an all-reduce on one host by its time on two hosts with two ranks each. On one host,
# two ranks (``1 x 2``) have a processor each, and four ranks (``1 x 4``) share two processors:

show_table(*recorded.inside_hosts())

# sphinx_gallery_start_ignore
# The text says that memory would save no more than this.
assert all(int(row[-1].split("–")[-1].split()[0]) < 20 for row in recorded.inside_hosts()[1])
# sphinx_gallery_end_ignore

# %%
# On two hosts, the part of the time that is spent inside a host lies between these two columns. Memory that took no
# time at all would save no more than the column ``1 x 4``, because the rest is spent between the hosts.
#
# Because that would save so little, ``tcp`` keeps its sockets inside a host, and ranks that are all on one host can use
# ``shm``. If your links are faster, or your hosts have more ranks, compute the shares of this table first.
#
# What ruins a measurement
# ------------------------
#
# Before you measure on machines of your own, exclude what has spoilt measurements here:
#
# - *Queues that overflow*: after a loss, TCP lowers its rate, so one algorithm seems to have two speeds. The queues
#   here hold the packets of 10 seconds, so that none is lost.
# - *Slow start after a pause*: each timed call begins slowly, unless ``tcp_slow_start_after_idle`` is 0, as here.
# - *Processors that are busy*, with other work or with several ranks: small messages then wait for a processor. So
#   measure on a quiet machine, in turns, as in :doc:`/communicate/measure`, and print the least time beside the
#   median.
# - *Links that are fast against the processors*: you measure the program that forwards packets. So predictions are
#   compared at 200 Mbit/s, not at 1 Gbit/s.
#
# Measure your own algorithm
# --------------------------
#
# In a clone of this site, add your function to the table ``kAlgorithms`` in ``algorithms.hpp``, so that both ``tcp``
# and the simulator know it. Add its name to ``ALGORITHMS`` in ``tools/bench_algorithms.py``. Then ``make
# bench-algorithms`` builds ``tcp``, measures for about ten minutes, and writes the file from which this page is made.
#
# On your own machines, let one program compare groups of ``tcp`` whose options name different ``algorithms``, as in
# :doc:`your-own-algorithm`. For a prediction, measure two ranks on two hosts: an all-reduce of 4 bytes gives the
# latency and twice the overhead together. An all-reduce of 64 MiB gives the rate, because the tensor crosses the link
# once in each direction. If the orders that you then measure are the predicted ones, the model knows what limits your
# network, and you can choose by its tables.
#
# .. admonition:: After this page you have decided
#
#    - which latency, rate and overhead stand for your machines, and from which measurement they come;
#    - how far you trust a predicted time, and from which difference on an order;
#    - what you measure in any case: one host, many senders to one, small messages on busy processors.
#
# Not run here: ``make bench-algorithms`` itself, and real networks between machines.
