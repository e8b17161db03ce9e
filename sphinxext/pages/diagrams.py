"""Diagrams that are drawn once and labelled in each language.

A diagram is a Jinja template in one of ``diagrams_folders`` that makes an SVG. It passes
every text through ``_``, as templates of Sphinx do::

    <svg viewBox="0 0 340 120"><text x="10" y="20">{{ _("process A") }}</text></svg>

The directive ``diagram`` takes the name of the template without ``.svg``, and puts the
drawing into the page itself, where style sheets apply to it. Its texts belong to the message
catalog of the page: the builder ``gettext`` collects them, and a build in another language
shows the translations that it finds in ``locale_dirs``. Templates also have

``id``
    a prefix for the ids in the drawing, different for each drawing of a page;
``text | lines(20)``
    the text as a list of lines of at most 20 em. Words are kept whole; Chinese and
    Japanese break between characters;
``data("name")``
    the rows of a CSV file of this name, for plots: texts by the names of their columns. Lines
    that begin with ``#`` are comments;
``count("name")``
    a number of the extension ``counts``;
``number | log10``
    the logarithm of a number, for axes.

A template that does not exist, or does not make XML, is an error at the directive. So is a
CSV file that cannot be read, or whose name is not configured.

Configuration:

``diagrams_folders``
    The folders of the templates, relative to the sources; the first that has a template of a
    name counts. Default ``["_diagrams"]``.
``diagrams_data``
    The CSV files for ``data``, a dictionary from name to path, relative to the sources. Pages
    with a diagram are built again when one of the files changes. Default: none.

The project must only provide the templates.
"""

import csv
import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jinja2
from docutils import nodes
from jinja2 import meta
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from ..text.line_breaking import break_lines
from ..text.markdown_text import escaped
from ..translation.plain_messages import plain_messages, translations
from . import counts

LATIN_WIDTH = 0.56  # em, on average, in the usual fonts


class diagram(nodes.General, nodes.Element):
    """A drawing. Its children are its texts."""

    def as_markdown(self, env: BuildEnvironment) -> str:
        """Return the caption and the description, for readers who do not see the drawing."""
        texts = _prose_of(_draw_translated(env, self))
        return "\n>\n".join(f"> {escaped(' '.join(text.split()))}" for text in texts)


class Diagram(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        for template in _files_of(self.env, f"{name}.svg"):
            self.env.note_dependency(template)
        for path in _data_files(self.env).values():
            self.env.note_dependency(path)
        number = self.env.new_serialno("diagram")
        node = diagram("", template=name, id=f"diagram-{number}")
        messages: list[str] = []

        def note(text: str) -> str:
            messages.append(text)
            return text

        try:
            drawing = _draw(self.env, node, note)
        except ExtensionError as error:
            raise self.error(str(error)) from None
        self.set_source_info(node)
        node += plain_messages(messages, node, prose=_prose_of(drawing))
        return [node]


def _prose_of(drawing: str) -> list[str]:
    """Return the caption and the description of a drawing, as far as there are any."""
    texts = {x.tag.rpartition("}")[2]: x.text for x in ElementTree.fromstring(drawing).iter()}
    return [text for x in ("figcaption", "desc") if (text := texts.get(x))]


def _folders(env: BuildEnvironment) -> tuple[Path, ...]:
    return tuple(Path(env.srcdir, folder) for folder in env.config.diagrams_folders)


def _files_of(env: BuildEnvironment, name: str) -> Iterator[str]:
    """Yield the paths of a template and of those whose macros it uses, if they can be read."""
    templates, loader = _templates(_folders(env)), jinja2.FileSystemLoader(_folders(env))
    try:
        text, path, _ = loader.get_source(templates, name)
        others = meta.find_referenced_templates(templates.parse(text))
    except jinja2.TemplateError:
        return  # Drawing it reports the fault.
    yield path
    for other in filter(None, others):
        yield from _files_of(env, other)


def _data_files(env: BuildEnvironment) -> dict[str, Path]:
    """Return the paths of the CSV files by their names."""
    return {name: Path(env.srcdir, path) for name, path in env.config.diagrams_data.items()}


def _data(env: BuildEnvironment, name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file. Raises ExtensionError with its path."""
    files = _data_files(env)
    if name not in files:
        raise ExtensionError(f"diagrams_data has no name {name!r}, only {sorted(files)}")
    try:
        lines = files[name].read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ExtensionError(f"{files[name]}: {error}") from None
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def _draw(env: BuildEnvironment, node: Any, gettext: Callable[[str], str]) -> str:
    """Return the drawing as HTML. Raises ExtensionError with file and line."""
    name = f"{node['template']}.svg"
    values = {"_": gettext, "id": node["id"], "data": partial(_data, env)}
    values["count"] = partial(counts.count, env.config)
    try:
        drawing = _templates(_folders(env)).get_template(name).render(values)
        ElementTree.fromstring(drawing)
    except jinja2.TemplateNotFound as error:
        raise ExtensionError(f"no diagram {error} in {env.config.diagrams_folders}") from None
    except jinja2.TemplateSyntaxError as error:
        raise ExtensionError(f"{error.filename}:{error.lineno}: {error}") from None
    except (jinja2.TemplateError, TypeError, ValueError, LookupError, SyntaxError) as error:
        raise ExtensionError(f"diagram {name}: {error}") from None
    return drawing


@cache
def _templates(folders: tuple[Path, ...]) -> jinja2.Environment:
    """Return the templates of some folders; each is compiled once, and again when it changes."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"lines": _lines, "log10": math.log10}
    return templates


def _lines(text: str, width: float) -> list[str]:
    return break_lines(str(text), width, narrow=LATIN_WIDTH, wide=1)


def visit_html(translator: HTML5Translator, node: Any) -> None:
    translator.body.append(_draw_translated(translator.builder.env, node))
    raise nodes.SkipNode


def _draw_translated(env: BuildEnvironment, node: Any) -> str:
    texts = translations(node.children)
    return _draw(env, node, lambda message: texts.get(message, message))


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinxext.pages.counts")
    app.setup_extension("sphinxext.translation.plain_messages")
    app.add_config_value("diagrams_folders", ["_diagrams"], "env", types=[list])
    app.add_config_value("diagrams_data", {}, "env", types=[dict])
    app.add_node(diagram, html=(visit_html, None))
    app.add_directive("diagram", Diagram)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
