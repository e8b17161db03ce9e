"""Compare each listing of the rendered pages with its record in provenance.json.

Sphinx has compared the record with the file, and warned of any difference.
"""

import json
from collections import defaultdict
from pathlib import Path

from ..pages.provenance import FILE
from ..project.errors import BuildError
from ..project.languages import LANGUAGES, SOURCE_LANGUAGE
from ..project.paths import relative
from .page_facts import PageFacts


def findings(rendered: Path, pages: set[str], facts: dict[Path, PageFacts]) -> list[str]:
    """Return the listings that no record is about, and the English ones that differ from theirs.

    Those of other languages are compared with the English page.
    """
    file = rendered / FILE
    if not file.is_file():
        raise BuildError(f"{relative(file)} is missing: run `make render` first")
    recorded: dict[str, dict[int, str]] = defaultdict(dict)
    for listing in json.loads(file.read_text())["listings"]:
        recorded[f"{listing['page']}.html"][listing["number"]] = listing["sha256"]
    faults = []
    for page in sorted(pages):
        digests = recorded[page]
        for language in LANGUAGES:
            listings = facts[rendered / language.url / page].listings
            shown = {number: digest for number, digest, _ in listings}
            where = f"{language.url}/{page}: listing"
            for number in sorted(shown.keys() ^ digests.keys()):
                faults.append(f"{where} {number} has no provenance")
            if language == SOURCE_LANGUAGE:
                for number in sorted(shown.keys() & digests.keys()):
                    if shown[number] != digests[number]:
                        faults.append(f"{where} {number} differs from the text recorded for it")
    return faults
