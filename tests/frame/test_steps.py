"""What the types of the frame cannot exclude: see the comment of the class Steps."""

import re

import pytest

from tools.project.paths import ROOT

SOURCES = [x for x in ROOT.glob("[!._]*/**/*.[ch]pp") if "build" not in x.parts]
# The branches of ?:, captures by value, and members in braces, which GCC 12 destroys twice.
TWICE = re.compile(r"\?|\{|(?<![\w\])])\[(?!&?\])")


def twice_destroyed(source):
    """The expressions with co_await that have such parts."""
    code = re.sub(r"//.*", "", source)
    return [each for each in re.findall(r"co_await\b[^;]*;", code) if TWICE.search(each)]


@pytest.mark.parametrize(
    "expression",
    [
        "co_await(few ? one() : other());",
        "co_await run(few ? one : other);",
        "co_await run([ranks] { return ranks; });",
        "co_await run(std::vector{1});",
    ],
)
def test_these_are_found(expression):
    assert len(twice_destroyed(f"// co_await\nSteps steps() {{ {expression} }}")) == 1


def test_these_are_not():
    assert not twice_destroyed("co_await list[i]; co_await run(list()[i], f(1)); // ?")


def test_no_source_has_them():
    assert len(SOURCES) > 10
    found = {str(x): y for x in SOURCES if (y := twice_destroyed(x.read_text()))}
    assert not found
