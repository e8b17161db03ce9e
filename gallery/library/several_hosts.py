"""
Several hosts, interfaces and linking
=====================================

A backend that works on your machine can fail on others in two ways. The ranks may hang, because the library uses a
network that leads to no other host. Or the import ends with ``cannot open shared object file``, because the loader does
not find the library. This page tests both on one machine, and fixes them.

.. diagram:: library/several_hosts/diagram

The network that one host hides
-------------------------------

A test suite on one host leaves a part of the library untested. Between ranks of one host, MPICH copies through shared
memory; between hosts, it uses the network, which is other code with other bugs. For example, a call that returns over
shared memory may hang over the network. So run your tests over both. To send everything through the network, set
``MPIR_CVAR_NOLOCAL=1`` before the first group is created. For UCX, set ``UCX_TLS=tcp,self``.

Two hosts on one machine
------------------------

With these variables, the ranks still share the name and the interfaces of one host, and see each other's processes. A
backend that relies on one of these passes such tests, and fails on two hosts. So test on two hosts, too, which one
machine can simulate.

Linux can give a process its own network, host name, process ids and ``/dev/shm``, each in a *namespace*.
Containers are made of namespaces, and two sets of them behave like two hosts: ranks in different sets see neither
the memory nor the processes of each other. The function ``simulated_hosts`` makes two such sets. In the next listing,
``popen`` of a host starts a program there. The function belongs to the suite that tests any backend, which
:doc:`/communicate/test-your-backend` explains:

.. listing:: gallery/library/several_hosts/two_hosts.py
   :part: hosts

The ranks compute a sum together. One ``torchrun`` on each host starts them, with the same options as on two real
machines:
"""

from launcher import launch, run_program

run_program("several_hosts/two_hosts.py")

# %%
# Ranks 0 and 1 are on one host, and ranks 2 and 3 on the other. MPI therefore uses shared memory and the network at
# the same time, and every rank gets the same sum. A test can also lose a host: ``cut()`` of a host takes it off the
# network. Then every rank must raise an error by its deadline, including those that can no longer reach the store.
#
# With the option ``--hosts 2``, the conformance suite runs all of its checks on two simulated hosts. It needs the
# program ``ip`` of iproute2, and root or user namespaces. Each host has the interface ``eth0``: make your
# library use it, perhaps through a variable, and choose TCP, because a simulated host has no RDMA.
#
# The network that your users get
# -------------------------------
#
# A simulated host has one network, whereas a real one often has two: one for its users and a faster one for the ranks.
# So you must decide two things: which kind of network your library uses, and through which interface. MPICH supports
# several kinds, and the one that it would choose by itself may not exist on the hosts of your users. The extension
# therefore takes TCP, which works everywhere, unless the environment names another kind. The interface is named by the
# user, with the option ``interface`` of the first group, because that group starts MPI. MPICH reaches TCP through the
# library libfabric, so the extension sets these variables:
#
# .. list-table::
#    :header-rows: 1
#
#    * - name
#      - what it is
#    * - ``MPIR_CVAR_CH4_NETMOD``
#      - the network module of MPICH; ``ofi`` is libfabric
#    * - ``FI_PROVIDER``
#      - the provider of libfabric; ``tcp`` uses sockets
#    * - ``FI_TCP_IFACE``
#      - the network interface of the provider ``tcp``
#
# .. listing:: extension/mpi_collectives/src/world.hpp
#    :part: network
#
# These variables reach MPI alone. The store and the other libraries of a job choose for themselves, so a job that hangs
# while it connects often has one of them on the wrong network. Each has its own place to choose:
#
# .. admonition:: For reference: the interface of each library
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - Library
#         - Choice of the interface
#       * - the ``mpich`` backend
#         - ``Options.interface``, or ``FI_TCP_IFACE``
#       * - Gloo
#         - ``GLOO_SOCKET_IFNAME``
#       * - NCCL
#         - ``NCCL_IB_HCA`` for RDMA, ``NCCL_SOCKET_IFNAME`` for sockets
#       * - UCX
#         - ``UCX_NET_DEVICES``
#       * - the store
#         - the address in ``--master-addr`` or ``--rdzv-endpoint``
#
# If an interface does not exist, MPICH says so in its own words, and on some ranks only. So the extension
# looks first, and its error names the interface. The next program asks for ``fast0``, which does not exist, and then
# for ``lo``, which does:
#
# .. listing:: gallery/library/several_hosts/no_such_interface.py
#    :start-at: for interface in
#    :end-before: dist.destroy_process_group

