"""Faults of the C++ and of the toolchain end in one message that names the place."""

import pytest

BUILD = ("tools.build", "compile")
SOURCE = "extension/dummy_collectives/src/dummy.cpp"
# A module that compiles in a moment, for all that is not about PyTorch.
TINY = """\
#include <Python.h>
static PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "dummy_collectives"}};
PyMODINIT_FUNC PyInit_dummy_collectives(void) {{
  {statement}
  return PyModule_Create(&definition);
}}
"""


def test_nothing_is_compiled_without_a_change(project):
    status, output = project.run(*BUILD)
    assert status == 0 and "up to date" in output


def test_a_syntax_error_is_named_with_file_and_line(project):
    project.write(SOURCE, "// one\n// two\nint main( {\n")
    output = project.fail(*BUILD)
    assert f"{SOURCE}:3:" in output and "error:" in output
    assert (project.root / "_build/extension/.key").is_file(), "the last one is kept"


def test_a_warning_fails_the_build(project):
    project.write(SOURCE, TINY.format(statement="int unused;"))
    output = project.fail(*BUILD)
    assert f"{SOURCE}:4:" in output and "unused variable" in output


def test_a_changed_source_is_compiled_again(project):
    project.write(SOURCE, TINY.format(statement=""))
    # -Wextra finds fault with the short initializer, which is not the point here.
    text = project.read("extension/dummy_collectives/setup.py")
    project.write(
        "extension/dummy_collectives/setup.py",
        text.replace('"-Wextra"', '"-Wno-missing-field-initializers"'),
    )
    status, output = project.run(*BUILD)
    assert status == 0 and "up to date" not in output, output
    assert "up to date" in project.run(*BUILD)[1]


def test_without_a_compiler_the_message_says_what_to_install(project):
    output = project.fail(*BUILD, CXX="no-such-compiler")
    assert "no C++ compiler" in output and "apt-get install g++" in output


@pytest.mark.parametrize("pinned", ["2.12.0", "2.13.1"])
def test_another_torch_than_the_pinned_one(project, pinned):
    text = project.read("requirements/execute.txt")
    project.write("requirements/execute.txt", text.replace("torch==2.13.0", f"torch=={pinned}"))
    output = project.fail(*BUILD)
    assert "torch 2.13.0" in output and pinned in output and ".venv" in output
