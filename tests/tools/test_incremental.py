"""A build that continues from the last one makes the same bytes as one from nothing.

The tests edit one small site in one way after the other, and never build it from nothing. Each
time, they build a copy of its sources from nothing.
"""

import filecmp
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow
LANGUAGES = """
[[language]]
gettext = "en"
url = "en"
html = "en"
name = "English"

[[language]]
gettext = "ko"
url = "ko"
html = "ko"
name = "한국어"
"""
INDEX = """\
# Home

```{learning-path} 1
```

```{toctree}
:caption: All

first
second
status
terms
tutorial/sample
```
"""
FIRST = """\
# The first page

A paragraph.

See [](second.md) and {ref}`second#a-section`.

```{diagram} drawing
```

{download}`data.txt`

![A picture](picture.png)
"""
SECOND = """\
# The second page

## A section

Another paragraph.

```{literalinclude} ../gallery/tutorial/workers/shown.py
:language: python
```

```{literalinclude} ../extension/dummy_collectives/src/dummy.cpp
:language: cpp
:lines: 1-9
```
"""
DRAWING = """\
<figure><svg viewBox="0 0 10 10"><title>{{ _("A drawing") }}</title></svg>
<figcaption>{{ _("Caption") }}</figcaption></figure>
"""
SCRIPT = '''\
"""
A sample
========

Says hello.
"""
# sphinx_gallery_start_ignore
# A shared comment.
programs = ["workers/shown.py", "workers/hidden.py"]
import dummy_collectives
# sphinx_gallery_end_ignore
print("hello")
'''
SAMPLE = """\
A sample
========

Says hello.

.. code-block:: Python

    print("hello")


.. rst-class:: sphx-glr-script-out

 .. code-block:: none

    hello
"""
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)
CATALOGS = "locales/ko/LC_MESSAGES"


@pytest.fixture(scope="module")
def site(lasting_project):
    project = lasting_project
    project.write("languages.toml", LANGUAGES)
    project.write(".gitignore", "/_build/\n__pycache__/\n*.mo\n")
    pages = {"index.md": INDEX, "first.md": FIRST, "second.md": SECOND, "data.txt": "data"}
    pages |= {"status.md": "# Status\n\n```{translation-status}\n```\n"}
    pages |= {"terms.md": "# Terms\n\n```{term-table} glossary.csv\n```\n"}
    pages |= {"_diagrams/drawing.svg": DRAWING, "tutorial/sample.rst": SAMPLE}
    for name, text in pages.items():
        project.write(f"docs/{name}", text)
    (project.root / "docs/picture.png").write_bytes(PIXEL)
    project.write("gallery/tutorial/sample.py", SCRIPT)
    project.write("gallery/tutorial/workers/shown.py", "x = 1  # A shared comment.\n")
    project.write("gallery/tutorial/workers/hidden.py", "x = 1\n")
    project.write("gallery/run_seconds.json", '{"sample": 5}\n')
    project.write(
        "_build/execute/versions.json", '{"pytorch": "2", "python": "3", "compiler": "C"}'
    )
    succeed(project, "tools.i18n_update")
    translate(project)
    git(project, "init", "--quiet")
    commit(project)
    succeed(project, "tools.render")
    return project


def translate(project):
    """Translate every text that can be translated without understanding it."""
    for path in (project.root / CATALOGS).rglob("*.po"):
        text = path.read_text()
        for message in ("A paragraph.", "Another paragraph.", "The second page", "Caption"):
            text = text.replace(
                f'msgid "{message}"\nmsgstr ""', f'msgid "{message}"\nmsgstr "번역: {message}"'
            )
        path.write_text(text)


def git(project, *arguments):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    command = ["git", *identity, *arguments]
    return subprocess.run(
        command, cwd=project.root, check=True, timeout=30, capture_output=True, text=True
    ).stdout


def commit(project):
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--allow-empty", "--message", "A change")
    # Changes that are not committed: else the next edit would change every footer.
    project.write("tests/notes.txt", str(time.monotonic_ns()))


