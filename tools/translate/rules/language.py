"""What the file of a language says, and how the file is found."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec


@dataclass(frozen=True)
class LanguageRules:
    """What the check knows of a language. The package's docstring explains each name."""

    characters: str = ""
    numbers: dict[int, str] = field(default_factory=dict)
    one: str = ""
    two: str = ""
    numerals: str = ""
    units: dict[str, str] = field(default_factory=dict)
    spacing: str = ""
    endings: dict[str, list[str]] = field(default_factory=dict)
    doubled: tuple[str, ...] = ()
    lengths: tuple[tuple[int, float, float], ...] = ()
    joined: float = 0
    negations: str = ""
    absences: str = ""
    obligations: str = ""
    notes: str = ""
    rules: tuple[Callable, ...] = ()


@cache
def language_rules(gettext):
    """The ``LanguageRules`` of a language: those of its file, or none."""
    name = f"{__package__}.{gettext.lower()}"
    return import_module(name).RULES if find_spec(name) else LanguageRules()
