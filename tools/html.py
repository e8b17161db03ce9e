"""Build, verify and publish the whole site: all stages, in their order.

usage: python -m tools.html
"""

import time

from .processes.one_build import main, stage
from .project.paths import SITE, relative

OPEN_IT = f"Open {relative(SITE)}/index.html, or run `make serve`."

# Slow imports are where they are needed: other processes are at work by then.


def run_execute(when_compiled):
    from .execute.stage import run

    return run(when_compiled)


def run_render(meanwhile):
    from .render.stage import run

    return run(meanwhile)


def run_check(check_catalogs):
    from .check.stage import run

    run(check_catalogs)


def check_catalogs():
    # With this, all that the stage "check" needs is loaded while Sphinx runs.
    from .check.stage import catalog_check

    return catalog_check.check()


def run_html():
    from .publish import up_to_date

    started = time.monotonic()
    sources = up_to_date.sources()
    if up_to_date.is_good(sources):
        print(f"Nothing has changed since {relative(SITE)} was built.\n{OPEN_IT}")
        return
    up_to_date.forget()
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        from .compile.headers import precompile
        from .pages.commands import run_quick_commands
        from .pages.provenance import write_beside_site
        from .project.languages import LANGUAGES
        from .publish.stage import publish

        ran, total = run_execute(when_compiled=precompile)
        run_quick_commands()
        generated = up_to_date.generated()
        # Sphinx runs in other processes; meanwhile this one can look at the catalogs.
        catalogs = []
        pages = run_render(lambda: catalogs.append(pool.submit(check_catalogs)))
        run_check(catalogs[0].result)
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
