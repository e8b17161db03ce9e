"""Print numbers that other files decide, such as how many tests a suite has.

The role ``count`` prints the number of a name: "The suite has {count}`checks` checks" in Markdown,
and ``:count:`checks``` in reStructuredText. A message of a catalog has the role, and so stays the
same when the number changes. Templates of ``diagrams`` have ``count("checks")``.

Configuration: ``counts``, a dictionary from name to number. Another name is an error.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxRole

ROLE = re.compile(r":count:`([\w-]+)`")


class Count(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            return [nodes.Text(count(self.config, self.text))], []
        except LookupError as error:
            message = self.inliner.reporter.error(str(error), line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]


def count(config: Config, name: str) -> str:
    """Return a number as it is printed. Raises LookupError for an unknown name."""
    if name not in config.counts:
        raise LookupError(f"counts has no name {name!r}, only {sorted(config.counts)}")
    return f"{config.counts[name]:,}"


def filled_in(config: Config, text: str) -> str:
    """Return a text in reStructuredText with numbers in place of the roles."""
    return ROLE.sub(lambda match: count(config, match[1]), text)


def setup(app: Sphinx) -> dict:
    app.add_config_value("counts", {}, "env", types=[dict])
    app.add_role("count", Count())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
