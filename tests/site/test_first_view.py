"""The bytes and requests of a reader's first page."""

import gzip

import pytest

MOST_KILOBYTES = 60
MOST_REQUESTS = 12


@pytest.mark.parametrize("name", ["tutorial/step-1-subclass-backend", "operations/collectives"])
def test_it_is_small(visit, address, language, name):
    page = visit("about:blank")
    answers = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(f"{address}/{language.url}/{name}.html", wait_until="networkidle")
    sizes = {x.url: len(gzip.compress(x.body(), 6)) for x in answers}
    assert sum(sizes.values()) <= MOST_KILOBYTES * 1024, sizes
    assert len(answers) <= MOST_REQUESTS, sizes
    assert len(answers) >= 5, "nothing was measured"
    assert not [x for x in sizes if "search-" in x], "the search loads when it is used"
