"""Templates are compiled once, and again when they change."""


def test_templates_are_kept_until_they_change(documents):
    documents.write(
        "conf.py",
        "extensions = ['sphinxext.rebuild.compiled_templates']\n"
        "html_theme = 'basic'\ntemplates_path = ['templates']\n",
    )
    documents.write("index.rst", "Home\n====\n")
    documents.write(
        "templates/page.html", "{% extends '!page.html' %}{% block footer %}One{% endblock %}"
    )
    assert "One" in documents.page()
    kept = list((documents.root / "out/.doctrees/templates").iterdir())
    assert kept
    times = {path: path.stat().st_mtime_ns for path in kept}
    documents.page()
    assert times == {path: path.stat().st_mtime_ns for path in kept}, "compiled again"
    template = documents.root / "templates/page.html"
    template.write_text(template.read_text().replace("One", "Two"))
    assert "Two" in documents.page()
