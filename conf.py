"""Sphinx configuration: docs/ and docs/auto_gallery/ to one site per language.

The language is chosen on the command line: ``-D language=ko``.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from tools.languages import LANGUAGES  # noqa: E402
from tools.paths import RUN_SECONDS  # noqa: E402
from tools.samples import downloads  # noqa: E402
from tools.site import PUBLISHED  # noqa: E402

# -- Project ---------------------------------------------------------------------

project = "The c10d backend tutorial"
author = "the authors of the c10d backend tutorial"

# -- Sources ---------------------------------------------------------------------

extensions = [
    "myst_parser",
    "sphinxext.complete_js_translations",
    "sphinxext.diagrams",
    "sphinxext.faithful_translations",
    "sphinxext.language_switcher",
    "sphinxext.learning_path",
    "sphinxext.sample_downloads",
    "sphinxext.stable_anchors",
    "sphinxext.translatable_comments",
    "sphinxext.translatable_labels",
    "sphinxext.translation_progress",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_*"]
myst_enable_extensions = ["colon_fence", "deflist"]

learning_path_run_seconds = {
    f"auto_gallery/{sample}": seconds
    for sample, seconds in json.loads(RUN_SECONDS.read_text()).items()
}

sample_downloads = downloads()
sample_downloads_addresses = {x.gettext: f"{PUBLISHED.url}{x.url}/" for x in LANGUAGES}
sample_downloads_outputs = ["sphx-glr-script-out", "result-table"]

# -- Translation -----------------------------------------------------------------

locale_dirs = ["../locales"]
gettext_compact = False  # One catalog per page.
gettext_location = False  # Line numbers would change with every edit.
gettext_uuid = False
language_switcher_languages = [
    {"sphinx": x.gettext, "url": x.url, "html": x.html, "name": x.name}
    for x in LANGUAGES
]

# -- HTML ------------------------------------------------------------------------

html_theme = "furo"
html_title = project
html_favicon = "docs/_static/favicon.svg"
templates_path = ["docs/_templates"]
html_static_path = ["docs/_static"]
html_css_files = ["site.css"]
html_js_files = ["language-switcher.js"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_use_index = False  # There are no index entries.
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
# Sphinx 9.0's own splitters for Korean and Chinese find too little or fail in the
# browser; the plain one at least finds whole words and identifiers.
html_search_language = "en"
