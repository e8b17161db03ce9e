"""The downloads of samples: the verified code, in the reader's language."""

import ast
import os
import re
import subprocess
import sys
import zipfile
from os.path import normpath
from pathlib import PurePosixPath
from sysconfig import get_path
from urllib.parse import urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup, SoupStrainer

from sphinxext.code.translated_files import comments_of, language_of
from sphinxext.text.gallery_scripts import prose, split
from sphinxext.translation.translatable_comments import code_without_comments
from tools.execute.samples import extensions_of, files_of, name_for_sample, page_of, samples
from tools.pages.new_project import KINDS, project_files
from tools.project.languages import SOURCE_LANGUAGE, TRANSLATIONS
from tools.project.paths import EXTENSIONS, GALLERY, ROOT, SITE, relative
from tools.project.published import PUBLISHED

SAMPLES = samples()
QUICK = GALLERY / "tutorial/step_4_unimplemented_collective.py"
SUITE_PAGE = GALLERY / "communicate/test_your_backend.py"
WITH_WORKERS = GALLERY / "operations/collectives.py"
# Into the projects, as they are.
COPIED = ("sim/", "simulated_accelerator/", "wheels/")
NO_PROSE = r"^```.*?^```$|`[^`]+`|\(http\S+\)"  # of Markdown
MULTI = re.M | re.S


def download(language, script, kind):
    folder = SITE / language.url / "_downloads" / script.parent.name
    return folder / f"{script.stem}.{kind}"


def page(language, script):
    return SITE / language.url / f"{page_of(script)}.html"


def without_note(script):
    """The script from its docstring on."""
    return re.sub(r"\A(#.*\n)+", "", script)


def notebook_of(language, script):
    path = download(language, script, "ipynb")
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def cells(language, script, kind):
    """The text of each cell of a kind in a notebook."""
    found = notebook_of(language, script).cells
    return [cell.source for cell in found if cell.cell_type == kind]


def unzipped(language, script):
    with zipfile.ZipFile(download(language, script, "zip")) as archive:
        return {x.removeprefix(f"{script.stem}/"): archive.read(x) for x in archive.namelist()}


