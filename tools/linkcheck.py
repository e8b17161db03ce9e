"""Check that every external address in the English pages still answers.

usage: python -m tools.linkcheck

Needs the network, so no test and no build does this. Sphinx's builder linkcheck requests the
addresses, with the settings of conf.py. The addresses of the site and its sources are left out.
"""

import json
import shutil

from .pages.sources import lay_out_executed
from .processes.one_build import main, stage
from .processes.sphinx import run_sphinx
from .project.errors import BuildError
from .project.languages import SOURCE_LANGUAGE
from .project.paths import BUILD, DOCS, relative

CHECKED = BUILD / "linkcheck"
ANSWERS = CHECKED / "output.json"  # One object in each line.
BROKEN = {"broken", "timeout"}
NOT_ASKED = {"ignored", "unchecked"}


@stage("linkcheck")
def check() -> None:
    """Print how many addresses were checked; raise BuildError if one is broken."""
    sources = lay_out_executed(BUILD / "sources")
    # Sphinx collects links while it writes pages, and writes only what it has just read.
    shutil.rmtree(CHECKED, ignore_errors=True)
    failure = None
    try:
        doctrees = CHECKED / ".doctrees"
        run_sphinx(
            "checking links", "linkcheck", SOURCE_LANGUAGE, sources, CHECKED, doctrees=doctrees
        )
    except BuildError as error:
        failure = error
    lines = ANSWERS.read_text().splitlines() if ANSWERS.is_file() else []
    answers = [json.loads(line) for line in lines]
    broken = [describe(x) for x in answers if x["status"] in BROKEN]
    if broken:
        raise BuildError("links lead nowhere:\n" + "\n".join(sorted(broken)))
    if failure:
        raise failure
    count = sum(x["status"] not in NOT_ASKED for x in answers)
    print(f"    {count} external links: no findings")


def describe(answer):
    place = f"{relative(DOCS)}/{answer['filename']}:{answer['lineno']}"
    return f"{place}: {answer['uri']}: {answer['info'] or 'no such file'}"


if __name__ == "__main__":
    main(check, usage=__doc__)
