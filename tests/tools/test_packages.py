"""The packages that authors install: one version, all files, and the same bytes each time."""

import email
import io
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import c10d_conformance
import c10d_frame
import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement

from tools.compile.extensions import EXTENSIONS
from tools.pages.new_project import STARTER, STARTER_ACCELERATOR, STARTER_MESSAGES
from tools.pages.packages import RELEASED, wheel
from tools.project.paths import FRAME, HEADERS, ROOT, SUITE
from tools.state.digests import files_below

MODULES = {FRAME: c10d_frame, SUITE: c10d_conformance}
SDIST = "import sys; from flit_core.buildapi import build_sdist; build_sdist(sys.argv[1])"
WHEEL = "import sys; from flit_core.buildapi import build_wheel; build_wheel(sys.argv[1])"
EACH = pytest.mark.parametrize("project", RELEASED, ids=lambda project: project.name)


def build(program, project, folder):
    """Build as pip does, without an index; return the path of the only new file."""
    folder.mkdir()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    command = [sys.executable, "-c", program, folder]
    subprocess.run(command, cwd=project, env=environment, check=True, timeout=60)
    [path] = folder.iterdir()
    return path


def requirements(file):
    return {x.name: x for x in map(Requirement, file)}


# -- Versions ----------------------------------------------------------------------


@EACH
def test_the_changelog_begins_with_the_version(project):
    versions = re.findall(r"^## \[(.*)\] - \d{4}-\d\d-\d\d$", changelog(project), re.M)
    assert versions[0] == MODULES[project].__version__ and len({*versions}) == len(versions)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert {*re.findall(r"^### (.*)$", changelog(project), re.M)} <= kinds


def changelog(project):
    return (project / "CHANGELOG.md").read_text()


def test_the_headers_have_the_version_of_the_package():
    macro = r"^#define C10D_FRAME_VERSION (\d+)$"
    [number] = re.findall(macro, (HEADERS / "frame/version.hpp").read_text(), re.M)
    major, minor, patch = map(int, c10d_frame.__version__.split("."))
    assert int(number) == 10000 * major + 100 * minor + patch


def test_all_that_include_the_frame_require_it():
    projects = [x.folder for x in EXTENSIONS if HEADERS / "frame/version.hpp" in x.sources()]
    assert len(projects) == 5
    for project in (*projects, STARTER):
        metadata = tomllib.loads((project / "pyproject.toml").read_text())
        required = requirements(metadata["build-system"]["requires"])
        assert required["c10d-frame"].specifier.contains(c10d_frame.__version__), project
    extra = requirements(metadata["project"]["optional-dependencies"]["test"])
    assert extra["c10d-conformance"].specifier.contains(c10d_conformance.__version__)


@pytest.mark.parametrize(
    "folder", [STARTER, STARTER_MESSAGES, STARTER_ACCELERATOR], ids=lambda folder: folder.name
)
@pytest.mark.parametrize("offset", [-10000, -1, 10000], ids=["much older", "older", "next major"])
def test_another_version_of_the_headers_ends_with_one_message(tmp_path, folder, offset):
    major = 10000 * int(c10d_frame.__version__.partition(".")[0])
    (tmp_path / "frame").mkdir()
    other = tmp_path / "frame/version.hpp"
    other.write_text(f"#define C10D_FRAME_VERSION {major + offset}\n")
    done = preprocess(folder / "src/registration.cpp", tmp_path)
    assert "error: " in done and "pip install --upgrade 'c10d-frame>=1,<2'" in done
    other.write_text((HEADERS / "frame/version.hpp").read_text())
    assert "c10d-frame" not in preprocess(folder / "src/registration.cpp", tmp_path)


def preprocess(file, *folders):
    """Return the first error of the compiler, which does not find PyTorch's headers."""
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-E", "-Wfatal-errors", file]
    command += [f"-I{folder}" for folder in folders]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.returncode != 0
    return done.stderr


def test_a_text_of_the_package_compiles_no_backend_again():
    sources = {path for extension in EXTENSIONS for path in extension.sources()}
    assert {HEADERS / "frame/engine.hpp", HEADERS / "store/store_transport.hpp"} <= sources
    assert not {FRAME / "README.md", FRAME / "CHANGELOG.md", FRAME / "pyproject.toml"} & sources


def test_the_readme_names_headers_that_are_there():
    text = (FRAME / "README.md").read_text()
    names = {*re.findall(r"\b(?:frame|store|streams)/\w+\.hpp\b", text)}
    assert len(names) > 5 and [x for x in names if not (HEADERS / x).is_file()] == []


# -- Wheels and source distributions -----------------------------------------------


@EACH
def test_a_wheel_and_a_source_distribution_are_whole_and_alike_each_time(tmp_path, project):
    name, content = wheel(project)
    built = build(WHEEL, project, tmp_path / "wheel")
    assert (built.name, built.read_bytes()) == (name, content)
    sources = build(SDIST, project, tmp_path / "sdist")
    assert sources.read_bytes() == build(SDIST, project, tmp_path / "again").read_bytes()

    with tarfile.open(sources) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    assert build(WHEEL, unpacked, tmp_path / "of sdist").read_bytes() == content
    for file in ("CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml"):
        assert (unpacked / file).read_bytes() == (project / file).read_bytes()


@EACH
def test_a_wheel_has_each_file_of_the_package_and_valid_metadata(project):
    module = MODULES[project]
    name, content = wheel(project)
    version, package = module.__version__, module.__name__
    assert name == f"{package}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {x: archive.read(x) for x in archive.namelist()}
    info = f"{package}-{version}.dist-info"
    ours = {x: y for x, y in files.items() if not x.startswith(f"{info}/")}
    assert ours == {
        x.relative_to(project).as_posix(): x.read_bytes() for x in files_below(project / package)
    }
    assert files[f"{info}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()

    # What an index refuses.
    metadata = Metadata.from_email(files[f"{info}/METADATA"], validate=True)
    assert (metadata.name, str(metadata.version)) == (package.replace("_", "-"), version)
    assert metadata.license_expression == "BSD-3-Clause"
    assert metadata.description.rstrip() == (project / "README.md").read_text().rstrip()
    assert email.message_from_bytes(files[f"{info}/WHEEL"])["Tag"] == "py3-none-any"


def test_pip_installs_the_headers_and_a_compiler_finds_them(tmp_path):
    name, content = wheel(FRAME)
    (tmp_path / name).write_bytes(content)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index"]
    command += ["--find-links", tmp_path, "--target", tmp_path / "target", "c10d-frame>=1,<2"]
    subprocess.run(command, check=True, timeout=120)
    ask = [sys.executable, "-c", "import c10d_frame; print(c10d_frame.get_include())"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "target")}
    done = subprocess.run(ask, env=environment, check=True, capture_output=True, text=True)
    include = done.stdout.strip()
    assert include == str(tmp_path / "target/c10d_frame/include")

    program = tmp_path / "program.cpp"
    program.write_text('#include "frame/transport.hpp"\nframe::Place place;\n')
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", f"-I{include}", program]
    subprocess.run(command, check=True, timeout=120)