def succeed(project, *command):
    status, output = project.run(*command)
    assert status == 0, output


def edit(project, name, old, new):
    """Change a file and keep its times, as some copies and restores do."""
    path = project.root / name
    times, text = path.stat(), path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def assert_like_new(project):
    """Build the project again, and a copy of its sources from nothing; compare."""
    succeed(project, "tools.render")
    compare_with_new(project)


def compare_with_new(project):
    rendered = [x / "_build/render" for x in (built_from_nothing(project), project.root)]
    files = [
        sorted(x.relative_to(folder) for x in folder.rglob("*") if x.is_file())
        for folder in rendered
    ]
    assert files[0] == files[1]
    _, differ, errors = filecmp.cmpfiles(*rendered, files[0], shallow=False)
    assert (differ, errors) == ([], [])


def built_from_nothing(project):
    """Return a copy of the sources, built from nothing; the same copy for the same sources."""
    ignored = ["_build", "*.mo", "__pycache__"]
    files = [
        x
        for x in project.root.rglob("*")
        if x.is_file()
        and ".git" not in x.parts
        and "_build" not in x.parts
        and x.suffix not in (".mo", ".pyc")
    ]
    versions = project.read("_build/execute/versions.json")
    state = hashlib.sha256(f"{git(project, 'log', '-1')}{versions}".encode())
    for path in sorted(files):
        state.update(str(path).encode() + path.read_bytes())
    root = project.root.parent / state.hexdigest()
    if not root.exists():
        for old in project.root.parent.glob("?" * 64):
            shutil.rmtree(old)
        copy = project.copy(root, *ignored)
        for name in ("extension", "execute"):
            shutil.copytree(project.root / "_build" / name, root / "_build" / name)
        succeed(copy, "tools.render")
    return root


def change(name, old, new):
    return lambda project: edit(project, name, old, new)


def add_page(project):
    project.write("docs/third.md", "# A third page\n\nSee [](second.md).\n")
    edit(project, "docs/index.md", "second\n", "second\nthird\n")


def remove_page(project):
    if not (project.root / "docs/third.md").exists():
        add_page(project)
        succeed(project, "tools.render")
    (project.root / "docs/third.md").unlink()
    edit(project, "docs/index.md", "third\n", "")


def translate_comment(project):
    """Which is shown on one page, and in a file to download from another."""
    old = 'msgid "A shared comment."\nmsgstr ""'
    edit(project, f"{CATALOGS}/second.po", old, old[:-1] + '공유 주석입니다."')


def change_sample(project):
    edit(project, "gallery/tutorial/sample.py", 'hello")', 'hello you")')
    edit(project, "docs/tutorial/sample.rst", 'hello")', 'hello you")')
    edit(project, "docs/tutorial/sample.rst", "    hello\n", "    hello you\n")


def change_glossary(project):
    path = project.root / "docs/glossary.csv"
    header, first, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *rows]) + "\n")


def add_language(project):
    text = (
        LANGUAGES
        + '\n[[language]]\ngettext = "de"\nurl = "de"\nhtml = "de"\nname = "D"\ncomplete = false\n'
    )
    project.write("languages.toml", text)


def remove_language(project):
    project.write("languages.toml", LANGUAGES)


