"""Read Markdown faster: put the default settings of docutils together only once.

MyST-Parser asks for them with every text that it parses, each translated message
among these, and drops them: the text belongs to a document that has settings. They
take longer than the text. Here, it gets a copy of those that it got first.
"""

from functools import cache

from docutils.frontend import get_default_settings
from myst_parser.mdit_to_docutils import base

first = cache(get_default_settings)


def settings(*components):
    return first(*components).copy()


def setup(app):
    base.get_default_settings = settings
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
