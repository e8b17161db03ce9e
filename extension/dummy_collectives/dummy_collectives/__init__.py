# [package]
"""The dummy c10d backend; importing it registers "dummy"."""

from importlib import import_module, util

import torch

# setup.py puts the minor release of PyTorch into the name of the compiled module.
_release = torch.__version__.partition("+")[0]
_compiled = f"{__name__}._for_torch_{'_'.join(_release.split('.')[:2])}"
if util.find_spec(_compiled) is None:
    raise ImportError(
        f"{__name__} was not built for PyTorch {_release}: build it again with this PyTorch"
    )
register = import_module(_compiled).register
# [/package]