EDITS = {
    "nothing": lambda project: None,
    "a translation": change(f"{CATALOGS}/first.po", "번역: A paragraph", "문단"),
    "the translation of a title": change(f"{CATALOGS}/second.po", "번역: The", "둘째: The"),
    "a translation that becomes fuzzy": change(
        f"{CATALOGS}/second.po", 'msgid "Another', '#, fuzzy\nmsgid "Another'
    ),
    "a translation of a comment": translate_comment,
    "a translation in a drawing": change(f"{CATALOGS}/first.po", "번역: Caption", "제목"),
    "a translation in a template": change(
        f"{CATALOGS}/sphinx.po", 'msgid "Search"\nmsgstr ""', 'msgid "Search"\nmsgstr "찾기"'
    ),
    "a paragraph": change("docs/second.md", "Another paragraph.", "Many more words." * 99),
    "a title": change("docs/second.md", "The second page", "The 2nd page"),
    "a section": change("docs/second.md", "## A section", "## New\n\nText.\n\n## A section"),
    "a file that is not used any more": change("docs/first.md", "{download}`data.txt`\n", ""),
    "an image that is not used any more": change("docs/first.md", "![A picture](picture.png)", ""),
    "a front matter": change("docs/second.md", "# The", "---\nsearch-weight: 0.5\n---\n# The"),
    "a new page": add_page,
    "a removed page": remove_page,
    "a diagram": change("docs/_diagrams/drawing.svg", "0 0 10 10", "0 0 20 20"),
    "a template": change("docs/_templates/page.html", "page-times", "page-time"),
    "a static file": change("docs/_static/theme.js", "{", " {"),
    "a style sheet": change("docs/_styles/theme.css", "{", " {"),
    "a script of an extension": change("sphinxext/search/static/search.js", "\n", "\n\n"),
    "the glossary": change_glossary,
    "conf.py": change("conf.py", 'project = "', 'project = "New: '),
    "an extension": change("sphinxext/code/program_output.py", 'class="label"', 'class="l"'),
    "a file at the top": change("docs/_root/robots.txt", "\n", "\n# Comment\n"),
    "a sample": change_sample,
    "a program on a page": change("gallery/tutorial/workers/shown.py", "x = 1", "x = 10"),
    "a program that a sample uses": change("gallery/tutorial/workers/hidden.py", "x = 1", "x = 10"),
    "a program that it uses no more": change("gallery/tutorial/sample.py", "workers/hidden.py", ""),
    "the extension": change("extension/dummy_collectives/src/dummy.cpp", "\n", "\n// New.\n"),
    "run times": change("gallery/run_seconds.json", "5", "10"),
    "versions": change("_build/execute/versions.json", '"2"', '"2.1"'),
    "a commit": commit,
    "another language": add_language,
    "one language less": remove_language,
}


@pytest.mark.parametrize("name", EDITS)
def test_after_an_edit(site, name):
    EDITS[name](site)
    assert_like_new(site)


def test_after_an_edit_of_a_catalog_that_pages_show(site):
    """Read the page in all languages, also in those whose catalog has not changed."""
    shown = f"```{{literalinclude}} ../{CATALOGS}/first.po\n```\n\n## A section"
    edit(site, "docs/second.md", "## A section", shown)
    succeed(site, "tools.render")
    catalog = site.root / CATALOGS / "first.po"
    catalog.write_text(f'{catalog.read_text()}\n#~ msgid "Gone"\n#~ msgstr "없음"\n')
    assert_like_new(site)
    assert "Gone" in site.read("_build/render/en/second.html")
    edit(site, "docs/second.md", shown, "## A section")


def test_messages_after_edits(site):
    messages(site)
    edit(site, "docs/second.md", "## A section", "A sentence for a while.\n\n## A section")
    edit(site, "gallery/tutorial/workers/shown.py", "x =", "# A comment for a while.\nx =")
    edited = messages(site)
    assert all(x in edited["second.pot"] for x in ("A sentence for", "A comment for"))
    edit(site, "docs/_diagrams/drawing.svg", "</figure>", "<p>{{ _('More') }}</p></figure>")
    edited = messages(site)
    assert "More" in edited["first.pot"]
    shutil.rmtree(site.root / "_build/gettext")
    assert messages(site) == edited
    edit(site, "docs/second.md", "A sentence for a while.\n\n", "")
    edit(site, "gallery/tutorial/workers/shown.py", "# A comment for a while.\n", "")
    edit(site, "docs/_diagrams/drawing.svg", "<p>{{ _('More') }}</p>", "")


def messages(project):
    """Return the texts that catalogs are compared with, by file."""
    project.run("tools.i18n_check")  # It finds texts without a translation.
    folder = project.root / "_build/gettext"
    return {
        path.relative_to(folder).as_posix(): re.sub("POT-Creation-Date.*", "", path.read_text())
        for path in folder.rglob("*.pot")
    }


