"""Compare this build with the stock way to build the same content, side by side.

usage: python -m tools.bench

The stock way compiles the extension with the flags of setuptools, and runs for each language a
plain sphinx-build that executes the samples with sphinx-gallery, as for sites that have a
project for each language. A second measurement builds the languages one after the other in one
folder, where sphinx-gallery executes the samples for the first language only. Both ways work
in clones of the last commit, with the packages of this clone. Prints a table and writes
_build/bench.json. Takes about half an hour; nothing else should run meanwhile.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from .execute.samples import page_of, samples
from .project.errors import BuildError, ending_the_program
from .project.languages import LANGUAGES
from .project.paths import BUILD, ROOT, relative
from .state.digests import generated_pages
from .state.records import Record

RESULT = BUILD / "bench.json"
TIMEOUT = 3600  # seconds, for one command
SAMPLE = "gallery/tutorial/step_4_one_rank.py"
CPP = "extension/dummy_collectives/src/dummy.cpp"
CATALOG = "locales/ko/LC_MESSAGES/overview/map.po"
COMPILERS = re.compile(r"cc1plus|collect2|^ld|^as$|c\+\+|g\+\+|clang")
GOALS = {
    "cold": "ratio of 3",
    "nothing changed": "0.5 s, ratio of 15",
    "one message": "1.5 s",
    "one message, preview running": "1.5 s",
    "one sample": "3 s more than its own time",
    "one line of C++, compiled": "10 s",
    "one line of C++": "(stock shows the old output)",
    "peak memory (MiB)": "1024",
}
STOCK_CONFIGURATION = """
import os
path = os.environ["PYTHONPATH"]


def restore_path(gallery_conf, script):
    "All samples run in one process, and one of them changes its environment."
    os.environ["PYTHONPATH"] = path


