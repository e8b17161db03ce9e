"""Make a build that continues from the last one write the same pages as one from nothing.

Sphinx writes only the pages again whose sources have changed. But a page also shows facts of
other pages: their titles, their places in the contents, the texts of links to them. When any
of these differs from the last build, this extension empties the output folder,
and all pages are written again. Documents that include others are always read again.

An extension that takes anything else from other pages must return the pages that show it, in
``env-updated``.

Configuration: ``shared_facts_private_metadata``, keys of the metadata of pages which no
other page shows, or whose changes another extension tells.
"""

import hashlib
import pickle
import shutil

from docutils import nodes

# Attributes of Sphinx's environment with facts of all pages.
SHARED = (
    "titles",
    "longtitles",
    "tocs",
    "toc_num_entries",
    "toc_secnumbers",
    "toc_fignumbers",
    "toctree_includes",
    "glob_toctrees",
    "numbered_toctrees",
    "images",
    "dlfiles",
    "domaindata",
)


def digest(env):
    """Return a digest of everything that a page may show of other pages."""
    private = set(env.config.shared_facts_private_metadata)
    metadata = {
        page: {key: value for key, value in data.items() if key not in private}
        for page, data in env.metadata.items()
    }
    facts = [metadata, *(getattr(env, name) for name in SHARED)]
    return hashlib.sha256("\0".join(_texts(facts)).encode()).hexdigest()


def _texts(value):
    """Yield texts that are equal for equal values."""
    if isinstance(value, dict):
        yield "dict"
        for key in sorted(value, key=repr):
            yield repr(key)
            yield from _texts(value[key])
    elif isinstance(value, set | frozenset):
        yield from ("set", *sorted(map(repr, value)))
    elif isinstance(value, list | tuple):
        yield f"{len(value)} items"
        for item in value:
            yield from _texts(item)
    elif isinstance(value, nodes.Node):
        yield value.pformat()
    elif value is None or isinstance(value, str | int | float | bytes):
        yield repr(value)
    else:
        yield hashlib.sha256(pickle.dumps(value)).hexdigest()


def read_again(app, env, added, changed, removed):
    """Return the documents that include others: Sphinx only compares the times of files.

    After reading in parallel, ``env.included`` also lists documents that include none.
    """
    return [page for page, others in env.included.items() if others]


def write_again(app, env):
    if app.builder.format != "html":
        return []
    before, env.shared_facts = getattr(env, "shared_facts", None), digest(env)
    if before in (None, env.shared_facts):
        return []
    for path in app.outdir.iterdir():
        if path.is_file():
            path.unlink()
        elif not app.doctreedir.is_relative_to(path):
            shutil.rmtree(path)
    return sorted(env.found_docs)


def setup(app):
    app.add_config_value("shared_facts_private_metadata", [], "env", types=[list])
    app.connect("env-get-outdated", read_again)
    app.connect("env-get-updated", write_again, priority=900)  # All facts are known by then.
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
