"""
Start many processes
====================

After this page you can start the ranks of a program in three ways: with a loop, with
``mp.spawn``, and with ``torchrun``.

A distributed program usually runs the same code in many processes, and each process
works on its own part of the data. This is called *single program, multiple data* (SPMD).
Something must start these processes and tell each of them its rank. Your own program can
do that, or a launcher.

.. note::

   The programs on this page are in separate files. A child process that is started
   with *spawn* imports the main module again. Therefore the code that it runs must be
   importable, and the main module must guard its entry point with
   ``if __name__ == "__main__":``.

Your program as the parent
--------------------------

The simplest way is a loop. ``torch.multiprocessing`` has the interface of Python's
``multiprocessing``. In addition, it can hand tensors from process to process.

.. listing:: gallery/operations/starting_processes/loop_of_processes.py

``run_program`` is a function of this site, in ``gallery/launcher.py``. It runs a program
with ``OMP_NUM_THREADS=1``, and Python warnings are errors there. It prints the output of
the program unchanged. If the program fails, ``run_program`` raises an exception.
"""

from launcher import run_program

run_program("starting_processes/loop_of_processes.py")

# %%
# The children call ``init_process_group``, and the parent does not: only the children are
# ranks. They meet through a file, so they need no address and no port.
#
# A loop leaves much work to you. When a child fails, the others continue, or wait for
# it for ever. The parent learns only the exit code of the child.
#
# Tensors that are handed over stay in shared memory, and all processes see the changes
# of one. *HogWild!* training uses that: several processes update one model at the same
# time, without locks and without messages. `The paper <https://arxiv.org/abs/1106.5730>`__
# shows when this converges, and PyTorch's notes on `multiprocessing
# <https://docs.pytorch.org/docs/2.15/notes/multiprocessing.html>`__ show how to write it.
# This site does not run HogWild!, because its subject is processes that exchange messages.
#
# ``mp.spawn``
# ------------
#
# ``torch.multiprocessing.spawn`` does this work for you. It starts one process for each
# rank, and passes the rank as the first argument. Then it waits until all children have
# finished or one has failed. When one fails, ``mp.spawn`` ends the others and writes a
# line about that to stderr. Then it raises an exception with the traceback of the child
# that failed. Each child hands over its traceback in a temporary file of its own.
#
# .. diagram:: operations/starting_processes/spawn
#
# .. listing:: gallery/operations/starting_processes/spawned_processes.py

run_program("starting_processes/spawned_processes.py", expected_stderr="Terminating process")

# %%
# These ranks form no group. In :doc:`process-groups`, ranks that ``mp.spawn`` starts call
# ``init_process_group``.
#
# Spawn, fork and forkserver
# --------------------------
#
# The *start method* decides how a child comes into being:
#
# spawn
#     A fresh Python starts and imports the main module. This is slow, and always safe.
# fork
#     The child begins as a copy of the parent, with all its memory. This is fast, but
#     only the thread that called fork is copied. If another thread held a lock at that
#     moment, the lock stays locked in the child for ever.
# forkserver
#     A small server process forks each child. The server starts when the program needs
#     its first child. It is a fresh Python, so it has none of the parent's threads.
#
# PyTorch runs threads of OpenMP, of autograd and of the backends. And if the parent has
# initialized CUDA, a forked child cannot use CUDA at all. So use spawn or forkserver. The
# next program shows the difference. A thread of the parent holds a lock while the
# children start:
#
# .. listing:: gallery/operations/starting_processes/start_methods.py

run_program("starting_processes/start_methods.py")

# %%
# The forked child sees the value that the parent changed. But it waits in vain for the
# lock: the thread that holds the lock does not exist in the child.
#
# Options of ``mp.spawn``
# -----------------------
#
# ``join=False``
#     ``mp.spawn`` returns a context at once, and the parent continues. Each call of the
#     context's ``join`` returns ``True`` if all children have finished, and ``False``
#     otherwise. It raises the exception of a child that has failed.
# ``daemon=True``
#     The children are daemons: Python ends them when the parent ends. A daemon cannot
#     start children of its own.
# ``start_method``
#     This option is deprecated: ``mp.spawn`` always uses spawn, and warns if you ask for
#     another method. ``mp.start_processes`` has the same options and does use the start
#     method that you pass.
#
# ``mp.Process`` and ``mp.SimpleQueue`` have no such option. Their start method is set for
# the whole program, by one call of ``mp.set_start_method``:
#
# .. listing:: gallery/operations/starting_processes/spawn_options.py

run_program("starting_processes/spawn_options.py")

# %%
# The last child would have slept for ten minutes. It was a daemon, so it ended together
# with the program.
#
# The launcher as the parent
# --------------------------
#
# ``torchrun`` starts your program once for each rank, on one node or on many. The
# program needs no code for that. It finds what it must know in its environment:
#
# .. diagram:: operations/starting_processes/torchrun
#
# .. listing:: gallery/operations/starting_processes/environment_of_a_rank.py
#
# ``launch`` is a function of this site, in ``gallery/launcher.py``. It runs
# ``torchrun``, and prints the standard output of the ranks after all of them have ended.
# It sorts the output by rank, and puts ``[rank N]`` in front of each line. The line that
# begins with ``$`` leaves out the options that collect the output. Like
# ``run_program``, ``launch`` sets ``OMP_NUM_THREADS=1`` and makes Python warnings
# errors. All pages of this site show ranks in this way.

from launcher import launch

launch("starting_processes/environment_of_a_rank.py", ranks=2)

# %%
# ``init_process_group`` reads the rank and the world size from there. It finds the other
# ranks with ``MASTER_ADDR`` and ``MASTER_PORT``. ``LOCAL_RANK`` is the rank on
# this node; use it to choose a device.
#
# The notice about ``OMP_NUM_THREADS``
# ------------------------------------
#
# If you type the command yourself, ``torchrun`` begins with a notice. ``launch`` avoids it
# by setting the variable. Here the variable is not set. The command is the old one, which
# runs the same code as ``torchrun``:

import os
import re
import subprocess
import sys
import tempfile
import textwrap

environment = {x: os.environ[x] for x in os.environ if x != "OMP_NUM_THREADS"}
command = [sys.executable, "-m", "torch.distributed.launch", "--standalone"]
with tempfile.TemporaryDirectory() as logs:
    command += ["--nproc-per-node=2", f"--log-dir={logs}"]
    command += ["starting_processes/environment_of_a_rank.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
notice = re.search("Setting OMP_NUM_THREADS.*", done.stderr)[0]
print(textwrap.fill(notice, 80))

# %%
# Nothing is wrong. By default, OpenMP would start a thread for each core in each rank, and
# the threads of all ranks would compete for the cores. So ``torchrun`` sets one thread for
# each rank. If your ranks compute on the CPU, set the variable yourself. A good first value
# is the number of cores divided by the number of ranks on the node.
#
# The old launcher
# ----------------
#
# Older texts start programs with ``python -m torch.distributed.launch``, as the run above
# does. This command still works, and says what to use instead:

warning = done.stderr.partition("FutureWarning: ")[2].splitlines()
print("\n".join(warning[:2]))

# sphinx_gallery_start_ignore
assert done.returncode == 0
# every rank starts an interpreter of its own
# time limit: 240
# sphinx_gallery_end_ignore

# %%
# The choice between them
# -----------------------
#
# Use ``torchrun``, unless you have a reason not to. It works on many nodes. It can start
# the whole group again when a rank fails (``--max-restarts``). And your program needs no
# code that starts processes. ``mp.spawn`` is handy in tests, and in programs that must
# stay a single command on one machine.
