"""Read Markdown faster: compute the default settings of docutils only once.

MyST-Parser computes them for every text that it parses, also for each translated message. It
then drops them, because the text belongs to a document that has settings. Computing them
takes longer than parsing the text. With this extension, MyST-Parser gets a copy of the first
settings.
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
