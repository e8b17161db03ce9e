"""
Step 4: Use the backend on several ranks
========================================

A backend exists for groups of processes. The usual way to start one is
``torchrun``: it starts the same program once for each rank, tells every rank its
number and the world size through environment variables, and watches them.

.. diagram:: backend/zeros-two-ranks

The program
-----------

This is the whole program. There is no rank in it, no address and no port:
``init_process_group`` finds all of them in the environment.

.. literalinclude:: /../gallery/tutorial/workers/zero_everything.py
   :language: python
   :caption: gallery/tutorial/workers/zero_everything.py
"""

# %%
# The shortest program
# --------------------
#
# Four lines are enough to use the backend:
#
# .. literalinclude:: /../gallery/tutorial/workers/four_lines.py
#    :language: python
#    :caption: gallery/tutorial/workers/four_lines.py
#    :start-after: # [program]
#    :end-before: # [/program]

from launcher import launch

launch("workers/four_lines.py", ranks=2)

# %%
# Two ranks
# ---------
#
# ``--standalone`` is for one machine: ``torchrun`` picks a free port by itself, so
# two jobs on the same machine do not get in each other's way. A fixed
# ``MASTER_PORT`` would.
#
# The function ``launch`` is a small helper of ours. It runs the command that it
# prints, collects what each rank writes, in C++ as well, and shows it in the order
# of the ranks.

from launcher import launch

launch("workers/zero_everything.py", ranks=2)

# %%
# Each rank started with a different value. A real all-reduce would have left
# ``1 + 2 = 3`` on both; the dummy leaves zero on both.
#
# Four ranks
# ----------
#
# Only the number changes. All-gather now fills a list of four tensors:

launch("workers/zero_everything.py", ranks=4)

# %%
# .. _when-a-rank-fails:
#
# When a rank fails
# -----------------
#
# If one rank ends with an error, ``torchrun`` stops the others and ends with an
# error too. So does ``launch``, which says which rank it was and shows what that
# rank wrote to its standard error. The same holds for a rank that crashes, or that
# still runs when its time is up. This is how every page of this tutorial is
# checked: had one of the ranks above failed, this page would not exist.
#
# .. literalinclude:: /../gallery/tutorial/workers/one_rank_fails.py
#    :language: python
#    :caption: gallery/tutorial/workers/one_rank_fails.py

from launcher import RankError

try:
    launch("workers/one_rank_fails.py", ranks=2)
except RankError as error:
    print(error)

# sphinx_gallery_start_ignore
    assert "rank 1 of 2: ended with exit status 3" in str(error)
    assert "rank 1 gives up" in str(error)
else:
    raise AssertionError("the launcher did not notice that a rank failed")
# every rank starts an interpreter of its own
# sphinx_gallery_end_ignore
