"""
When a host is gone
===================

A rank cannot look at the processes of another host: it only knows what arrives from there. A backend that waits for
data and does nothing else hangs for 30 minutes when a process is killed, and names no rank. This page shows in which
ways a rank gets lost, which of them a connection reports, and how ``tcp`` notices most of the others, so that all
ranks raise one reason that helps.

Closed connections
------------------

For a dead rank on another host, a closed connection is the only quick sign. When a process ends in any way, its kernel
closes its connections. The rank at the other end then reads 0 bytes, or its next call returns ``ECONNRESET`` or
``EPIPE``. Which of these comes is chance, so ``tcp`` has one text for all three, ``it has closed its connection``.

But a connection closes also when a rank leaves, or gives up because of an error. So that the others learn the reason,
a rank follows two rules:

- A rank that leaves or fails first writes why into the store, and only then closes its connections.
- A rank that finds a closed connection first asks the store once more, and only then believes it.

.. admonition:: ``lost``, which asks the store once more
   :collapsible: closed

   .. listing:: extension/frame/c10d_frame/include/frame/connections.hpp
      :start-at: // Before a rank closes
      :end-before: void announce

   ``watch_`` is the class ``Watch`` of :doc:`/library/lost-ranks-of-a-library`. It looks at processes of this host,
   and reads the list of reasons in the store.

The next program loses rank 2 of three ranks in four ways, while the others wait for it in a barrier with a timeout of
two seconds:

.. listing:: gallery/algorithms/lost_hosts/lost_ranks.py
   :part: ways
"""

from launcher import launch, run_program

run_program("lost_hosts/lost_ranks.py")

# %%
# In the first three ways, the other ranks name rank 2 and the reason. They learn from the kernel that the killed rank
# has died, because it ran on their host. A stopped rank keeps its connections, and its kernel still acknowledges data,
# so only the timeout of two seconds ends the wait for it.
#
# Connections that are cut
# ------------------------
#
# If a cable is pulled or a host loses its power, nobody closes anything. TCP sends again and again, by default for
# about 15 minutes, and an idle connection may stay for ever. The limits are options of each socket:
#
# .. listing:: extension/tcp_collectives/src/addresses.hpp
#    :part: options
#
# The last four options are *keepalive*, which ends a silent connection to a host that is gone. After 5 seconds of
# silence, the kernel sends a probe, and 5 seconds later another one. If both stay without an answer, it ends the
# connection, 15 seconds after the last sign of life. The limit is that long because a switch that starts again, or a
# route that changes, may take some seconds, and a training should survive that.
#
# These probes do not help while data waits for an acknowledgement, because Linux sends none then. The option
# ``TCP_USER_TIMEOUT`` would limit that wait, but it would also end connections to healthy ranks. A rank that computes
# for a minute reads nothing meanwhile, and once its buffer is full, its kernel takes no more data.
#
# But that kernel still answers, while no answer comes from a host that is cut off. So ``tcp`` asks its own kernel,
# for each connection on which an operation waits, whether several packets in a row have had no answer:
#
# .. listing:: extension/tcp_collectives/src/addresses.hpp
#    :part: unanswered
#
# To cut two ranks of one machine, the next program gives each of their sockets a filter, which lets the kernel drop
# every packet that arrives. No right of root is needed, and the connection looks as if the cable were gone:
#
# .. listing:: gallery/algorithms/lost_hosts/cut_off.py
#    :part: cut
#
# One pair of ranks then calls an all-reduce, so that data is on its way. In the other pair, one rank waits for a
# message, and only keepalive can notice the cut:
#
# .. listing:: gallery/algorithms/lost_hosts/cut_off.py
#    :part: ways

run_program("lost_hosts/cut_off.py")

