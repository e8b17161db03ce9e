"""Part of the stage "check": what search engines, link previews and other sites read.

Addresses are put together here from site.toml and the names of the files, so a fault in
what the pages say of themselves is found.
"""

import struct
from collections import Counter
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree

from sphinx.util.inventory import InventoryFile

from .languages import LANGUAGES, SOURCE_LANGUAGE
from .paths import VERSIONS
from .site import PUBLISHED

CARD_SIZE = (1200, 630)
ONCE = ("title", "description", "type", "url", "image", "image:width", "image:height")
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
XHTML = "{http://www.w3.org/1999/xhtml}"


def findings(site, pages, parse):
    """Return the faults of a site of ``pages``; ``parse`` reads a file."""
    redirects = {page for page in pages if _refresh(parse(site / SOURCE_LANGUAGE.url / page))}
    found = _start_page(site, parse) + _not_found_page(site, parse) + _root_files(site)
    for language in LANGUAGES:
        folder = site / language.url
        descriptions = Counter()
        for page in sorted(pages):
            name, soup = f"{language.url}/{page}", parse(folder / page)
            if page in redirects:
                faults = _redirect(site, folder / page, soup)
            else:
                faults = _head(site, soup, _address(language, page), _alternates(page))
                faults += _about_the_build(soup)
                descriptions[_description(soup)] += 1
            found += [f"{name}: {fault}" for fault in faults]
        for text, count in descriptions.items():
            if count > 1:
                found.append(f"{language.url}: {count} pages have one description, {text!r}")
        real = pages - redirects
        found += _sitemap(folder, language, real - {"search.html"})
        found += _inventory(folder, language, real - {"search.html"}, parse)
    return found


def _address(language, page):
    return urljoin(PUBLISHED.url, f"{language.url}/{page}")


def _alternates(page):
    found = {language.html: _address(language, page) for language in LANGUAGES}
    default = PUBLISHED.url if page == "index.html" else found[SOURCE_LANGUAGE.html]
    return found | {"x-default": default}


def _file(site, address):
    """The file that is published at an absolute address, or None."""
    if not address.startswith(PUBLISHED.url):
        return None
    rest = address.removeprefix(PUBLISHED.url)
    path = site / (rest or "index.html")
    return path if path.is_file() else None


def _refresh(soup):
    return soup.head.find("meta", {"http-equiv": "refresh"})


def _description(soup):
    tag = soup.head.find("meta", {"name": "description"})
    return tag["content"] if tag else ""


def _head(site, soup, address, alternates):
    head, faults = soup.head, []
    canonical = [tag["href"] for tag in head.find_all("link", rel="canonical")]
    if canonical != [address]:
        faults.append(f"canonical links are {canonical}, not {address}")
    tags = head.find_all("link", rel="alternate", hreflang=True)
    if sorted((x["hreflang"], x["href"]) for x in tags) != sorted(alternates.items()):
        faults.append("the links to other languages are not one for each")
    for other in [address, *alternates.values()]:
        if not _file(site, other):
            faults.append(f"{other} is no page of this site")
    if len(head.find_all("meta", {"name": "description"})) != 1 or not _description(soup):
        faults.append("there is not one description")
    previews = {}
    for tag in head.find_all("meta", property=True):
        previews.setdefault(tag["property"].removeprefix("og:"), []).append(tag["content"])
    wrong = [name for name in ONCE if len(previews.get(name, [])) != 1]
    if wrong:
        return [*faults, f"link previews need one of each: {', '.join(wrong)}"]
    if previews["url"] != [address]:
        faults.append(f"link previews are told another address, {previews['url'][0]}")
    image = _file(site, previews["image"][0])
    if not image or _png_size(image) != CARD_SIZE:
        faults.append(f"{previews['image'][0]} is no image of {CARD_SIZE[0]}x{CARD_SIZE[1]}")
    return faults


def _png_size(path):
    return struct.unpack(">II", path.read_bytes()[16:24])


def _about_the_build(soup):
    """The footer says with what the samples were run, if they were run."""
    line = soup.select_one(".verified-with")
    if VERSIONS.is_file() != bool(line):
        return ["the footer does not say with what the page was verified"]
    return []


def _redirect(site, path, soup):
    target = _refresh(soup)["content"].partition("url=")[2]
    links = {tag["href"] for tag in soup.find_all("a")}
    canonical = [tag["href"] for tag in soup.find_all("link", rel="canonical")]
    led_to = (path.parent / target).resolve()
    if links != {target} or [_file(site, x) for x in canonical] != [led_to]:
        return ["leads to different pages, or to none"]
    return []


def _start_page(site, parse):
    faults = _head(site, parse(site / "index.html"), PUBLISHED.url, _alternates("index.html"))
    return [f"index.html: {fault}" for fault in faults]


def _not_found_page(site, parse):
    """It is shown at any address: its links have to begin at the root of the host."""
    mount, faults = urlsplit(PUBLISHED.url).path, []
    for tag in parse(site / "404.html").find_all(["a", "link", "script"]):
        link = tag.get("href") or tag.get("src")
        if link and not (
            link.startswith(mount) and (site / link.removeprefix(mount)).is_file()
        ):
            faults.append(f"404.html: {link} leads nowhere")
    return faults


def _root_files(site):
    listed = {
        entry.findtext(f"{SITEMAP}loc")
        for entry in ElementTree.parse(site / "sitemap.xml").getroot()
    }
    faults = []
    if listed != {_address(language, "sitemap.xml") for language in LANGUAGES}:
        faults.append("sitemap.xml: does not name the sitemap of each language")
    if f"Sitemap: {PUBLISHED.url}sitemap.xml\n" not in (site / "robots.txt").read_text():
        faults.append("robots.txt: does not name the sitemap")
    return faults


def _sitemap(folder, language, pages):
    name = f"{language.url}/sitemap.xml"
    entries = ElementTree.parse(folder / "sitemap.xml").getroot()
    listed = [entry.findtext(f"{SITEMAP}loc") for entry in entries]
    if sorted(listed) != sorted(_address(language, page) for page in pages):
        return [f"{name}: does not list exactly the pages"]
    faults = []
    for entry, address in zip(entries, listed, strict=True):
        links = {x.get("hreflang"): x.get("href") for x in entry.iter(f"{XHTML}link")}
        page = address.removeprefix(_address(language, ""))
        if links != _alternates(page):
            faults.append(f"{name}: {page} has other links to its languages")
    return faults


def _inventory(folder, language, pages, parse):
    """Every page and every section can be referred to from another project."""
    with open(folder / "objects.inv", "rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, uri: uri)
    targets = {item.uri for items in inventory.values() for item in items.values()}
    wanted = set(pages)
    for page in pages:
        sections = parse(folder / page).find_all("section", id=True)
        wanted |= {f"{page}#{section['id']}" for section in sections}
    return [
        f"{language.url}/objects.inv: lacks {target}" for target in sorted(wanted - targets)
    ]
