# [package]
"""The tcp c10d backend; importing it registers "tcp"."""

from importlib import import_module, util

import torch

# setup.py has put the minor release of PyTorch into the name of the compiled module.
_release = torch.__version__.partition("+")[0]
_compiled = f"{__name__}._for_torch_{'_'.join(_release.split('.')[:2])}"
if util.find_spec(_compiled) is None:
    raise ImportError(
        f"{__name__} was not built for PyTorch {_release}: build it again with this PyTorch"
    )

_module = import_module(_compiled)
Options = _module.Options
register = _module.register
# [/package]