# %%
# In the first pair, each rank finds the cut by itself. In the second pair, keepalive reports it to rank 0. Rank 1 has
# called nothing, so it has no error.
#
# Heartbeats in the store
# -----------------------
#
# Not every wait has a connection that could report the loss of a rank. So each rank also has a *heartbeat*: it raises a
# number in the store again and again, and the others see when the number stands still. Both the connections and the
# heartbeat are needed:
#
# - A receive from any rank waits for no connection in particular, so only the heartbeat tells of a dead rank.
# - If two hosts reach the store but not each other, their heartbeats go on, so only the connections tell.
#
# ``Options.heartbeat`` sets the limit of the heartbeat. The limits of the sockets are constants in the code, because
# they depend on the network more than on the program.
#
# A rank that can no longer reach the store raises an error after the time of the heartbeat, so both sides of a cut
# end: :doc:`/library/lost-ranks-of-a-library` shows how.
#
# Failures without a dead rank
# ----------------------------
#
# A collective can also fail on a rank that is alive. Because a collective is a chain of messages, the others then wait
# for messages that will never be sent, perhaps from a rank that knows nothing of the failure. So the rank that fails
# tells all through the store, and the whole group fails.
#
# After a failure, a message may have moved in part. What is left of this message would be taken for the next one, so
# the connection cannot be used again:
#
# .. admonition:: ``forget``, which marks a connection as broken
#    :collapsible: closed
#
#    .. listing:: extension/tcp_collectives/src/sockets.hpp
#       :start-at: // The rest of a message
#       :end-before: // [progress]
#
# Ranks that do not agree
# -----------------------
#
# Ranks can also wait for each other although none of them has failed, because one has a wrong option. That should be
# found before the group exists, and not at the first deadline. The next worker gives rank 1 wrong options three times.
# The first two options name something that does not exist. The third names an algorithm on rank 1 only, so rank 1
# would send other messages than rank 0 expects, and both would wait for each other:
#
# .. listing:: gallery/algorithms/lost_hosts/bad_input.py
#    :part: attempts

launch("lost_hosts/bad_input.py", ranks=2)

# %%
# Both ranks raise each error, of which rank 0 prints the reasons. The third error shows what the ranks compare: the
# protocol, the version of the frame, and the named algorithms.
#
# .. admonition:: ``terms``, which ranks compare
#    :collapsible: closed
#
#    .. listing:: extension/tcp_collectives/src/connect.hpp
#       :start-at: // Raise it with
#       :end-before: // [hello]
#
#    These terms go first in what a rank publishes in the store, so even a rank whose version publishes other things
#    behind them is named, with both versions. The version of the frame counts, too, because another version may
#    choose another algorithm for the same size.
#
# What notices which loss
# -----------------------
#
# In the table, "this host" is the host of the rank that waits. If a rank is late, or if a signal has stopped it on
# this host, nothing shows that, so a timeout must end the wait for it. For each other loss, one of the signs above
# leads to an error that names the reason:
#
# .. list-table::
#    :header-rows: 1
#
#    * - the rank
#      - is noticed by
#      - how soon
#      - the error says
#    * - has been killed on this host
#      - the kernel
#      - about 0.2 s
#      - ``has died (process 4711)``
#    * - has been killed on another host
#      - its closed connections
#      - about 0.3 s
#      - ``is lost: it has closed its connection``
#    * - has left, or its group has failed
#      - a line in the store
#      - about 0.2 s
#      - ``has left the group``, or the reason of the failure
#    * - is on a host that is down, or cut off
#      - its heartbeat in the store
#      - ``heartbeat``, by default 10 s
#      - ``has not been heard from for 10000 ms``
#    * - is cut off, but reaches the store
#      - data or probes without an answer
#      - about 15 s
#      - ``is lost: Connection timed out``
#    * - is late, or has been stopped by a signal on this host
#      - nothing
#      - the timeout of the group or of the call
#      - ``Timed out after …``
#
# Exercise
# --------
#
# Two ranks on two hosts train, and the program computes for a minute between two all-reduces. In that minute, the
# other host loses its power. When does your rank raise an error, and which one? What if the heartbeat were 60
# seconds?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    At its next call. No operation waits during the minute, so no error is raised, but the thread that watches the
#    other ranks has seen the heartbeat stand still. The all-reduce therefore fails at once, and its error says that the
#    rank has not been heard from. With 60 seconds, keepalive has ended the connection after 15, and the error says
#    ``Connection timed out``.
#
# .. admonition:: After this page you have decided
#
#    - after how many seconds without an answer a connection counts as lost, and where users can change it;
#    - how a rank says why it closes its connections, before it does;
#    - what notices a host that is down where no connection does;
#    - what ranks compare before a group exists.
#
# Not run here: ranks on other hosts, whose closed connections, cut links and heartbeats the tests of ``tcp`` and
# ``mpich`` run on simulated hosts; a host that loses its power; and ranks with other versions, which a test imitates.
