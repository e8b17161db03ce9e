"""A mistake in a template is named with its file and line."""

CONFIGURATION = 'extensions = ["sphinxext.theme.template_syntax"]\ntemplates_path = ["own"]\n'


def test_a_template_that_is_not_finished(documents):
    documents.write("conf.py", CONFIGURATION)
    documents.write("index.rst", "Title\n=====\n")
    documents.write("own/parts/good.html", "{% trans %}a text{% endtrans %}\n")
    assert documents.build()[0] == 0
    documents.write("own/parts/bad.html", "a line\n{% if x %}\n")
    status, output = documents.build()
    assert status == 2
    assert f"{documents.root}/own/parts/bad.html:2: Unexpected end of template" in output
