"""The c10d backend acme; importing it registers "acme"."""

from importlib import import_module, util
from pkgutil import iter_modules

import torch

# The name of the compiled module contains the minor release of PyTorch: see setup.py.
_release = torch.__version__.partition("+")[0]
_compiled = f"{__name__}._for_torch_{'_'.join(_release.split('.')[:2])}"
if util.find_spec(_compiled) is None:
    _built = [x.name for x in iter_modules(__path__) if x.name.startswith("_for_torch_")]
    raise ImportError(
        f"{__name__} has {', '.join(_built) or 'no compiled module'} and was not built for PyTorch "
        f"{_release}: build it again with this PyTorch. For the package of an index: python3 -m pip "
        "install --no-build-isolation --no-cache-dir --no-deps --force-reinstall "
        "--no-binary acme-collectives acme-collectives"
    )

_module = import_module(_compiled)
Options = _module.Options
register = _module.register
