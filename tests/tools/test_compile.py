"""Faults of the C++ and of the toolchain end in one message that names the place."""

import pytest

from tools.project.releases import DEFAULT

BUILD = ["tools.compile"]
SETUP = "extension/dummy_collectives/setup.py"
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


def test_a_changed_source_is_compiled_once(project):
    assert "dummy_collectives is up to date" in project.run(*BUILD)[1]
    project.write(SOURCE, TINY.format(statement=""))
    # -Wextra finds fault with the short initializer, which is not the point here.
    project.replace('"-Wextra"', '"-Wno-missing-field-initializers"', SETUP)
    status, output = project.run(*BUILD)
    assert status == 0 and "dummy_collectives is up to date" not in output, output
    assert "dummy_collectives is up to date" in project.run(*BUILD)[1]


@pytest.mark.parametrize(
    "code, line, message",
    [
        ("// one\n// two\nint main( {\n", 3, "error:"),
        (TINY.format(statement="int unused;"), 4, "unused variable"),
    ],
    ids=["error", "warning"],
)
def test_an_error_or_a_warning_is_named_with_file_and_line(project, code, line, message):
    project.write(SOURCE, code)
    output = project.fail(*BUILD)
    assert f"{SOURCE}:{line}:" in output and message in output
    last = project.root / "_build/extension/.dummy_collectives.json"
    assert last.is_file(), "the last compilation"


def test_without_a_compiler_the_message_says_what_to_install(project):
    output = project.fail(*BUILD, CXX="no-such-compiler")
    assert "no C++ compiler" in output and "apt-get install g++" in output


def test_another_torch_than_the_environment_is_for(project):
    project.replace(DEFAULT.version, "2.99.0", "releases.toml")
    output = project.fail(*BUILD)
    assert f"torch {DEFAULT.version}" in output and "2.99.0" in output and ".venv" in output
