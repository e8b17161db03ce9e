"""Read the files that configure the build; an error names the file with the mistake."""

import json
import tomllib

from .errors import BuildError
from .paths import relative

PARSERS = {".toml": tomllib.loads, ".json": json.loads}


def read(path, make):
    """Return ``make(values)`` for the values in a TOML or JSON file."""
    try:
        return make(PARSERS[path.suffix](path.read_text()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BuildError(f"{relative(path)}: {type(error).__name__}: {error}") from None
