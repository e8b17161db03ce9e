"""Compare each listing of the rendered pages with its record, and that with the file."""

import json

from sphinxext.text.gallery_scripts import HIDDEN, prose_lines

from ..pages.provenance import FILE
from ..project.errors import BuildError
from ..project.languages import LANGUAGES, SOURCE_LANGUAGE
from ..project.paths import ROOT, relative
from .page_facts import digest_of_lines


def findings(rendered, pages, facts):
    """Compare each listing of each page with its record, and that with the file.

    ``facts`` are those of page_facts.py, by the path of each page.
    """
    file = rendered / FILE
    if not file.is_file():
        raise BuildError(f"{relative(file)} is missing: run `make render` first")
    records: dict[str, dict[str, dict]] = {}
    for listing in json.loads(file.read_text())["listings"]:
        records.setdefault(f"{listing['page']}.html", {})[listing["number"]] = listing
    found = []
    for page in sorted(pages):
        recorded = records.get(page, {})
        for language in LANGUAGES:
            shown = facts[rendered / language.url / page].numbered_listings
            shown = {number: digests for number, *digests in shown}
            where = f"{language.url}/{page}: listing"
            for number in sorted(shown.keys() ^ recorded.keys()):
                found.append(f"{where} {number} has no provenance")
            if language == SOURCE_LANGUAGE:
                for number in sorted(shown.keys() & recorded.keys()):
                    for fault in _faults(shown[number], recorded[number]):
                        found.append(f"{where} {number} {fault}")
    return found


def _faults(digests, record):
    exact, of_lines = digests
    if exact != record["sha256"]:
        yield "differs from the text that was recorded for it"
    if record["kind"] != "output" and of_lines != digest_of_lines(_source(record)):
        first, last = record["lines"]
        yield f"is not in {record['file']}, lines {first} to {last}"


def _source(record):
    """Return the lines that a record names, without those that a page does not show."""
    first, last = record["lines"]
    text = (ROOT / record["file"]).read_text()
    in_comment = record["kind"] == "typed" and record["file"].endswith(".py")
    lines = prose_lines(text) if in_comment else text.split("\n")
    return HIDDEN.sub("", "\n".join(lines[first - 1 : last]))
