"""Accept what the samples printed when they last ran: write it into their folders.

usage: python -m tools.accept_outputs
"""

from .execute.expected_outputs import comparable, last_run, of_default, of_release
from .execute.samples import samples
from .project.errors import BuildError, run_command
from .project.paths import GALLERY, relative
from .project.releases import DEFAULT, current


def accept() -> None:
    """Accept the last outputs; print the names of the files that change.

    Raises BuildError for samples without one: they were not run, or did not end well.
    """
    without = []
    for script in samples():
        if not last_run(script).is_file():
            without.append(relative(script))
            continue
        now, default = last_run(script).read_text(), of_default(script)
        if current() == DEFAULT or not default.is_file():
            _write_if_other(default, now)
        elif comparable(script, default.read_text()) != comparable(script, now):
            _write_if_other(of_release(script), now)
        elif of_release(script).is_file():
            _remove(of_release(script), "it equals the output of the default release")
    for path in sorted(GALLERY.glob("*/*/output*.txt")):
        if not path.parent.with_suffix(".py").is_file():
            _remove(path, "no sample has this name")
    if without:
        raise BuildError(
            f"{', '.join(without)}: without an output that could be accepted, because the last "
            "run failed, or there was none: run `make execute`, which says why"
        )


def _remove(path, reason):
    path.unlink()
    print(f"removed {relative(path)}: {reason}")


def _write_if_other(path, text):
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"wrote {relative(path)}")


if __name__ == "__main__":
    run_command(accept, __doc__)