def code_of(text):
    """The syntax tree of Python code, without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            if isinstance(body[0].value, ast.Constant):
                body[0].value.value = ""
    return ast.dump(tree)


def test_the_code_of_a_script_is_the_verified_one(language):
    for script in SAMPLES:
        offered = download(language, script, "py").read_text()
        assert code_of(offered) == code_of(script.read_text()), script.name


def test_notebooks_are_valid_and_have_the_code_of_the_script(language):
    for script in SAMPLES:
        nbformat.validate(notebook_of(language, script))
        blocks = split(without_note(download(language, script, "py").read_text()))
        code = [block.strip("\n") for kind, block in blocks if kind == "code"]
        assert cells(language, script, "code") == [block for block in code if block]


def test_a_zip_file_holds_what_the_sample_uses(language):
    for script in SAMPLES:
        files = unzipped(language, script)
        assert not any(str(ROOT).encode() in content for content in files.values())
        for kind in ("py", "ipynb"):
            alone = download(language, script, kind).read_bytes()
            assert files[relative(script.with_suffix(f".{kind}"))] == alone
        for used in files_of(script)[1:]:
            name = relative(name_for_sample(used, script))
            texts = files[name].decode(), used.read_text()
            if used.suffix == ".py":
                code, original = map(code_of, texts)
            else:
                code, original = (code_without_comments(text, "cpp") for text in texts)
            assert code == original
        loaded = {extension.folder for extension in extensions_of(script)}
        for extension in EXTENSIONS:
            compiled = f"{relative(extension)}/setup.py" in files
            assert compiled == (extension in loaded)
            installed = f"pip install --no-build-isolation ./{relative(extension)}\n"
            assert compiled == (installed in files["README.txt"].decode())
        assert {"README.txt", "requirements.txt", "LICENSE"} <= set(files)


@pytest.mark.parametrize("translation", TRANSLATIONS, ids=lambda x: x.url)
def test_no_paragraph_of_a_sample_is_in_english(translation):
    if not translation.complete:
        return
    for script in SAMPLES:
        offered = without_note(download(translation, script, "py").read_text())
        texts = [prose(kind, source) for kind, source in split(offered) if kind != "code"]
        for text in [*texts, *cells(translation, script, "markdown")]:
            text = re.sub(
                r"^((?:> )?```+).*?^\1$|^ *:[a-z-]+: [^\n]*$|`[^`]+`|\[.*?\]\(.*?\)",
                "",
                text,
                flags=MULTI,
            )
            assert not re.search(r"(\b[a-z]+ ){4}[a-z]+\b", text), f"{script.stem}: {text}"


def test_links_of_a_notebook_lead_to_the_published_site(language):
    found = 0
    for script in SAMPLES:
        for text in cells(language, script, "markdown"):
            text = re.sub(r"^((?:> )?```+).*?^\1$", "", text, flags=MULTI)
            for address in re.findall(r"\]\(([^)]+)\)|^> (http\S+)", text, re.M):
                parts = urlsplit(address[0] or address[1])
                assert parts.scheme == "https", address
                if parts.geturl().startswith(PUBLISHED.url):
                    assert (SITE / parts.path.lstrip("/")).is_file(), address
                    found += 1
    assert found >= len(SAMPLES)


def test_a_page_links_to_its_downloads_and_says_their_size(language):
    for script in SAMPLES:
        file = page(language, script)
        box = SoupStrainer(class_="sample-downloads")
        links = BeautifulSoup(file.read_text(), "html.parser", parse_only=box).find_all("a")
        targets = [(file.parent / link["href"]).resolve() for link in links]
        assert targets == [download(language, script, x) for x in ("py", "ipynb", "zip")]
        for link, target in zip(links, targets, strict=True):
            kilobytes = int(re.search(r"(\d+) KB", link.get_text())[1])
            assert abs(kilobytes - target.stat().st_size / 1024) <= 1
            assert link.has_attr("download")
        assert len({link.get_text() for link in links}) == 3


def test_the_links_are_found_by_their_names(visit, address, language):
    tab = visit(f"{address}/{language.url}/{page_of(QUICK)}.html")
    with tab.expect_download() as download:
        tab.get_by_role("group").get_by_role("link").last.click()
    assert download.value.suggested_filename == f"{QUICK.stem}.zip"


# -- They run ----------------------------------------------------------------------

RUN_CELLS = """\
import json, sys
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), globals())
"""


def run(folder, *command):
    # The test's own environment has the packages that requirements.txt names.
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )


def printed_on_page(script):
    """What the code of a sample printed when the site was made."""
    soup = BeautifulSoup(page(SOURCE_LANGUAGE, script).read_text(), "html.parser")
    boxes = soup.select(".sphx-glr-script-out pre")
    return "\n".join(box.get_text().strip("\n") for box in boxes)


def test_a_zip_file_runs(tmp_path):
    unzip_and_run(tmp_path, TRANSLATIONS[-1], QUICK, [f"{QUICK.stem}.py"])
    unzip_and_run(tmp_path, TRANSLATIONS[0], QUICK, ["-c", RUN_CELLS, f"{QUICK.stem}.ipynb"])


def test_a_zip_file_with_workers_runs(tmp_path):
    unzip_and_run(tmp_path, TRANSLATIONS[0], WITH_WORKERS, [f"{WITH_WORKERS.stem}.py"])


def test_the_suite_runs_from_its_zip_file(tmp_path):
    """With PyTorch, pytest and hypothesis alone: it tests gloo, and finds an error of gloo."""
    with zipfile.ZipFile(download(SOURCE_LANGUAGE, SUITE_PAGE, "zip")) as archive:
        archive.extractall(tmp_path)
        requirements = archive.read(f"{SUITE_PAGE.stem}/requirements.txt")
        assert b"pytest==" in requirements and b"hypothesis==" in requirements
    suite = ["-m", "c10d_conformance", "--backend", "gloo", "--ranks", "2"]
    checks = ["registered or completed_after_wait", "registered"]
    for status, names in zip([1, 0], checks, strict=True):
        done = run(tmp_path / SUITE_PAGE.stem / "conformance", *suite, "-k", names)
        assert done.returncode == status, done.stdout + done.stderr
        assert "gloo on cpu" in done.stdout


def unzip_and_run(tmp_path, language, script, command):
    with zipfile.ZipFile(download(language, script, "zip")) as archive:
        archive.extractall(tmp_path)
    done = run(tmp_path / script.stem / relative(script.parent), *command)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.split("\n") if line]
    assert lines == [x for x in printed_on_page(script).split("\n") if x]


def test_a_script_that_lacks_its_helper_says_where_it_is(tmp_path, language):
    script = download(language, WITH_WORKERS, "py").read_text()
    note = "".join(re.match(r"(#.*\n)+", script)[0].split())
    address = f"{PUBLISHED.url}{language.url}/{page_of(WITH_WORKERS)}.html"
    assert address in note and "collectives/,launcher.py" in note and "zip" in note
    (tmp_path / "a.py").write_text(script)
    errors = run(tmp_path, "a.py").stderr
    assert re.search(r"^ +from launcher import launch  # .*zip", errors, re.M), errors
    assert "ModuleNotFoundError: No module named 'launcher'" in errors


# -- The project that readers begin with -----------------------------------------


def project(language, kind):
    name = KINDS[kind].download
    with zipfile.ZipFile(SITE / language.url / "_downloads" / f"{name}.zip") as archive:
        return {x.removeprefix(f"{name}/"): archive.read(x) for x in archive.namelist()}


@pytest.mark.parametrize("kind", KINDS)
def test_the_project_is_the_one_of_make_new_backend(language, kind):
    wanted = project_files("acme", kind)
    found = project(language, kind)
    assert found.keys() == wanted.keys()
    if language == SOURCE_LANGUAGE:
        assert found == wanted
    for name in found.keys() - {"README.md"}:
        texts = found[name], wanted[name]
        code = language_of(PurePosixPath(name).suffix)
        if code != "none" and not name.startswith(COPIED):
            texts = (code_without_comments(text.decode(), code) for text in texts)
        text, original = texts
        assert text == original, name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("translation", TRANSLATIONS, ids=lambda x: x.url)
def test_the_project_has_no_text_in_english(translation, kind):
    if not translation.complete:
        return
    texts = []
    for name, content in project(translation, kind).items():
        if name.startswith(COPIED):
            continue
        text = content.decode()
        if name == "README.md":
            texts += re.sub(NO_PROSE, "", text, flags=MULTI).split("\n")
        else:
            texts += comments_of(text, language_of(PurePosixPath(name).suffix))
    assert [x for x in texts if x.isascii() and re.search(r"[A-Za-z]+ [a-z]+ [a-z]+", x)] == []
    assert sum(not x.isascii() for x in texts) > 30


# -- The dummy, on the page that shows all of it -----------------------------------

FOUR_STEPS = GALLERY / "tutorial/four_steps.py"
IN_ORDER_OF_PAGE = [
    *("src/dummy.cpp", "setup.py", "dummy_collectives/__init__.py", "pyproject.toml"),
    "../first_program.py",
]


def dummy(language):
    with zipfile.ZipFile(SITE / language.url / "_downloads/four-steps.zip") as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def code_on_page(language):
    """Return the text of each listing from a file, the command and what it printed."""
    soup = BeautifulSoup(page(language, FOUR_STEPS).read_text(), "html.parser")
    [command] = soup.select(".highlight-sh pre")
    [output] = soup.select(".sphx-glr-script-out pre")
    blocks = [x for x in soup.select("article pre") if x not in (command, output)]
    _, *listings = (x.get_text() for x in blocks)  # The first is the code that shows the output.
    return listings, command.get_text(), output.get_text()


def test_the_page_shows_the_whole_dummy_in_short_listings(language):
    def lines(texts):
        return [line.strip() for text in texts for line in text.splitlines() if line.strip()]

    files = dummy(language)
    names = [normpath(f"four-steps/dummy-collectives/{name}") for name in IN_ORDER_OF_PAGE]
    assert files.keys() == {*names, "four-steps/LICENSE"}
    listings, *_ = code_on_page(language)
    assert lines(listings) == lines(files[name] for name in names)
    assert len(lines(listings)) <= 150
    assert max(len(text.splitlines()) for text in listings) <= 25


@pytest.mark.slow
def test_the_dummy_runs_with_the_command_of_its_page(tmp_path):
    """In an environment of its own, which borrows PyTorch and pip from this one."""
    _, command, output = code_on_page(SOURCE_LANGUAGE)
    for name, text in dummy(TRANSLATIONS[0]).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    run(tmp_path, "-m", "venv", "--without-pip", "venv").check_returncode()
    [packages] = tmp_path.glob("venv/lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(get_path("purelib"))
    environment = {**os.environ, "PATH": f"{tmp_path}/venv/bin:{os.environ['PATH']}"}
    for tool, module in {"pip": "pip", "torchrun": "torch.distributed.run"}.items():
        path = tmp_path / "venv/bin" / tool
        path.write_text(f'#!/bin/sh\nexec "{tmp_path}/venv/bin/python" -m {module} "$@"\n')
        path.chmod(0o755)
    environment |= {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for name in ("PYTHONPATH", "PYTHONUNBUFFERED"):
        environment.pop(name, None)
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path / "four-steps",
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    # A rank may write between a line of another one and its end.
    lines = re.findall(r"rank \d: (?:(?!rank \d: ).)+", done.stdout)
    assert sorted(lines) == sorted(output.strip().splitlines())
