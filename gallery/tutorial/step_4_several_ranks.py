"""
Step 4: Use the backend on several ranks
========================================

After this page you can run a program with the backend on several ranks, and you know what
happens when one of them fails.

``torchrun`` is the usual way to start a group of processes. It starts the same program once
for each rank. Environment variables tell each rank its number and the world size. If a rank
fails, ``torchrun`` stops the others.

.. diagram:: tutorial/step_4_several_ranks/diagram

The program
-----------

This is the whole program. It names no rank, no address and no port, because
``init_process_group`` finds all of them in the environment:

.. listing:: gallery/tutorial/step_4_several_ranks/zero_everything.py
"""

# %%
# The shortest program
# --------------------
#
# A program of nine lines uses the backend:
#
# .. listing:: gallery/tutorial/step_4_several_ranks/shortest_program.py
#    :part: program

from launcher import launch

launch("step_4_several_ranks/shortest_program.py", ranks=2)

# %%
# Two ranks
# ---------
#
# ``--standalone`` is for jobs on one computer. ``torchrun`` chooses a free port, so two jobs
# can run at the same time. With a fixed ``MASTER_PORT`` they would use the same port.
#
# ``launch`` is a helper of this site: it runs the command that it prints and sorts the
# output by rank. :doc:`what-a-backend-needs` describes what it adds.

launch("step_4_several_ranks/zero_everything.py", ranks=2)

# %%
# Each rank started with another value. After a real all-reduce, both would have
# ``1 + 2 = 3``. With the dummy, both have zero.
#
# Four ranks
# ----------
#
# Only the number of ranks changes. All-gather now writes a list of four tensors:

launch("step_4_several_ranks/zero_everything.py", ranks=4)

# %%
# .. _when-a-rank-fails:
#
# When a rank fails
# -----------------
#
# If one rank ends with an error, ``torchrun`` stops the others and ends with an error, too.
# It prints a ``ChildFailedError``: below ``Root Cause (first observed failure)`` it has the
# rank that failed first, and its exit code. ``launch`` shortens this report to a ``RankError``
# with the number of the rank, the exit code, and what the rank wrote to stderr:
#
# .. listing:: gallery/tutorial/step_4_several_ranks/one_rank_fails.py

from launcher import RankError

try:
    launch("step_4_several_ranks/one_rank_fails.py", ranks=2)
except RankError as error:
    print(error)

# sphinx_gallery_start_ignore
# every rank starts an interpreter of its own
# sphinx_gallery_end_ignore
