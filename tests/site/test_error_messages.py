"""Every message on the page of error messages stands in a source that can raise it."""

import ast
import mmap
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.project.paths import DOCS, ROOT
from tools.project.releases import DEFAULT, current

PAGE = (DOCS / "tutorial" / "error-messages.md").read_text()
TERMS = re.findall(r"^(`.*)\n: ", PAGE, re.MULTILINE)
MESSAGES = [message for term in TERMS for _, message in re.findall(r"(`+)(.+?)\1", term)]
# Programs put a message together at what varies, and often at quotation marks and punctuation.
JOINT = re.compile(r"""…|(?<!\w)["']|["'](?!\w)|(?<=[.,:;!?])\s""")
TORCH = Path(find_spec("torch").origin).parent
IN_TORCH = ["distributed/*.py", "distributed/elastic/**/*.py", "nn/parallel/distributed.py"]
IN_TORCH += ["cuda/__init__.py", "utils/cpp_extension.py", "include/**/distributed/c10d/*.hpp"]
IN_TORCH += ["distributed/checkpoint/*.py"]
CUDA = TORCH / "lib/libtorch_cuda.so"  # which builds for CPUs lack
OURS = ["extension/**/*.?pp", *(f"{x}/**/*.py" for x in ("conformance", "extension", "tools"))]


def text_of(path):
    """The literals of a file, each in one piece, and with one space where there are several."""
    text = path.read_text()
    if path.suffix == ".py":
        nodes = [x for x in ast.walk(ast.parse(text)) if isinstance(x, ast.Constant)]
        text = "\n".join(x.value for x in nodes if isinstance(x.value, str))
    elif path.suffix != ".txt":
        text = re.sub(r'(?<!\\)"\s+"', "", text).replace('\\"', '"')
    return " ".join(text.split())


def map_of(path):
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@pytest.fixture(scope="module")
def sources():
    """What may contain all of a message: texts, and libraries of PyTorch and of this process."""
    files = [(ROOT, OURS), (ROOT / "gallery", ["**/output*.txt"]), (TORCH, IN_TORCH)]
    texts = [[text_of(y) for x in names for y in root.glob(x)] for root, names in files]
    mapped = re.findall(r"r-xp .* (/\S+)$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    libraries = [TORCH / f"lib/libtorch_{x}.so" for x in ("python", "cpu")]
    paths = [*libraries, *mapped, *([CUDA] if CUDA.exists() else [])]  # the largest is the last
    return [" ".join(x).encode() for x in texts] + [map_of(x) for x in paths]


def test_the_page_quotes_messages():
    assert len(MESSAGES) > 40


@pytest.mark.skipif(current() != DEFAULT, reason="the page has the messages of one release")
@pytest.mark.parametrize("message", MESSAGES)
def test_the_message_stands_in_a_source(message, sources):
    if "watchdog" in message.lower() and not CUDA.exists():
        pytest.skip("only NCCL's backend has this message, and this PyTorch has no CUDA")
    parts = [part.strip(" .,").encode() for part in JOINT.split(message)]
    assert any(all(source.find(part) >= 0 for part in parts) for source in sources)
