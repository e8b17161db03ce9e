"""The port that a user names for a server."""

import errno

from .errors import BuildError


def port_of(text: str) -> int | None:
    """Return the port that a text names, or None if there is none."""
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise BuildError(f"PORT={text}: a port is a number up to 65535")
    return int(text)


def port_error(port: int | None, error: OSError) -> str:
    """Return what to say of a port that a server did not get."""
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use: name another, or none at all"
    return f"port {port}: {error.strerror}: name another, or none at all"