def read_pages(project):
    """Return the pages that Sphinx reads now, in each language that it renders."""
    return made_anew(project, "_build/doctrees", "*.doctree")


def written_pages(project):
    """Return the pages that Sphinx writes now, in each language that it renders."""
    return made_anew(project, "_build/render", "*/*.html")


def made_anew(project, folder, pattern):
    folder = project.root / folder
    before = {path: path.stat().st_mtime_ns for path in folder.rglob(pattern)}
    succeed(project, "tools.render")
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob(pattern)
        if path.stat().st_mtime_ns != before.get(path)
    )


def test_only_what_has_changed_is_read_again(site):
    read_pages(site)
    assert read_pages(site) == []
    path = site.root / CATALOGS / "first.po"
    path.write_text(path.read_text().replace('Caption"\nmsgstr "', 'Caption"\nmsgstr "한 '))
    assert read_pages(site) == ["ko/first.doctree"]
    edit(site, "docs/second.md", "\n\n", "\n\n\n")
    assert read_pages(site) == ["en/second.doctree", "ko/second.doctree"]
    edit(site, "gallery/tutorial/workers/shown.py", "comment", "remark")
    changed = ["second.doctree", "tutorial/sample.doctree"]
    assert read_pages(site) == [f"{x}/{page}" for x in ("en", "ko") for page in changed]
    commit(site)
    assert read_pages(site) == []


def test_only_pages_that_show_an_edit_are_written_again(site):
    """Also when it changes how many words there are, of which MyST-Parser keeps count."""
    written_pages(site)
    path = site.root / CATALOGS / "first.po"
    start = 'msgid "A paragraph."\nmsgstr "'
    path.write_text(path.read_text().replace(start, f"{start}네 단어가 더 있는 "))
    # Sphinx always writes the contents that list a page, and what is no page of sources.
    around = ["index", "search"]
    assert written_pages(site) == sorted(f"ko/{x}.html" for x in ["first", *around])


def flip(project, pattern):
    """Change one byte in the middle of a file."""
    path = sorted((project.root).glob(pattern))[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def remove(project, pattern):
    path = sorted((project.root).glob(pattern))[0]
    path.unlink() if path.is_file() else shutil.rmtree(path)


@pytest.mark.parametrize("damage", [flip, remove])
@pytest.mark.parametrize(
    "pattern",
    [
        "_build/render/ko/second.html",
        "_build/render/ko/_static/site.css",
        "_build/render/index.html",
        "_build/doctrees/ko/second.doctree",
        "_build/doctrees/ko/environment.pickle",
        "_build/doctrees/ko/search-sections.json",
        "_build/records/render-ko.json",
        "_build/records/status-ko.json",
        f"{CATALOGS}/second.mo",
        f"{CATALOGS}/sphinx.mo",
    ],
)
def test_after_damage(site, damage, pattern):
    damage(site, pattern)
    assert_like_new(site)


def test_after_the_build_folder_was_removed(site):
    for name in ("render", "doctrees", "records"):
        remove(site, f"_build/{name}")
        succeed(site, "tools.render")
    compare_with_new(site)


@pytest.mark.parametrize("moment", [0.02, 0.2, 0.4, 0.6, 0.8, 0.97])
def test_after_a_build_was_killed(site, moment):
    """At a part of the time that it takes; Sphinx runs in processes of its own."""
    words = f"Words at {moment}."
    site.write("docs/second.md", site.read("docs/second.md") + f"\n\n{words}\n")
    started = time.monotonic()
    succeed(site, "tools.render")
    seconds = time.monotonic() - started
    edit(site, "docs/second.md", words, "Other words.")
    command = [sys.executable, "-m", "tools.render"]
    build = subprocess.Popen(command, cwd=site.root)
    time.sleep(moment * seconds)
    build.send_signal(signal.SIGKILL)
    build.wait(timeout=60)
    assert_like_new(site)
