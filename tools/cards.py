"""Draw the pictures that link previews show: docs/_root/card-LANGUAGE.png.

usage: python -m tools.cards

They are committed, since drawing them needs Chromium and fonts for all languages. Run this
after a change of docs/_root/card.svg or of the site's name, or for a new language.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from jinja2 import Environment

from sphinxext.text.line_breaking import break_lines

from .project.languages import LANGUAGES
from .project.paths import ROOT_FILES, relative
from .render.template_texts import gettext_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = (1200, 630)
TITLE_WIDTH = 9.5  # em


def main():
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("error: drawing the cards needs Chromium")
    template = Environment(autoescape=True).from_string((ROOT_FILES / "card.svg").read_text())
    for language in LANGUAGES:
        title = gettext_of(language)("Write a torch.distributed backend")
        lines = break_lines(title, TITLE_WIDTH, narrow=0.68, wide=1)
        target = ROOT_FILES / f"card-{language.url}.png"
        with tempfile.TemporaryDirectory() as folder:
            drawing = Path(folder, "card.svg")
            drawing.write_text(template.render(language=language, lines=lines))
            command = [browser, "--headless", "--no-sandbox", "--hide-scrollbars"]
            command += [f"--user-data-dir={folder}/profile", f"--screenshot={target}"]
            command += ["--window-size={},{}".format(*SIZE), drawing.as_uri()]
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        print(f"wrote {relative(target)}: {', '.join(lines)}")


if __name__ == "__main__":
    main()
