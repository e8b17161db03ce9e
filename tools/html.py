"""Build, verify and publish the whole site: all stages, in their order.

usage: python -m tools.html
"""

import time

from .processes.one_build import main, stage
from .project.languages import LANGUAGES
from .project.paths import SITE, relative


def run_html() -> None:
    started = time.monotonic()
    # Imported here, so that main() reports a package that .venv lacks.
    from .check import stage as check
    from .execute import stage as execute
    from .pages.commands import run_quick_commands
    from .pages.provenance import write_beside_site
    from .publish.stage import publish
    from .render import stage as render

    ran, total = execute.run()
    run_quick_commands()
    pages = render.run()
    check.run()
    with stage("publish"):
        publish()
        write_beside_site()
    print(
        f"\n{len(LANGUAGES)} languages ({', '.join(x.url for x in LANGUAGES)}), "
        f"{pages} pages each, {ran} of {total} samples executed, "
        f"{time.monotonic() - started:.0f} s\n"
        f"Open {relative(SITE)}/index.html, or run `make serve`."
    )


if __name__ == "__main__":
    main(run_html, usage=__doc__)
