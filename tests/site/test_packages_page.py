"""pip installs the packages from the site, as the README of a project says."""

import re
import shlex
import subprocess
import sys

import pytest

from tools.pages.new_project import KINDS, english
from tools.pages.packages import ADDRESS
from tools.project.published import Site
from tools.render.root_files import write_root_files


@pytest.fixture
def packages(serve, tmp_path):
    """The address of the packages of a site that is mounted below a path."""
    site = tmp_path / "project"
    site.mkdir()
    write_root_files(site, Site("https://example.org/project/", "", "main", {}))
    return f"{serve(tmp_path)}/project/packages/"


def install(folder, *arguments):
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target"]
    command += [folder, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_pip_finds_both_packages(packages, tmp_path):
    folder = tmp_path / "target"
    done = install(folder, "--find-links", packages, "c10d-frame>=1,<2", "c10d-conformance")
    assert done.returncode == 0, done.stderr
    assert (folder / "c10d_frame/include/frame/version.hpp").is_file()
    assert (folder / "c10d_conformance/cli.py").is_file()


def test_pip_refuses_a_wheel_that_is_not_the_one_of_the_page(packages, tmp_path):
    [wheel] = (tmp_path / "project/packages").glob("c10d_frame-*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"more")
    done = install(tmp_path / "target", "--find-links", packages, "c10d-frame")
    assert done.returncode != 0 and "DO NOT MATCH THE HASHES" in done.stderr


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_command_of_the_readme_finds_the_frame(packages, tmp_path, kind):
    [command] = re.findall(r"^python3 -m pip install --upgrade (.*)$", english(kind.readme), re.M)
    assert f" {ADDRESS} " in command
    arguments = shlex.split(command.replace(ADDRESS, packages))
    done = install(tmp_path / "target", "--upgrade", *arguments)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "target/c10d_frame/include/frame/version.hpp").is_file()
