"""The one exception that ends a build with a message instead of a traceback."""


class BuildError(Exception):
    """Says what went wrong, where, and what to do about it."""
