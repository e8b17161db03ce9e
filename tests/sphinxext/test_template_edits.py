"""A theme's template is edited where it offers no block; otherwise the build fails."""

CONFIGURATION = """
extensions = ["sphinxext.theme.template_edits", "sphinxext.translation.translatable_labels"]
template_edits = {"page.html": [(TEXT, TEXT + '<nav aria-label="Site"></nav>')]}
"""
BODY = '"{{ body }}"'


def configure(documents, text):
    documents.configure(CONFIGURATION.replace("TEXT", text))
    documents.write("index.rst", "Title\n=====\n")


def test_the_page_is_changed_and_translated(documents):
    configure(documents, BODY)
    documents.write("templates/other.html", "")
    assert '<nav aria-label="Site"></nav>' in documents.page()
    documents.write_catalog("sphinx", {"Site": "사이트"})
    assert '<nav aria-label="사이트"></nav>' in documents.page(language="ko")


def test_a_text_that_the_theme_does_not_have(documents):
    configure(documents, '"no such text"')
    status, output = documents.build()
    assert status != 0
    assert "template_edits: page.html of the theme has no 'no such text'" in output


def test_the_projects_own_template_is_left_alone(documents):
    configure(documents, BODY)
    documents.write("templates/page.html", "own: {{ body }}")
    assert "<nav" not in documents.page()
