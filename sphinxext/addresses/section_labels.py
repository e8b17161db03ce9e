"""Make every section a target for references, also from other projects.

The label of a section is ``PAGE#ANCHOR``, as in ``:ref:`guide/start#install```. It is in
``objects.inv``, so intersphinx finds it. Anchors, unlike headings, are not translated, if
``stable_anchors`` is used: a label is the same in every language, and only the text of
the reference differs.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import clean_astext


def register(app: Sphinx, doctree: nodes.document) -> None:
    domain, page = app.env.domains.standard_domain, app.env.docname
    for section in doctree.findall(nodes.section):
        anchor = section["ids"][0]
        label = nodes.fully_normalize_name(f"{page}#{anchor}")
        domain.anonlabels[label] = page, anchor
        domain.labels[label] = page, anchor, clean_astext(section[0])


def setup(app: Sphinx) -> dict:
    app.connect("doctree-read", register)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
