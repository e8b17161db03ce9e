"""
Starting processes: multiprocessing and torchrun
================================================

A distributed program usually runs the same code in many processes, each of which works on its own part of the data.
This is called *single program, multiple data* (SPMD). Something must start these processes and tell each its rank.
Most programs leave this to the launcher ``torchrun``. This page first starts processes with a loop and with
``mp.spawn``, because they show what a launcher must take care of, and because tests and small programs often need no
more.

A loop in your program
----------------------

The simplest way is a loop that starts a process for each rank. ``torch.multiprocessing`` has the interface
of Python's ``multiprocessing`` and can, in addition, pass tensors between processes.

.. listing:: gallery/operations/starting_processes/loop_of_processes.py
   :start-at: context = mp.get_context("spawn")
   :end-at: process.join()

.. admonition:: The whole program
   :collapsible: closed

   .. listing:: gallery/operations/starting_processes/loop_of_processes.py
      :no-caption:

.. note::

   The programs on this page are in separate files, because a child process from ``get_context("spawn")`` begins by
   importing the main module of its parent. So the code that the child runs must be importable. The main module must
   also guard its entry point with ``if __name__ == "__main__":``, because without the guard, each child would try to
   start children of its own.

This site runs such a program with ``run_program``, a function in ``gallery/launcher.py``. It prints the output
unchanged, and raises an exception if the program fails.
"""

from launcher import run_program

run_program("starting_processes/loop_of_processes.py")

# %%
# Only the children are ranks, so they call ``init_process_group`` and the parent does not. The children need no
# address and no port, because they find each other through a file.
#
# A loop leaves error handling to you. When a child fails, the other children continue, or wait for it until a
# timeout. The parent can learn only the exit code of the failed child. In this program the parent would not even learn
# that, because it would wait in ``results.get`` forever.
#
# ``mp.spawn``
# ------------
#
# ``torch.multiprocessing.spawn`` adds what the loop lacks. It starts one process for each rank, passes the
# rank as the first argument, and waits until all children have finished or one has failed. After a failure,
# it ends the other children, reports that on stderr, and raises an exception with the traceback of the failed child.
#
# .. diagram:: operations/starting_processes/spawn
#
# .. listing:: gallery/operations/starting_processes/spawned_processes.py

run_program("starting_processes/spawned_processes.py", expected_stderr="Terminating process")

# %%
# The output ends with the last line of rank 1's traceback, so the parent has learned why its child failed. These ranks
# form no group. In :doc:`process-groups`, ranks that ``mp.spawn`` starts call ``init_process_group``.
#
# Spawn, fork and forkserver
# --------------------------
#
# Both programs above start their children with *spawn*, one of three start methods. The *start method* decides
# what a child process has of its parent:
#
# spawn
#     A fresh Python starts and imports the main module. This is slow, and always safe.
# fork
#     The child begins as a copy of the parent, with all its memory. This is fast, but
#     only the thread that called fork is copied. If another thread held a lock at that
#     moment, the lock stays locked in the child, because no thread can release it.
# forkserver
#     A small server process forks each child. The server starts when the program needs
#     its first child. It is a fresh Python, so it has none of the parent's threads.
#
# Use spawn or forkserver with PyTorch, because threads and fork do not mix: PyTorch runs threads of OpenMP, of
# autograd and of the backends. Besides, a forked child cannot use CUDA at all if the parent has initialized it.
#
# The next program shows how the start methods differ. A thread of the parent holds a lock while the children start:
#
# .. admonition:: The program with the lock
#    :collapsible: closed
#
#    .. listing:: gallery/operations/starting_processes/start_methods.py

run_program("starting_processes/start_methods.py")

