"""How every stage here calls Sphinx, and what it needs before that."""

import sys

from .errors import BuildError
from .paths import AUTO_GALLERY, DOCS, ROOT, relative


def sphinx_command(builder, language, output, *options):
    """The sphinx-build command line that every use of Sphinx here shares."""
    command = [sys.executable, "-m", "sphinx", "-q", "-b", builder, "-c", ROOT]
    command += ["-D", f"language={language.gettext}"]
    return [*command, *options, DOCS, output]


def require_gallery_pages():
    """Raise if nothing was executed yet: the pages link to what the samples make."""
    if not any(AUTO_GALLERY.glob("*.rst")):
        raise BuildError(
            f"{relative(AUTO_GALLERY)} holds no pages: run `make execute` first"
        )
