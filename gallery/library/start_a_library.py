"""
Start a library without its launcher
====================================

A communication library often comes with a launcher that tells each process its rank and passes addresses
around. Under ``torchrun`` that launcher is missing: MPI then takes each process for the only one, and an
all-reduce returns its input, without an error. On this page you decide how your library starts all the same,
who initializes it, and which groups of PyTorch it can then serve.

The example is ``mpich``, a backend in ``extension/mpi_collectives`` that wraps MPICH 5.0.2 as pip installs
it. The frame of :doc:`/right/smallest-backend` does all that is not specific to MPI, so read that page first.

.. diagram:: library/start_a_library/diagram

The store answers for the launcher
----------------------------------

MPI programs start with ``mpiexec``, and PyTorch's own backend ``mpi`` needs a PyTorch built from source. Yet
a process needs little from ``mpiexec``: its rank, the number of ranks, and the addresses of the others. A rank
of c10d knows the first two, and the store of the group can carry the third.

MPICH asks its launcher in version 1.1 of a protocol called PMI, the process management interface: lines of text
through a socket. The variable ``PMI_FD`` has the number of the socket's descriptor, ``PMI_RANK`` the rank, and
``PMI_SIZE`` the number of ranks. With these commands, the processes exchange their addresses:

.. list-table::
   :header-rows: 1

   * - name
     - what it is
   * - ``put``, ``get``
     - commands that publish the address of a rank under a key, and read one
   * - ``barrier_in``
     - the command with which a process waits until all have come

To see all that MPICH asks, a Python program plays the launcher for two processes, and prints the lines of rank 0:

.. admonition:: ``answer`` of the launcher, and the two processes
   :collapsible: closed

   .. list-table::
      :header-rows: 1

      * - name
        - what it is
      * - ``keys``
        - what the processes have put; in the backend, it lies in the store
      * - ``barrier``
        - a function that returns when both processes have called it
      * - ``CONSTANTS``
        - the answers to all other commands, which are always the same

   .. listing:: gallery/library/start_a_library/dialogue.py
      :part: answer

   .. listing:: gallery/library/start_a_library/dialogue.py
      :part: process

   .. listing:: gallery/library/start_a_library/dialogue.py
      :part: shown
"""

from launcher import launch, run_program

run_program("start_a_library/dialogue.py")

# %%
# The output above is the whole dialogue, with shortened lines. A ``get`` must not wait for its key, because MPI
# also asks for keys that no rank puts, such as ``PMI_hwloc_xmlfile``. So only the barrier ensures that rank 1 has put
# its address before rank 0 gets it.
#
# The backend gives the same answers, but what a rank puts goes into the store of the group, which all ranks can read:
#
# .. admonition:: ``answer`` with the keys of the group
#    :collapsible: closed
#
#    MPICH ends the process if an address is not as it was put, so ``checked`` compares each one with its digest.
#
#    .. not-executed::
#       :partly:
#
#       MPICH does not ask for the size of the universe in these runs, nor for anything unknown. All ranks come to
#       the barrier.
#
#       .. listing:: extension/mpi_collectives/src/pmi_server.hpp
#          :part: answer
#
# MPI asks while its initialization blocks, so another thread of the process must answer:
#
# .. not-executed::
#    :partly:
#
#    ``socketpair`` never failed.
#
#    .. listing:: extension/mpi_collectives/src/pmi_server.hpp
#       :part: start
#
# MPI asks for addresses only until its first communicator exists. The thread still serves to the end of the
# process, because MPI can end the process if the socket is closed earlier.
#
# With this server for PMI, ``torchrun`` starts MPI:
#
# .. listing:: gallery/library/start_a_library/all_reduce.py
#    :part: start

launch("start_a_library/all_reduce.py", ranks=2)

# %%
# Each rank has 3, the sum of 1 and 2, so MPI has connected the two processes. If MPI took each for the only one, the
# ranks would still have 1 and 2.
#
# Bug: a barrier that is answered at once
# ---------------------------------------
#
# A server that answers each line at once is simpler than one that makes ranks wait. In the next program, the
# launcher in Python does this with the barrier, too. ``show`` starts only rank 0, and prints the last lines:
#
# .. listing:: gallery/library/start_a_library/early_barrier.py
#    :part: mistake

run_program("start_a_library/early_barrier.py")

