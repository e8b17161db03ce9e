"""Faults of the C++ and of the toolchain end in one message that names the place."""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tools.compile import headers
from tools.project.releases import DEFAULT

BUILD = ["tools.compile"]
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
    kept = project.root / "_build/extension/.dummy_collectives.json"
    assert kept.is_file(), "the last one"


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


@pytest.mark.parametrize("wanted", ["2.12.0", "2.99.0"])
def test_another_torch_than_the_environment_is_for(project, wanted):
    text = project.read("releases.toml")
    project.write("releases.toml", text.replace(DEFAULT.version, wanted))
    output = project.fail(*BUILD)
    assert f"torch {DEFAULT.version}" in output and wanted in output and ".venv" in output


def test_headers_that_were_installed_again_are_precompiled_again(tmp_path, monkeypatch):
    torch = tmp_path / "torch.py"
    torch.touch()
    monkeypatch.setattr(headers, "find_spec", lambda name: SimpleNamespace(origin=torch))
    keys = [headers.key(tmp_path), headers.key(tmp_path)]
    os.utime(torch, (0, 0))
    assert keys[0] == keys[1] != headers.key(tmp_path)


@pytest.fixture(scope="module")
def precompiled(lasting_project):
    """A project in which the headers of the tiny module are precompiled."""
    project = lasting_project
    (project.root / "extension/dummy_collectives/include/dummy.hpp").unlink()
    change_code(project, "")
    text = project.read("extension/dummy_collectives/setup.py")
    text = text.replace('"-Wextra"', '"-Wno-missing-field-initializers", "-Winvalid-pch"')
    project.write("extension/dummy_collectives/setup.py", text)
    assert project.run(*BUILD)[0] == 0
    precompile(project)
    return project


def change_code(project, statement):
    project.write(SOURCE, TINY.format(statement=statement))


def precompile(project, before="pass"):
    """Precompile as `make html` does after it has compiled. Return the headers, or None."""
    code = f"from tools.compile import headers; {before}; headers.precompile()"
    path = project.root / "only-a-compiler"
    path.mkdir(exist_ok=True)
    for name in ("c++", "as"):
        (path / name).unlink(missing_ok=True)
        (path / name).symlink_to(shutil.which(name))
    environment = {**os.environ, "PATH": str(path)}
    subprocess.run([sys.executable, "-c", code], cwd=project.root, env=environment, check=True)
    return precompiled_header(project)


def precompiled_header(project):
    """Return the precompiled headers; a compilation that does not use them removes them."""
    return next(project.root.glob("_build/precompiled/*/*/headers.hpp.gch"), None)


@pytest.mark.slow
def test_after_a_change_of_code_the_headers_are_not_compiled_again(precompiled):
    change_code(precompiled, "if (false) return nullptr;")
    status, output = precompiled.run(*BUILD)
    # GCC would have warned if it had not used them, and a warning is an error.
    assert status == 0 and "up to date" not in output, output
    assert precompiled_header(precompiled)


@pytest.mark.slow
def test_a_warning_is_found_all_the_same(precompiled):
    change_code(precompiled, "int unused;")
    output = precompiled.fail(*BUILD)
    assert f"{SOURCE}:4:" in output and "unused variable" in output
    assert precompiled_header(precompiled)


@pytest.mark.slow
def test_an_error_is_said_once(precompiled):
    change_code(precompiled, "nonsense;")
    output = precompiled.fail(*BUILD)
    assert output.count(f"{SOURCE}:4:") == 1 and "nonsense" in output


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["", "nonsense"])
def test_damaged_headers_are_made_anew(precompiled, damage):
    header = precompile(precompiled)
    header.write_text(damage)
    change_code(precompiled, f"// {damage}")
    status, output = precompiled.run(*BUILD)
    assert status == 0, output
    assert not header.exists()
    assert precompile(precompiled).stat().st_size > 10**6


@pytest.mark.slow
def test_what_is_read_after_the_headers_does_not_count(precompiled):
    header = precompile(precompiled)
    precompiled.write(SOURCE, f"{TINY.format(statement='')}#ifdef __linux__\n#endif\n")
    status, output = precompiled.run(*BUILD)
    assert status == 0, output
    assert header.exists()


@pytest.mark.slow
@pytest.mark.parametrize("line", ["#include <string>", "#define PY_SSIZE_T_CLEAN"])
def test_what_is_read_before_the_headers_counts(precompiled, line):
    header = precompile(precompiled)
    precompiled.write(SOURCE, f"{line}\n{TINY.format(statement='')}")
    status, output = precompiled.run(*BUILD)
    assert status == 0, output
    assert not header.exists()


@pytest.mark.slow
def test_a_disk_that_is_nearly_full_is_left_alone(precompiled):
    precompile(precompiled).unlink()
    assert not precompile(precompiled, "headers.SPACE = 2**70")
    assert precompile(precompiled)


@pytest.mark.slow
def test_two_extensions_do_not_precompile_the_same_headers(tmp_path, monkeypatch):
    made = []

    def precompile_slowly(folder, ninja_file):
        time.sleep(0.2)
        made.append(folder.name)

    (tmp_path / "extension/key/build/temp").mkdir(parents=True)
    (tmp_path / "extension/key/build/temp/build.ninja").touch()
    monkeypatch.setattr(headers, "FOLDER", tmp_path)
    monkeypatch.setattr(headers, "_precompile", precompile_slowly)
    monkeypatch.setattr(headers, "_is_precompiled", lambda folder: folder.name in made)
    with ThreadPoolExecutor() as pool:
        for call in [pool.submit(headers.precompile) for _ in range(2)]:
            call.result()
    assert made == ["key"]


def test_a_header_of_ours_is_not_precompiled(precompiled):
    code = TINY.format(statement="if (ours()) return nullptr;")
    precompiled.write(SOURCE, f"#include <ours.hpp>\n{code}")
    for value in ("true", "false"):
        header = f"#pragma once\ninline bool ours() {{ return {value}; }}\n"
        precompiled.write("extension/dummy_collectives/include/ours.hpp", header)
        status, output = precompiled.run(*BUILD)
        assert status == 0 and "up to date" not in output, output
        assert not precompile(precompiled)
