"""
Start many processes
====================

A distributed program is one program that runs many times. Something has to start
all those processes and tell each of them its rank. There are two ways: your own
program does it, or a launcher does.

.. note::

   The programs on this page stand in files of their own. A child process that is
   started with *spawn* imports the main module again, so what it runs has to be
   importable, and the main module has to hide its own start behind
   ``if __name__ == "__main__":``.

Your program as the parent
--------------------------

The plain way is a loop. ``torch.multiprocessing`` has the interface of Python's
``multiprocessing`` and adds that tensors can be handed from process to process.

.. literalinclude:: /../gallery/operations/workers/loop_of_processes.py
   :language: python
   :caption: gallery/operations/workers/loop_of_processes.py

``run_program`` is a function of this site, in ``gallery/launcher.py``. It runs the
program with ``OMP_NUM_THREADS=1``, raises an exception if the program fails, and
prints its output unchanged. Python warnings are errors there, too.
"""

from launcher import run_program

run_program("workers/loop_of_processes.py")

# %%
# ``init_process_group`` is called in the children, not in the parent: only they are
# ranks. They meet through a file, which spares us an address and a port.
#
# The loop leaves much to you. When a child fails, the others go on, or wait for it
# for ever; and its exit code is all that you learn.
#
# ``mp.spawn``
# ------------
#
# ``torch.multiprocessing.spawn`` takes care of that. It starts one process for
# each rank, passes the rank as the first argument, and names a temporary error
# file for each child. A child that raises an exception writes its traceback to
# that file. Then the parent joins the children until all have ended or one has
# failed. In that case it ends the others, leaves a line about that on stderr, and
# raises an exception with the traceback of the child.
#
# .. diagram:: operations/spawn
#
# .. literalinclude:: /../gallery/operations/workers/spawned_processes.py
#    :language: python
#    :caption: gallery/operations/workers/spawned_processes.py

run_program("workers/spawned_processes.py", expected_stderr="Terminating process")

# %%
# Spawn, fork and forkserver
# --------------------------
#
# How a child comes into being is the *start method*:
#
# spawn
#     A fresh Python starts and imports the main module. Slow, and always sound.
# fork
#     The child begins as a copy of the parent, memory and all. Fast, but only the
#     thread that called fork is copied. A lock that another thread held at that
#     moment stays locked in the child for ever.
# forkserver
#     A small server process forks each child. It starts when the first child is
#     wanted, even if the parent has threads by then. It is a fresh Python and has
#     none of these threads.
#
# PyTorch has threads: of OpenMP, of autograd, of the backends. CUDA cannot be used at
# all in a child that was forked after the parent had initialized it. So use spawn or
# forkserver. This program shows the difference. A thread of the parent holds a lock
# while the children start:
#
# .. literalinclude:: /../gallery/operations/workers/start_methods.py
#    :language: python
#    :caption: gallery/operations/workers/start_methods.py

run_program("workers/start_methods.py")

# %%
# The forked child has seen the parent's value, and waits in vain for a lock whose
# owner does not exist in its world.
#
# The launcher as the parent
# --------------------------
#
# ``torchrun`` starts your program once for each rank, on one node or on many. The
# program needs no code for that. What it has to know stands in its environment:
#
# .. diagram:: operations/torchrun
#
# .. literalinclude:: /../gallery/operations/workers/environment_of_a_rank.py
#    :language: python
#    :caption: gallery/operations/workers/environment_of_a_rank.py
#
# ``launch`` is a function of this site, in ``gallery/launcher.py``. It runs
# ``torchrun``, and after all ranks have ended it prints their standard output. It
# sorts the output by rank and puts ``[rank N]`` in front of each line. The line that
# begins with ``$`` leaves out the options that collect the output. Like
# ``run_program``, ``launch`` sets ``OMP_NUM_THREADS=1`` and makes Python warnings
# errors.

from launcher import launch

launch("workers/environment_of_a_rank.py", ranks=2)

# %%
# ``init_process_group`` reads the rank and the world size from there, and finds the
# other ranks with ``MASTER_ADDR`` and ``MASTER_PORT``. ``LOCAL_RANK`` is the rank on
# this node; use it to choose a device.
#
# Older texts start programs with ``python -m torch.distributed.launch``. It still
# works, and tells you itself what to use instead:

import subprocess
import sys
import tempfile

command = [sys.executable, "-m", "torch.distributed.launch", "--standalone"]
with tempfile.TemporaryDirectory() as logs:
    command += [f"--log-dir={logs}", "workers/environment_of_a_rank.py"]
    done = subprocess.run(command, capture_output=True, text=True)
warning = done.stderr.partition("FutureWarning: ")[2].splitlines()
print("\n".join(warning[:2]))

# sphinx_gallery_start_ignore
assert done.returncode == 0
assert "deprecated" in warning[0] and "Use torchrun" in warning[1]
# every rank starts an interpreter of its own
# sphinx_gallery_end_ignore

# %%
# Which one to use
# ----------------
#
# ``torchrun``, unless you have a reason: it works on many nodes, it can start the whole
# group again when a rank fails (``--max-restarts``), and it leaves your program free of
# code that starts processes. ``mp.spawn`` is handy in tests and in programs that must
# stay a single command on one machine.