# %%
# Rank 0 finds no address of rank 1, and MPI returns no error: an assertion inside MPI ends the process. If all ranks
# start at the same time, the bug shows only now and then.
#
# The fix is a barrier that counts the ranks: at ``barrier_in``, the thread of the backend that serves PMI increases a
# counter in the store, and answers when the counter has reached the number of ranks.
#
# The process owns the library
# ----------------------------
#
# A program creates and destroys groups, but ``MPI_Init`` may be called only once in a process. So MPI belongs to
# the process, and the first group starts it:
#
# .. admonition:: ``World``, one for the process
#    :collapsible: closed
#
#    ``Needs`` asks the host for what MPI will take, and ``Turn`` lets one group of the process connect at a time.
#    The backend does without the sessions of MPI 4, which can start again.
#
#    If the host is short of something, MPI ends the process without an error of Python. So before the start, each rank
#    checks that the host has what MPI will take: a little more than 1 MiB in ``/dev/shm`` for each rank of the host,
#    file descriptors, address space and a thread. If something is missing, the error says what to raise
#    (``needs.hpp``).
#
#    .. listing:: extension/mpi_collectives/src/world.hpp
#       :part: world
#
# The backend never calls ``MPI_Finalize``, for three reasons. After that call no group could start. The call may wait
# for all ranks, of which one may be dead. It also requires that all requests are complete, while a failed operation
# may have left some behind. Since MPI thus never tidies up, the backend does so right after the start:
#
# - MPI shares memory between the ranks of a host under names in ``/dev/shm``. All ranks have opened it when
#   the communicator exists, so the backend then removes the names that this process maps. It leaves those of
#   a killed start, because it cannot see whether a process of another container uses them.
# - The variables of PMI exist only during the start, because a program that the rank starts later would take
#   them for its own. The output of the all-reduce above shows that none is left.
#
# Another launcher, or another package
# ------------------------------------
#
# If ``mpiexec`` has started the process, the variables of PMI exist already. Then the backend starts no PMI thread,
# and only checks that MPI and PyTorch number the ranks alike. So the same extension runs under both launchers:
#
# .. admonition:: The start under both launchers
#    :collapsible: closed
#
#    ``setenv`` may move the list of variables while another thread reads it, so ``Environment`` puts a new list in
#    its place.
#
#    .. listing:: extension/mpi_collectives/src/world.hpp
#       :part: launched
#
# Another package may have initialized MPI already. Under ``mpiexec`` the backend uses that MPI. Otherwise it
# raises an error that says what to do, because that MPI consists of one process.
#
# The first group contains all ranks
# ----------------------------------
#
# MPI numbers its processes once, at the start, so a first group that lacks ranks would leave them out for
# good. The next program tries a first group of ranks 1 and 2, which the backend refuses because rank 0 is
# missing. Then it creates a group of all ranks, and after that the group of ranks 1 and 2:
#
# .. listing:: gallery/library/start_a_library/first_group.py
#    :part: groups

launch("start_a_library/first_group.py", ranks=3)

# %%
# Both ranks raise the same error, because the frame collects the errors of all ranks, as :doc:`/right/rendezvous`
# shows. MPI has not started then, so the program can create the right group afterwards.
#
# If the ranks with the highest numbers are missing, MPI starts without them, because c10d tells the backend the
# ranks of the group but not the size of the world. A later group of all ranks is then refused. A program that
# passes ``"mpich"`` to ``init_process_group`` avoids all this, because the world is then the first group.
#
# A second start, and groups across programs
# ------------------------------------------
#
# The first group thus decides which processes MPI connects, once for the life of a process. A program may then
# destroy its default group, and create another group in which ranks are missing or have other numbers. The new group
# must find its members in MPI, and notice a process that MPI has not connected. So each rank writes two things to the
# store: its number in MPI, and an identifier that was drawn when MPI started.
#
# ``mpich`` cannot connect two kinds of processes: one that starts later, such as a rank that a launcher restarts, and
# those of another program that shares the store, because each program has started MPI itself. The backend notices
# both kinds by their identifiers, which it compares before it calls MPI. If two identifiers differ, all ranks raise
# ``MPI cannot connect processes of different starts of it``, and the other groups go on.
#
# Other libraries
# ---------------
#
# ``torchrun`` alone now starts MPI, because the store carries the addresses in place of MPI's launcher. The store can
# start these libraries, too:
#
# .. list-table::
#    :header-rows: 1
#
#    * - library
#      - what the store carries
#      - who owns it
#    * - NCCL and its relatives
#      - a unique id of 128 bytes: one rank calls ``ncclGetUniqueId``, the others read it, and all call
#        ``ncclCommInitRank``
#      - the group: each communicator has an id of its own, so the first need not contain all ranks
#    * - UCX
#      - the address of each rank's worker, from ``ucp_worker_get_address``, for ``ucp_ep_create``
#      - the process or the group; a worker costs milliseconds, descriptors and some MiB
#    * - libfabric
#      - the address of each rank's endpoint, from ``fi_getname``, for ``fi_av_insert``
#      - the process or the group, as you like
#    * - Open MPI, which uses PMIx
#      - what a PMIx server is asked for: ``PMIx_Put``, ``PMIx_Fence`` and ``PMIx_Get`` have the roles of
#        put, barrier and get. PMIx defines functions and no lines of text, so a server links its library
#      - the process, as here
#
# .. admonition:: The start in the constructor of your transport
#    :collapsible: closed
#
#    With a unique id or an address for each rank, no second thread has to answer. In the constructor of your
#    transport, let ``library().run`` execute the function that connects, as ``World`` does.
#
#    Before that call, rank 0 gets the id, also with ``run``, and publishes it with ``place.keys->publish``, whose
#    text may have any bytes. The others read it with ``place.await``, which also ends when a rank has failed. Begin
#    your keys with the name of your backend, because the frame uses ``place.keys``, too. The next page,
#    :doc:`which-thread-calls`, explains ``run``, and who may call the library.
#
# .. admonition:: After this page you have decided
#
#    - what carries the addresses of your library from rank to rank, and which thread answers when it asks;
#    - who owns the library: the process, or each group;
#    - whether the first group must contain all ranks, and which error a user sees if it does not;
#    - whether you ever finalize the library, and what you tidy up instead;
#    - what happens if another launcher or another package has started the library.
#
# Not run here: these libraries, for which the table follows their documentation.
