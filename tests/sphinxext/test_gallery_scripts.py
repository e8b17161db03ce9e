"""A script of a gallery is split into blocks, and nothing is lost."""

import pytest

from sphinxext.text.gallery_scripts import prose, split, visible, with_prose

SCRIPT = '''\
"""
Title
=====
"""

import os

# %%
# A text.
#
# * An item.

print(1)
# sphinx_gallery_start_ignore
assert True
# sphinx_gallery_end_ignore
for x in []:
    # sphinx_gallery_start_ignore
    assert x
    # sphinx_gallery_end_ignore
    pass
# %%
# The end.
'''


def test_the_blocks_are_the_script():
    blocks = split(SCRIPT)
    assert [kind for kind, _ in blocks] == ["docstring", "code", "text", "code", "text"]
    assert "".join(source for _, source in blocks) == SCRIPT


def test_prose_goes_there_and_back():
    for kind, source in split(SCRIPT):
        if kind != "code":
            assert with_prose(kind, prose(kind, source)) == source
    assert prose(*split(SCRIPT)[2]) == "A text.\n\n* An item."


def test_what_is_hidden_is_not_visible():
    assert visible(split(SCRIPT)[3][1]) == "print(1)\nfor x in []:\n    pass"


def test_a_docstring_with_a_backslash_is_raw():
    changed = with_prose("docstring", "Title\n=====\n\n*a*\\ b")
    assert changed.startswith('r"""\n')
    assert eval(changed) == "\nTitle\n=====\n\n*a*\\ b\n"
    assert prose("docstring", changed) == "Title\n=====\n\n*a*\\ b"


def test_a_text_that_would_end_the_docstring_is_refused():
    with pytest.raises(ValueError):
        with_prose("docstring", '"""\nimport os\n"""')


@pytest.mark.parametrize("kind", ["docstring", "text"])
@pytest.mark.parametrize("line", ["%% Another block.", "sphinx_gallery_start_ignore"])
def test_a_text_that_would_begin_a_block_or_hide_code_is_refused(kind, line):
    with pytest.raises(ValueError):
        with_prose(kind, f"A text.\n{line}")


def test_a_helper_is_no_script_of_a_gallery():
    with pytest.raises(ValueError):
        split('"""A helper."""\nimport os\n')