launch("several_hosts/no_such_interface.py", ranks=2)

# %%
# With ``fast0``, both ranks raise an error that names the interface and each rank that lacks it. MPI has not started
# by then, so the next group can still choose another interface.
#
# .. admonition:: Speed over memory and network
#    :collapsible: closed
#
#    To choose a library, measure it on each network that your users have. ``make bench-backend BACKEND=mpich`` does
#    this for ``mpich`` and gloo, as :doc:`/communicate/measure` explains: over shared memory, where it also measures
#    ``shm``, over TCP, and between two simulated hosts. The build of this site measures nothing, so the drawing
#    shows the result that was accepted last:
#
#    .. diagram:: library/several_hosts/measured
#
#    The file ``extension/measurements_of_mpich.csv`` names the machine and has all cases.
#
#    In the drawing, the median of ``mpich`` is below that of gloo at every size. Small collectives are fast because
#    the thread of the library looks for an answer again and again, whereas the threads of gloo sleep. In return, that
#    thread takes time from the program while a call is open.
#
#    In the file, gloo is ahead in one collective, on four ranks over TCP, and in about half of the cases with
#    messages. A message needs a second step if it is longer than 8 KiB, as :doc:`groups-and-tags` explains.
#
#    A virtual switch moves the packets of the simulated hosts in memory. So the times show what the software
#    costs, and not the speed of a network.
#
# Bug: a library that is found on one machine only
# ------------------------------------------------
#
# So far, every rank has imported the extension. On another machine, even that can fail.
#
# The path of the library is needed twice: by the compiler, to link the extension, and by the dynamic loader, in each
# process that imports the extension. ``library_dirs`` and ``libraries`` in ``setup.py`` tell the compiler alone. The
# extension then works where the library lies in a folder of the system, as it often does on the machine that builds it,
# and fails on others. The next program shows this failure. It removes the paths for the loader from a copy of the
# extension, so the copy is like the result of such a build:
#
# .. listing:: gallery/library/several_hosts/find_the_library.py
#    :part: copies

run_program("several_hosts/find_the_library.py")

# %%
# The first copy fails, although MPICH is installed. The fix is a run path, which the linker writes into the extension,
# and which the loader searches before the folders of the system. The wheel of MPICH puts ``libmpi.so.12`` into ``lib``
# of the environment. From the folder of the extension, which the loader calls ``$ORIGIN``, that is three folders up on
# every machine:
#
# .. not-executed::
#    :partly:
#
#    MPICH is installed where this site is built.
#
#    .. listing:: extension/mpi_collectives/setup.py
#       :part: library
#
# Declare the library in ``install_requires``, with the range of versions whose binary interface you have built against,
# and leave it out of your wheel. With a copy in the wheel, a process that also imports ``mpi4py`` would have two copies
# of MPI, of which only one is initialized. The tool ``auditwheel repair``, which makes a wheel portable, makes such a
# copy unless you pass ``--exclude libmpi.so.12``.
#
# .. admonition:: For reference: the run path of other libraries
#    :collapsible: closed
#
#    - For the wheel ``libucx-cu12`` of UCX, the run path is ``$ORIGIN/../libucx/lib``, and the option is
#      ``--exclude 'libuc*'``.
#    - If pip does not install your library, the run path is the library's absolute folder. Exclude the library in the
#      same way, and name in your README the versions that you support.
#
# On a machine of your users, the ranks then connect, because they use a network that exists there, and the import
# succeeds, because the loader finds the library. :doc:`/communicate/ship-it` has the rest of the release.
#
# .. admonition:: After this page you have decided
#
#    - which network your library uses if the environment names none;
#    - how a user names an interface, and which error says that it does not exist;
#    - how your tests reach the code for the network on one host;
#    - where the loader finds the library, and whether your wheel contains it.
#
# Not run here: two real machines, RDMA networks, and NCCL and UCX in the table of interfaces. The simulated hosts
# have separate networks, names, processes and shared memory, but one kernel and one clock.
