"""What the file of a language says, and how the file is found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

Rule = Callable[[Any], Iterator[str]]  # From a message to phrases.


@dataclass(frozen=True)
class LanguageRules:
    """What the check knows of a language. The package's docstring explains each name."""

    characters: str = ""
    spacing: str = ""
    endings: dict[str, list[str]] = field(default_factory=dict)
    lengths: tuple[tuple[int, float, float], ...] = ()
    rules: tuple[Rule, ...] = ()


@cache
def language_rules(gettext: str) -> LanguageRules:
    """Return the rules in the file of a language, or none."""
    name = f"{__package__}.{gettext.lower()}"
    return import_module(name).RULES if find_spec(name) else LanguageRules()
