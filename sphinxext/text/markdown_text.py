"""Write parts of a document as Markdown, for the cells of a notebook.

``Markdown(env, address).block(node)`` returns what a node is in GitHub's Markdown,
which Jupyter understands. ``address`` is where the page is published: links become
absolute.

Nodes of other extensions return their Markdown from a method ``as_markdown(env)``. Unknown
nodes without words are left out.
"""

import re
from typing import Any
from urllib.parse import urljoin

from docutils import nodes
from sphinx.environment import BuildEnvironment
from sphinx.locale import admonitionlabels

# What Markdown or HTML would read something into.
SPECIAL = re.compile(r"([\\`*\[\]<>$#|~]|\b_|_\b)")
# A line that would begin a list or an underline.
BEGINNING = re.compile(r"^(\d+)([.)])|^([-+=])", re.M)


class Markdown:
    def __init__(self, env: BuildEnvironment, address: str) -> None:
        self.env, self.address = env, address

    def block(self, node: Any) -> str:
        """Return the Markdown of a node that takes up whole lines; empty if it has no words."""
        if hasattr(node, "as_markdown"):
            return node.as_markdown(self.env)
        method = getattr(self, f"_{type(node).__name__}", None)
        if method:
            return method(node)
        if isinstance(node, nodes.Invisible | nodes.raw | nodes.system_message):
            return ""
        if isinstance(node, nodes.Admonition):
            title = admonitionlabels.get(node.tagname)
            heading = f"**{title}**\n\n" if title else ""
            return _prefixed("> ", heading + self.blocks(node))
        if isinstance(node, nodes.TextElement):
            return BEGINNING.sub(r"\1\\\2\3", self.inline(node)).strip()
        return self.blocks(node)

    def blocks(self, node: Any) -> str:
        """Return the Markdown of all children of a node, with empty lines in between."""
        return "\n\n".join(filter(None, map(self.block, node.children)))

    def title(self, node: Any, level: int) -> str:
        return f"{'#' * level} {self.inline(node)}"

    def _title(self, node: Any) -> str:  # Of an admonition; those of sections have a level.
        return f"**{self.inline(node)}**"

    def _caption(self, node: Any) -> str:
        return self.inline(node)

    def _literal_block(self, node: Any) -> str:
        text = node.astext().strip("\n")
        language = node.get("language", "").lower()
        fence = _longer_than_any("`", text, at_least=3)
        return f"{fence}{'' if language == 'none' else language}\n{text}\n{fence}"

    _doctest_block = _literal_block

    def _block_quote(self, node: Any) -> str:
        return _prefixed("> ", self.blocks(node))

    def _bullet_list(self, node: Any) -> str:
        return self._items(node, ["- "] * len(node))

    def _enumerated_list(self, node: Any) -> str:
        start = node.get("start", 1)
        return self._items(node, [f"{start + place}. " for place in range(len(node))])

    def _items(self, node: Any, marks: list[str]) -> str:
        items = []
        for mark, item in zip(marks, node.children, strict=True):
            text = _prefixed(" " * len(mark), self.blocks(item))
            items.append(mark + text.strip())
        is_tight = all(len(item) <= 1 for item in node.children)
        return ("\n" if is_tight else "\n\n").join(items)

    def _definition_list_item(self, node: Any) -> str:
        term, *others = map(self.block, node.children)
        return f"**{term}**\n\n" + _prefixed("> ", "\n\n".join(others))

    def _table(self, node: Any) -> str:
        rows = [
            [self._cell(entry) for entry in row.findall(nodes.entry)]
            for row in node.findall(nodes.row)
        ]
        if not node.next_node(nodes.thead):  # Markdown has no table without a header.
            rows.insert(0, [""] * len(rows[0]))
        rows.insert(1, ["---"] * len(rows[0]))
        lines = [f"| {' | '.join(row)} |" for row in rows]
        titles = map(self.block, node.findall(nodes.title))
        return "\n\n".join([*titles, "\n".join(lines)])

    def _cell(self, entry: Any) -> str:
        text = "<br>".join(self.block(child) for child in entry.children)
        # Only there, a bar must be escaped in code, too.
        return re.sub(r"(?<!\\)\|", r"\\|", text.replace("\n", " "))

    def inline(self, node: Any) -> str:
        """Return the text of a node, on one line."""
        return "".join(map(self._inline, node.children))

    def _inline(self, node: Any) -> str:
        if isinstance(node, nodes.Text):
            return escaped(" ".join(re.split(r"\s+", node.astext())))
        if isinstance(node, nodes.literal):
            return _code(node.astext())
        if isinstance(node, nodes.emphasis | nodes.title_reference):
            return _emphasized("*", "em", self.inline(node))
        if isinstance(node, nodes.strong):
            return _emphasized("**", "strong", self.inline(node))
        target = node.get("refuri") or f"#{node.get('refid', '')}"
        if isinstance(node, nodes.reference) and target != "#":
            return f"[{self.inline(node)}]({urljoin(self.address, target)})"
        if isinstance(node, nodes.Invisible | nodes.raw | nodes.system_message):
            return ""
        return self.inline(node)


def escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)


def _code(text: str) -> str:
    text = " ".join(text.split())
    marks = _longer_than_any("`", text, at_least=1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"


def _emphasized(mark: str, tag: str, text: str) -> str:
    """Marks beside punctuation count only where there are spaces, as in English."""
    if text[:1].isalnum() and text[-1:].isalnum():
        return f"{mark}{text}{mark}"
    return f"<{tag}>{text}</{tag}>"


def _longer_than_any(character: str, text: str, *, at_least: int) -> str:
    runs = re.findall(f"{character}+", text)
    return character * max([at_least, *(len(run) + 1 for run in runs)])


def _prefixed(prefix: str, text: str) -> str:
    return "\n".join((prefix + line).rstrip() for line in text.split("\n"))