# %%
# The forked child sees the value that the parent changed, but waits in vain for the lock: the thread that
# holds the lock does not exist in the child.
#
# Options of ``mp.spawn``
# -----------------------
#
# Three options decide when the parent continues, when the children end, and how they start:
#
# ``join=False``
#     ``mp.spawn`` returns a context at once, so the parent can do something else. Each call of the
#     context's ``join`` waits until a child ends, and returns whether all children have finished.
#     It raises the exception of a child that has failed.
# ``daemon=True``
#     The children are daemons: Python ends them when the parent ends. A daemon cannot
#     start children of its own.
# ``start_method``
#     This option is deprecated: ``mp.spawn`` always uses spawn, and warns if you ask for
#     another method. To choose one, call ``mp.start_processes``, which has the same options and
#     uses the start method that you pass.
#
# .. admonition:: A program with these options
#    :collapsible: closed
#
#    ``mp.Process`` and ``mp.SimpleQueue`` have no such option, so one call of ``mp.set_start_method`` sets
#    their start method for the whole program:
#
#    .. listing:: gallery/operations/starting_processes/spawn_options.py

run_program("starting_processes/spawn_options.py")

# %%
# ``mp.start_processes`` used forkserver, as the program asked.
#
# The launcher ``torchrun``
# -------------------------
#
# ``torchrun`` starts your program once for each rank, on one node or on many. The program needs no code for
# that, because it finds what it must know in its environment:
#
# .. diagram:: operations/starting_processes/torchrun
#
# .. listing:: gallery/operations/starting_processes/environment_of_a_rank.py
#
# All pages of this site run such programs with ``launch``, another function in ``gallery/launcher.py``, which calls
# ``torchrun``. Because the output of ranks that print at the same time would be mixed, ``launch`` collects it, and
# prints it in the order of the ranks when all have ended, with ``[rank N]`` in front of each line.

from launcher import launch

launch("starting_processes/environment_of_a_rank.py", ranks=2)

# sphinx_gallery_start_ignore
# every rank starts an interpreter of its own
import os
import subprocess
import sys
import tempfile

environment = {x: os.environ[x] for x in os.environ if x != "OMP_NUM_THREADS"}
command = [sys.executable, "-m", "torch.distributed.launch", "--standalone"]
with tempfile.TemporaryDirectory() as logs:
    command += ["--nproc-per-node=2", f"--log-dir={logs}"]
    command += ["starting_processes/environment_of_a_rank.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
assert done.returncode == 0
notice = "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default"
assert notice in done.stderr, done.stderr
assert "The module torch.distributed.launch is deprecated" in done.stderr, done.stderr
# sphinx_gallery_end_ignore

# %%
# ``init_process_group`` reads the rank and the world size from these variables, and finds the other ranks
# with ``MASTER_ADDR`` and ``MASTER_PORT``. ``LOCAL_RANK`` is the rank on this node, by which you choose a
# device.
#
# .. admonition:: The notice about ``OMP_NUM_THREADS``, and the old launcher
#    :collapsible: closed
#
#    By default, OpenMP starts a thread for each core in each rank, so the threads of all ranks would compete for the
#    cores. Therefore, if ``torchrun`` starts several ranks on a node, and you have not set ``OMP_NUM_THREADS``, it sets
#    one thread for each rank and says so:
#    ``Setting OMP_NUM_THREADS environment variable for each process to be 1 in default``. The notice is no error.
#    You do not see it on this site, because ``launch`` sets the variable.
#
#    If your ranks compute on the CPU, set the variable yourself. A good first value is the number of cores divided by
#    the number of ranks on the node.
#
#    Older texts start programs with ``python -m torch.distributed.launch``. This command still runs the code of
#    ``torchrun``, but it warns that it is deprecated, and passes the argument ``--local-rank=N`` to each rank unless
#    you add ``--use-env``.
#
# ``torchrun`` or ``mp.spawn``
# ----------------------------
#
# Use ``torchrun``, unless you have a reason not to. It works on many nodes, can start the whole group again
# when a rank fails (``--max-restarts``), and your program needs no code that starts processes. ``mp.spawn``
# is handy in tests, and in programs that must stay a single command on one machine.
