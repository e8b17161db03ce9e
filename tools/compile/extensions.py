"""The C++ extensions: the sources of each, and the compiled package."""

import re
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from ..project import paths
from ..state.digests import digest, files_below
from ..state.records import Record
from ..state.runs import Run
from .toolchain import compiled_with

# What a build by hand leaves among the sources.
LEFTOVERS = ("build", "*.egg-info", "__pycache__", ".*_cache", "*.so")


def sources_below(folder: Path) -> list[Path]:
    """Return the files of a Python project, without what a build by hand left among them."""
    return [
        path
        for path in files_below(folder)
        if not any(
            fnmatch(part, pattern)
            for part in path.relative_to(folder).parts
            for pattern in LEFTOVERS
        )
    ]


@dataclass(frozen=True)
class Extension:
    """A Python project of extension/, which is compiled into a package of the same name."""

    folder: Path

    @property
    def name(self):
        return self.folder.name

    @property
    def compilation(self):
        """The name of the run that compiles the extension."""
        return f"compile {self.name}"

    @property
    def run(self):
        """The last compilation."""
        record = Record(paths.INSTALLED_EXTENSIONS / f".{self.name}.json", of_tools=False)
        return Run("compile", record, tuple(self.sources()))

    @property
    def included(self):
        """Return the folders of other projects whose headers the extension includes."""
        code = "\n".join(x.read_text() for x in self.folder.glob("src/*.?pp"))
        names = sorted(set(re.findall(r'^#include "(\w+)/', code, re.M)))
        folders = [self.folder.parent / name for name in names if name != paths.FRAME.name]
        folders = [x for x in folders if x.is_dir() and x != self.folder]
        return [*folders, paths.FRAME_PACKAGE] if paths.FRAME.name in names else folders

    def sources(self):
        """Return the files that the extension is compiled from."""
        folders = [self.folder, *self.included]
        return [x for y in folders for x in sources_below(y) if x.parent != paths.SIMULATOR]

    def loaded_sources(self):
        """Return the sources of all that a program loads which imports the extension."""
        package = self.folder / self.name
        return [x for x in self.sources() if x.suffix in {".cpp", ".hpp"} or x.parent == package]

    def key(self):
        """Return a digest of all that the compiled package depends on."""
        return digest(self.sources(), *compiled_with())

    def installed(self):
        """Return the folders of the compiled package and of its metadata."""
        return sorted(
            path
            for pattern in (self.name, f"{self.name}-*")
            for path in paths.INSTALLED_EXTENSIONS.glob(pattern)
        )

    def installed_files(self):
        return [path for folder in self.installed() for path in files_below(folder)]


EXTENSIONS = tuple(map(Extension, paths.EXTENSIONS))
