"""Write ``sitemap.xml``: the absolute addresses of all pages, with those in other languages.

The sitemap does not say when a page was changed. The text of a page also depends on
translations and on included files, and search engines ignore the dates of a site once they
find them wrong.

Needs the configuration of ``language_switcher``, with ``html_baseurl``.
"""

from xml.etree import ElementTree

from sphinx.application import Sphinx

from .language_switcher import addresses, own_language

SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"
XHTML = "http://www.w3.org/1999/xhtml"


def write(app: Sphinx, exception: Exception | None) -> None:
    own = own_language(app)
    if exception or app.builder.format != "html":
        return
    if own not in app.config.language_switcher_languages:
        return  # A language for tests, which has no place on the published site.
    root = ElementTree.Element("urlset", {"xmlns": SITEMAP, "xmlns:xhtml": XHTML})
    for page in sorted(app.env.found_docs):
        entry = ElementTree.SubElement(root, "url")
        absolute = addresses(app, page)
        ElementTree.SubElement(entry, "loc").text = absolute[own["html"]]
        for language, address in absolute.items():
            attributes = {"rel": "alternate", "hreflang": language, "href": address}
            ElementTree.SubElement(entry, "xhtml:link", attributes)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode", xml_declaration=False)
    declaration = '<?xml version="1.0" encoding="utf-8"?>\n'
    (app.outdir / "sitemap.xml").write_text(declaration + text + "\n")


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinxext.addresses.language_switcher")
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
