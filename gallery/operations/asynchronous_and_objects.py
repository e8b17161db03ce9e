"""
Asynchronous collectives, barriers and objects
==============================================

What remains of the API: collectives that do not make the program wait, a meeting
point for all ranks, and collectives on Python objects.

Asynchronous collectives
------------------------

Every collective on tensors takes ``async_op=True``, and so does ``barrier``. The
collectives on objects do not. With ``async_op=True`` the call returns a ``Work`` at
once, and the program goes on while the data is on its way. The tensor may be
touched again after ``wait``:

.. literalinclude:: /../gallery/operations/workers/asynchronous_and_objects.py
   :language: python
   :start-after: # [asynchronous]
   :end-before: # [/asynchronous]

.. diagram:: operations/asynchronous

For CUDA tensors ``wait`` does not stop the program. It makes the current stream wait,
and the program goes on to queue its next kernels.

Barrier
-------

``barrier`` returns in no rank before every rank has called it. Use it around things
that c10d does not see, such as a file that one rank writes and the others read. It is
not needed between collectives: they order themselves.

.. diagram:: operations/barrier

.. literalinclude:: /../gallery/operations/workers/asynchronous_and_objects.py
   :language: python
   :start-after: # [barrier]
   :end-before: # [/barrier]

Objects
-------

The collectives on objects pickle what they are given and send the bytes as tensors.
They are slower, they block, and they are not differentiable; for settings and reports
that does not matter. Unpickling can run any code, so use them only among ranks that
you trust.

.. literalinclude:: /../gallery/operations/workers/asynchronous_and_objects.py
   :language: python
   :start-after: # [objects]
   :end-before: # [/objects]

``gather_object`` collects like ``all_gather_object``, but on one rank only.

The run
-------
"""

import os
import tempfile

from launcher import launch

with tempfile.TemporaryDirectory() as folder:
    os.environ["SHARED_FOLDER"] = folder
    launch("workers/asynchronous_and_objects.py", ranks=2)

# %%
# Rank 1 waits in the barrier until the file is there. Every object arrives as an object,
# with its types and nesting.
