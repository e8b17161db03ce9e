"""Check what search engines, link previews and other sites read.

The check computes addresses from site.toml and the names of the files, and so finds a fault in
the addresses that pages give for themselves.
"""

import struct
from collections import Counter
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree

from ..project.languages import LANGUAGES, SOURCE_LANGUAGE
from ..project.published import PUBLISHED

CARD_SIZE = (1200, 630)
ONCE = ("title", "description", "type", "url", "image", "image:width", "image:height")
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def findings(site, pages, facts):
    """Return the faults of a site of ``pages``; ``facts`` are those of each path."""
    faults = _start_page(site, facts) + _not_found_page(site, facts) + _root_files(site)
    for language in LANGUAGES:
        folder = site / language.url
        descriptions: Counter[str] = Counter()
        for page in sorted(pages):
            name, here = f"{language.url}/{page}", facts[folder / page]
            of_page = _head(site, here, _address(language, page), _alternates(page))
            descriptions.update(here.descriptions[:1])
            faults += [f"{name}: {fault}" for fault in of_page]
        for text, count in descriptions.items():
            if count > 1:
                faults.append(f"{language.url}: {count} pages share the description, {text!r}")
    return faults


def _address(language, page):
    return urljoin(PUBLISHED.url, f"{language.url}/{page}")


def _alternates(page):
    addresses = {language.html: _address(language, page) for language in LANGUAGES}
    default = PUBLISHED.url if page == "index.html" else addresses[SOURCE_LANGUAGE.html]
    return addresses | {"x-default": default}


def _file(site, address):
    """Return the file that is published at an absolute address, or None."""
    if not address.startswith(PUBLISHED.url):
        return None
    rest = address.removeprefix(PUBLISHED.url)
    path = site / (rest or "index.html")
    return path if path.is_file() else None


def _head(site, page, address, alternates):
    faults = []
    if page.canonical != [address]:
        faults.append(f"canonical links are {page.canonical}, not {address}")
    if sorted(map(tuple, page.alternates)) != sorted(alternates.items()):
        faults.append("there must be one link to each language")
    for other in [address, *alternates.values()]:
        if not _file(site, other):
            faults.append(f"{other} is not a page of this site")
    if len(page.descriptions) != 1 or not page.descriptions[0]:
        faults.append("there must be exactly one description")
    previews = page.previews
    wrong = [name for name in ONCE if len(previews.get(name, [])) != 1]
    if wrong:
        return [*faults, f"link previews need one of each: {', '.join(wrong)}"]
    if previews["url"] != [address]:
        faults.append(f"link previews get another address, {previews['url'][0]}")
    image = _file(site, previews["image"][0])
    if not image or _png_size(image) != CARD_SIZE:
        faults.append(f"{previews['image'][0]} is not an image of {CARD_SIZE[0]}x{CARD_SIZE[1]}")
    return faults


def _png_size(path):
    return struct.unpack(">II", path.read_bytes()[16:24])


def _start_page(site, facts):
    faults = _head(site, facts[site / "index.html"], PUBLISHED.url, _alternates("index.html"))
    return [f"index.html: {fault}" for fault in faults]


def _not_found_page(site, facts):
    """Check 404.html. Hosts show it at any address, so its links must begin at the root."""
    mount, faults = urlsplit(PUBLISHED.url).path, []
    for _, link, _ in facts[site / "404.html"].links:
        if not (link.startswith(mount) and (site / link.removeprefix(mount)).is_file()):
            faults.append(f"404.html: {link} leads nowhere")
    return faults


def _root_files(site):
    sitemaps = {
        entry.findtext(f"{SITEMAP}loc")
        for entry in ElementTree.parse(site / "sitemap.xml").getroot()
    }
    faults = []
    if sitemaps != {_address(language, "sitemap.xml") for language in LANGUAGES}:
        faults.append("sitemap.xml: does not name the sitemap of each language")
    if f"Sitemap: {PUBLISHED.url}sitemap.xml\n" not in (site / "robots.txt").read_text():
        faults.append("robots.txt: does not name the sitemap")
    return faults
