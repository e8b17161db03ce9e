"""Sphinx configuration: a copy of docs/ with the pages of the samples, one site per language.

tools/pages/sources.py makes the copy, with links to gallery/, extension/ and locales/ beside it.

The language is chosen on the command line: ``-D language=ko``.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from sphinx.errors import ConfigError

from tools.execute import run_seconds
from tools.execute.samples import page_of, samples
from tools.pages import provenance, unexecuted_lines
from tools.pages.counts import counts as counted
from tools.pages.downloads import downloads, dummy_for_download
from tools.pages.new_project import projects_for_download
from tools.project.configuration import read
from tools.project.errors import BuildError
from tools.project.languages import LANGUAGES, SOURCE_LANGUAGE
from tools.project.paths import DOCS, HEADERS, NO_PAGES, relative
from tools.project.published import PUBLISHED
from tools.render.cards import card
from tools.translate import credits
from tools.translate.status import for_sphinx

# -- Project ---------------------------------------------------------------------

project = "Write a torch.distributed backend"
author = "the authors of the torch.distributed backend tutorial"

# -- Sources ---------------------------------------------------------------------

extensions = [
    "myst_parser",
    "sphinxext.addresses.language_switcher",
    "sphinxext.addresses.section_labels",
    "sphinxext.addresses.sitemap",
    "sphinxext.addresses.stable_anchors",
    "sphinxext.code.code_provenance",
    "sphinxext.code.linked_captions",
    "sphinxext.code.listing",
    "sphinxext.code.part_downloads",
    "sphinxext.code.project_downloads",
    "sphinxext.code.program_output",
    "sphinxext.code.sample_downloads",
    "sphinxext.pages.counts",
    "sphinxext.pages.diagrams",
    "sphinxext.pages.learning_path",
    "sphinxext.pages.page_description",
    "sphinxext.pages.route_times",
    "sphinxext.pages.term_table",
    "sphinxext.search",
    "sphinxext.theme.accessible_html",
    "sphinxext.theme.joined_styles",
    "sphinxext.theme.no_data_images",
    "sphinxext.theme.template_edits",
    "sphinxext.theme.template_syntax",
    "sphinxext.translation.faithful_translations",
    "sphinxext.translation.language_of_parts",
    "sphinxext.translation.nothing_to_translate",
    "sphinxext.translation.translatable_comments",
    "sphinxext.translation.translatable_images",
    "sphinxext.translation.translatable_labels",
    "sphinxext.translation.translation_status",
    "sphinxext.translation.translators",
    "sphinxext.translation.untranslatable_markup",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = list(NO_PAGES)
myst_enable_extensions = ["colon_fence", "deflist"]
# [text](source:gallery/launcher.py) leads to a file of the repository.
myst_url_schemes = dict.fromkeys(("http", "https", "mailto"))
myst_url_schemes["source"] = {"url": PUBLISHED.file_address("{{path}}")}

code_provenance_root = ".."
code_provenance_scripts = {page_of(x): relative(x) for x in samples()}
code_provenance_runs = provenance.runs_for_pages()

diagrams_folders = [".", "_diagrams", "../gallery"]
diagrams_data = {
    "measurements": "../extension/measurements.csv",
    "measurements_of_mpich": "../extension/measurements_of_mpich.csv",
}

linked_captions_address = PUBLISHED.file_address("{path}")
linked_captions_include = f"{relative(HEADERS)}/"

listing_root = ".."  # of docs/
listing_include = f"{relative(HEADERS)}/"

project_downloads = projects_for_download() | dummy_for_download()

# They name what other pages explain.
search_weights = {"tutorial/releases": 0.15, "right/variants-and-groups": 0.8}
# On these pages, ranks send to each other throughout. Readers who ask how to send seek the basics.
OF_RANKS = ["collectives-from-messages", "steps-or-bytes", "near-and-far", "simulated-ranks"]
ON_HOSTS = ["sockets", "lost-hosts", "predictions"]
search_weights |= {f"algorithms/{page}": 0.7 for page in [*OF_RANKS, *ON_HOSTS]}

sample_downloads = downloads()

# -- Translation -----------------------------------------------------------------

locale_dirs = ["../locales"]
gettext_compact = False  # One catalog per page.
gettext_location = False  # Line numbers would change with every edit.
gettext_uuid = False
language_switcher_languages = [
    {"sphinx": x.gettext, "card": card(x)}
    | {name: getattr(x, name) for name in ("url", "html", "name", "direction")}
    for x in LANGUAGES
]
try:
    learning_path_run_seconds = {
        name: seconds
        for name, seconds in run_seconds.by_name().items()
        if name in code_provenance_scripts
    }
    code_provenance_unexecuted = unexecuted_lines.numbers()
    counts = counted()
    translation_status = for_sphinx()
    translators = credits.translators()
except BuildError as error:
    raise ConfigError(str(error)) from None
term_table_proposal = PUBLISHED.issue_address(
    "Term: ",
    "".join(f"{x.name}:\n" for x in LANGUAGES) + "Where you found it, and why this word:\n",
)
language_of_parts_source = SOURCE_LANGUAGE.html
language_of_parts_classes = ["sphx-glr-script-out"]

# -- Addresses -------------------------------------------------------------------

html_baseurl = PUBLISHED.url
html_context = {"site_url": PUBLISHED.url, "repository": PUBLISHED.repository}

# For `make linkcheck`. Nothing may be published yet where site.toml says.
linkcheck_ignore = [re.escape(PUBLISHED.url), re.escape(PUBLISHED.repository)]
# GitHub numbers lines and names headings in a script, which linkcheck does not run.
linkcheck_anchors_ignore_for_url = [r"https://github\.com/"]
linkcheck_timeout = 15  # seconds
linkcheck_retries = 2
linkcheck_workers = 8
linkcheck_rate_limit_timeout = 60  # seconds; a run of Sphinx may take 300

# -- HTML ------------------------------------------------------------------------

html_theme = "furo"
html_title = project
html_favicon = "docs/_static/favicon.svg"
templates_path = ["docs/_templates"]
html_static_path = ["docs/_static"]
html_theme_options = {"top_of_page_buttons": ["edit"]}
html_css_files = ["site.css"]
joined_styles = {"site.css": "docs/_styles"}
html_js_files = [("language-switcher.js", {"defer": ""}), ("copy-button.js", {"defer": ""})]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
template_edits = read(
    DOCS / "_templates" / "edits-of-furo.toml",
    lambda file: {name: [(x["old"], x["new"]) for x in edits] for name, edits in file.items()},
)
html_use_index = False  # There are no index entries.
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
