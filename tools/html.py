"""Build, verify and publish the whole site: all stages, in their order.

usage: python -m tools.html
"""

import time
from concurrent.futures import ThreadPoolExecutor

from .processes.one_build import main, stage
from .project.paths import SITE, relative
from .publish import up_to_date

OPEN_IT = f"Open {relative(SITE)}/index.html, or run `make serve`."


def run_html() -> None:
    started = time.monotonic()
    sources = up_to_date.sources()
    if up_to_date.is_good(sources):
        print(f"Nothing has changed since {relative(SITE)} was built.\n{OPEN_IT}")
        return
    up_to_date.forget()
    # Imported here, because they take longer than a build with nothing to do.
    from .check.site import check
    from .execute.execution import execute
    from .pages.commands import run_quick_commands
    from .pages.provenance import write_beside_site
    from .project.languages import LANGUAGES
    from .publish.swap import publish
    from .render.rendering import render
    from .translate.extract import extracted

    ran, total = execute()
    run_quick_commands()
    generated = up_to_date.generated()
    with ThreadPoolExecutor() as pool:
        # The check needs the messages, and reports what is wrong with them. Meanwhile, one core
        # would be idle beside the last language.
        pool.submit(extracted)
        pages = render()
    check()
    with stage("publish"):
        publish()
        write_beside_site()
    # What was edited meanwhile may have been too late for some of the stages.
    if (sources, generated) == (up_to_date.sources(), up_to_date.generated()):
        up_to_date.note(sources, generated)
    print(
        f"\n{len(LANGUAGES)} languages ({', '.join(x.url for x in LANGUAGES)}), "
        f"{pages} pages each, {ran} of {total} samples executed, "
        f"{time.monotonic() - started:.0f} s\n"
        f"{OPEN_IT}"
    )


if __name__ == "__main__":
    main(run_html, usage=__doc__)
