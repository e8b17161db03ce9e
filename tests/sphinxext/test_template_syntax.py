"""A mistake in a template is named with its file and line."""


def test_a_template_that_is_not_finished(documents):
    documents.configure('extensions = ["sphinxext.theme.template_syntax"]')
    documents.write("index.rst", "Title\n=====\n")
    documents.write("templates/parts/good.html", "{% trans %}a text{% endtrans %}\n")
    assert documents.build()[0] == 0
    documents.write("templates/parts/bad.html", "a line\n{% if x %}\n")
    status, output = documents.build()
    assert status == 2
    assert f"{documents.root}/templates/parts/bad.html:2: Unexpected end of template" in output
