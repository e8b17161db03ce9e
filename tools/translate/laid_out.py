"""Lay out the catalogs of a language for Sphinx, which reads them with Babel.

Sphinx gets a copy of each catalog in the one form that Babel reads, whichever editor wrote it,
and compiles the copies. So locales/ has nothing but catalogs.
"""

from pathlib import Path

from ..project.errors import BuildError
from ..project.languages import Language
from . import catalogs


def lay_out_catalogs(language: Language, folder: Path) -> set[str]:
    """Bring the copies in ``folder``, for Sphinx's ``locale_dirs``, up to date.

    Return the pages whose copies have changed. Raises BuildError with each file that is no
    catalog, and then changes nothing.
    """
    target = folder / language.gettext / "LC_MESSAGES"
    copies, changed, faults = set(), {}, []
    for path in catalogs.catalogs_of(language):
        copy = target / path.relative_to(language.catalogs)
        copies |= {copy, copy.with_suffix(".mo")}
        content = path.read_bytes()
        try:
            text = catalogs.text_of(content, path)
            if not copy.is_file() or copy.read_text() != text:
                catalogs.checked(content, path, language)
                changed[copy] = text
        except BuildError as error:
            faults.append(str(error))
    if faults:
        raise BuildError("\n".join(faults))
    gone = [path for path in target.rglob("*.?o") if path not in copies]
    for path in gone:
        path.unlink()
    for copy, text in changed.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
    return {x.relative_to(target).with_suffix("").as_posix() for x in [*changed, *gone]}
