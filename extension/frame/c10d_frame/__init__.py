"""The headers of a torch.distributed (c10d) backend, which a build includes as "frame/..."."""

from pathlib import Path

__version__ = "1.1.1"  # The headers have it, too: include/frame/version.hpp.


def get_include() -> str:
    """Return the folder for ``include_dirs`` of an extension."""
    return str(Path(__file__).resolve().parent / "include")