suppress_warnings = ["config.cache"]
# What knows the pages of our own stage "execute" only.
replaced = {"sphinxext.code.code_provenance", "sphinxext.code.sample_downloads"}
extensions = [x for x in extensions if x not in replaced] + ["sphinx_gallery.gen_gallery"]
sphinx_gallery_conf = {
    "examples_dirs": sorted(str(x.parent) for x in Path(__file__).parent.glob("gallery/*/*.rst")),
    "gallery_dirs": sorted(x.parent.name for x in Path(__file__).parent.glob("gallery/*/*.rst")),
    "filename_pattern": "",
    "ignore_pattern": "(launcher|result_table)[.]py",
    "within_subsection_order": "FileNameSortKey",
    # No sample draws anything, and matplotlib is not among our packages.
    "image_scrapers": (),
    "reset_modules": (restore_path,),
}
"""


class Clone:
    """A clone of the last commit, which shares the virtual environment."""

    sample = SAMPLE

    def __init__(self, folder):
        self.root = Path(folder)
        subprocess.run(["git", "clone", "-q", ROOT, self.root], check=True)
        (self.root / ".venv").symlink_to(ROOT / ".venv")
        self.peak = 0  # bytes: the most that one process held, compilers apart

    def run(self, *command, folder="", **environment):
        """Run a command; return how many seconds it took."""
        env = {**os.environ, "PYTHONUTF8": "1", **environment}
        env["PATH"] = f"{self.root}/.venv/bin{os.pathsep}{env['PATH']}"
        started = time.monotonic()
        with tempfile.TemporaryFile("w+") as log:
            process = psutil.Popen(
                [str(part) for part in command],
                cwd=self.root / folder,
                env=env,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            watch = threading.Thread(target=self._watch, args=[process], daemon=True)
            watch.start()
            status = process.wait(TIMEOUT)
            seconds = time.monotonic() - started
            watch.join()
            log.seek(0)
            if status != 0:
                raise BuildError(f"{' '.join(map(str, command))}:\n{log.read()[-4000:]}")
        return seconds

    def _watch(self, root):
        while root.is_running() and root.status() != psutil.STATUS_ZOMBIE:
            try:
                for process in root.children(recursive=True):
                    if not COMPILERS.search(process.name()):
                        self.peak = max(self.peak, process.memory_info().rss)
            except psutil.Error:  # One has just ended.
                continue
            time.sleep(0.2)

    def replace(self, name, old, new):
        path = self.root / name
        text = path.read_text()
        if old not in text:
            raise BuildError(f"{name} no longer contains {old!r}: correct tools/bench.py")
        path.write_text(text.replace(old, new, 1))


class Ours(Clone):
    def build(self):
        return self.run("make", "html")

    def compile(self):
        return self.run("make", "compile")

    def sample_alone(self):
        """Return how long the edited sample itself took."""
        path = BUILD / "execute" / f"{page_of(ROOT / SAMPLE)}.json"
        return Record(self.root / relative(path), of_tools=False).load()["seconds"]

    def preview(self, old, new):
        """Return how long it takes until the open preview shows an edit."""
        with open(self.root / "preview.log", "w+") as log:
            command = [".venv/bin/python", "-m", "tools.preview", "ko"]
            process = psutil.Popen(command, cwd=self.root, stdout=log, stderr=log)
            try:
                self._wait_until(lambda: "Ctrl-C" in (self.root / "preview.log").read_text())
                time.sleep(1)  # It begins to look for edits a moment later.
                page = self.root / "_build/preview/html/ko/overview/map.html"
                self.replace(CATALOG, old, new)
                return self._wait_until(lambda: new in page.read_text())
            finally:
                processes = [*process.children(recursive=True), process]
                for each in processes:
                    each.kill()
                psutil.wait_procs(processes)

    def _wait_until(self, is_so):
        started = time.monotonic()
        while not is_so():
            if time.monotonic() > started + 60:
                raise BuildError(f"the preview shows no edit: see {self.root}/preview.log")
            time.sleep(0.02)
        return time.monotonic() - started


class Stock(Clone):
    sample = SAMPLE.replace("_", "-")

    def __init__(self, folder):
        super().__init__(folder)
        with open(self.root / "conf.py", "a") as conf:
            conf.write(STOCK_CONFIGURATION)
        for script in samples():  # To make pages of the same names.
            ours = self.root / relative(script)
            ours.rename(ours.with_name(ours.name.replace("_", "-")))
        setup = "extension/dummy_collectives/setup.py"
        self.replace(setup, "            extra_compile_args", "            # extra_compile_args")
        self.replace(setup, "use_ninja=True", "use_ninja=False")

    def compile(self):
        build = ["setup.py", "-q", "build", "--build-lib", self.root / "built"]
        return self.run("python", *build, folder="extension/dummy_collectives")

    def render(self, language):
        return self.run(
            *("python", "-m", "sphinx", "-q", "-b", "html", "-c", "."),
            *("-D", f"language={language.gettext}", "-d", f"doctrees/{language.url}"),
            *("docs", f"html/{language.url}"),
            PYTHONPATH=f"{self.root}/built:{self.root}",
        )

    def build(self):
        return self.compile() + sum(self.render(language) for language in LANGUAGES)

    def build_each_alone(self):
        """Build from nothing; the languages share only the compiled extension."""
        seconds = self.compile()
        for language in LANGUAGES:
            self.run("git", "clean", "-qfdX", "docs")
            seconds += self.render(language)
        return seconds


def edits(clone):
    """Yield the name of an edit after making it."""
    clone.replace("README.md", "\n", "\n\n")
    yield "first edit since the commit"  # which each page names
    clone.replace(CATALOG, "장치 하나에서 학습", "장치 하나로 학습")
    yield "one message"
    clone.replace(clone.sample, "import torch\n", "import torch\n\nassert torch.__version__\n")
    yield "one sample"
    clone.replace(CPP, "  return devices;", "  devices.shrink_to_fit();\n  return devices;")
    yield "one line of C++"


def compare(folder):
    """Return the seconds of both ways, by what was done."""
    found = {}
    clones = {"ours": Ours(f"{folder}/ours"), "stock": Stock(f"{folder}/stock")}
    for way, clone in clones.items():
        cold = clone.build()
        if way == "ours":
            note(found, "cold", way, cold)
        else:
            note(found, "cold", way, Stock(f"{folder}/each").build_each_alone())
        note(found, "cold, samples executed once", way, cold)
        note(found, "nothing changed", way, clone.build())
        for edit in edits(clone):
            if edit == "one line of C++":
                note(found, f"{edit}, compiled", way, clone.compile())
            note(found, edit, way, clone.build())
            if edit == "one sample" and way == "ours":
                note(found, "one sample, its own time", way, clone.sample_alone())
        if way == "ours":
            seconds = clone.preview("장치 하나로 학습", "장치 하나만으로 학습")
            note(found, "one message, preview running", way, seconds)
        note(found, "peak memory (MiB)", way, clone.peak / 2**20)
    return found


def note(found, what, way, value):
    found.setdefault(what, {})[way] = round(value, 2)
    print(f"    {way}: {what}: {value:.2f}", flush=True)


def growth(folder):
    """Seconds to render, by the number of pages and by the number of languages."""
    found = {"pages": {}, "languages": {}}
    pages = sorted((ROOT / "docs").glob("[!_]*/*.md"))
    pages = [path for path in pages if path.parent.name in ("operations", "overview", "tutorial")]
    for factor in (1, 2, 4, 8):
        clone = executed_clone(f"{folder}/pages-{factor}")
        sources = [*clone.root.glob("docs/**/[!_]*.md"), *clone.root.glob("docs/**/*.rst")]
        count = len(sources)
        for number in range(count * (factor - 1)):
            original = pages[number % len(pages)]
            copy = clone.root / original.relative_to(ROOT)
            copy = copy.with_name(f"{copy.stem}-{number}.md")
            copy.write_text("---\norphan: true\n---\n" + original.read_text())
        seconds = clone.run(sys.executable, "-m", "tools.render")
        note(found, "pages", count * factor, seconds)
        shutil.rmtree(clone.root)
    clone = executed_clone(f"{folder}/languages")
    more = ["ja", "de", "fr", "es", "it", "pt_BR", "ru", "pl", "nl"]
    for count in (3, 6, 12):
        for name in more[: count - len(LANGUAGES)]:
            if not (clone.root / "locales" / name).exists():
                clone.run(sys.executable, "-m", "tools.i18n_add", name)
                # In a language of its own, as far as the work is concerned.
                shutil.copytree(clone.root / "locales/ko", clone.root / "locales" / name)
        shutil.rmtree(clone.root / "_build/render", ignore_errors=True)
        seconds = clone.run(sys.executable, "-m", "tools.render")
        note(found, "languages", count, seconds)
    return found


def executed_clone(folder):
    """Return a clone that has the pages of the samples and is ready to be rendered."""
    clone = Clone(folder)
    for page in generated_pages():
        shutil.copyfile(page, clone.root / relative(page))
    for name in ("execute", "extension"):
        shutil.copytree(BUILD / name, clone.root / "_build" / name)
    return clone


def table(found):
    lines = [f"{'seconds':34}{'ours':>9}{'stock':>10}{'ratio':>8}  goal"]
    for what, ways in found.items():
        line = f"{what:34}{ways['ours']:9.2f}"
        if "stock" in ways:
            line += f"{ways['stock']:10.2f}{ways['stock'] / ways['ours']:8.1f}"
        lines.append(f"{line:61}  {GOALS.get(what, '')}".rstrip())
    return "\n".join(lines)


def main():
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        result = {"seconds": compare(folder), "growth": growth(folder)}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\n{table(result['seconds'])}\n")
    for what, seconds in result["growth"].items():
        print(f"rendering, by {what}: " + ", ".join(f"{n}: {s} s" for n, s in seconds.items()))
    seconds = result["growth"]["languages"]
    few, many = min(seconds), max(seconds)
    each = (seconds[many] - seconds[few]) / (many - few)
    share = each / result["seconds"]["cold"]["ours"]
    print(f"each further language: {each:.2f} s, {share:.1%} of the cold build (goal: 5 %)")
    print(f"\nwritten to {relative(RESULT)}")


if __name__ == "__main__":
    with ending_the_program():
        main()
