"""Korean."""

import re
from collections.abc import Iterator

from .ko_sounds import final_consonant
from .language import LanguageRules
from .message import LITERAL, Message

HANGUL = "\uac00-\ud7a3"
PARTICLES = "을|를|은|는|가|에|에서|에게|으로|로|와|과|의|까지|부터|처럼|라는|이라는|라고|이라고"
PLAIN_OR_CASUAL = re.compile(rf"[{HANGUL}]*(?:[^니]다|요)(?=[.?!])")


def ending(message: Message) -> Iterator[str]:
    """Report a sentence without its mark. What is no sentence may have none."""
    if message.source_prose.rstrip()[-1:] in {".", "?"}:
        if re.search("(?:니다|니까|시오)$", message.prose.rstrip()):
            yield "lacks the mark at the end of its sentence"


def speech_level(message: Message) -> Iterator[str]:
    """Report sentences that do not end in 합니다-style."""
    for word in PLAIN_OR_CASUAL.findall(message.prose):
        yield f"has {word!r}, not in 합니다-style"


# Particles, and the final consonants that none of them follows. The numbers are
# those of Unicode: 0 for none, 4 ㄴ, 8 ㄹ, 21 ㅇ.
VOWEL, CONSONANTS = {0}, {*range(1, 28)}
WRONG_PARTICLES = {
    **dict.fromkeys(("을", "은", "이", "과", "이라는", "이라고"), VOWEL),
    **dict.fromkeys(("를", "와", "가", "라는", "라고"), CONSONANTS),
    "는": {4, 8, 21},
    "으로": {0, 8},
    "로": CONSONANTS - {8},
}
# Behind what is no verb.
WRONG_AFTER_LATIN = WRONG_PARTICLES | {"는": CONSONANTS}
NO_PARTICLE = re.compile(
    rf"(?:가|마|노)을|(?:나|지|이|부|그)은|[효사초부투교여치]과|(?<![{HANGUL}])[신안]는|"
    "[사차아나파바타에레데케제웨페]이|[는은인한던된군언젠딘문증평국불단물원작]가|[경통진선항종]로|"
    "달라[는고]"
)
PARTICLE = "|".join(sorted(WRONG_PARTICLES, key=len, reverse=True))
AFTER_HANGUL = re.compile(rf"([{HANGUL}])({PARTICLE})(?![{HANGUL}])")
AFTER_LATIN = re.compile(
    rf"(``[^`]+``|`[^`<]+`|[\w.+]*[A-Za-z0-9])[*_”]*(?:\\ )?({PARTICLE})(?![{HANGUL}])", re.ASCII
)
IN_PARENTHESES = re.compile(r"(?<![A-Za-z0-9_])\([^()]*\)")


def particle(message: Message) -> Iterator[str]:
    """Report particles that do not follow the sound of the word before them, read aloud."""
    wrong = {}
    for text in _with_and_without_asides(message.prose):
        for match in AFTER_HANGUL.finditer(text):
            final = (ord(match[1]) - 0xAC00) % 28
            asks = text.startswith("가?", match.start(2))  # 빠른가?
            if final in WRONG_PARTICLES[match[2]] and not asks:
                if not NO_PARTICLE.match(text, match.start()):
                    wrong[match[0]] = match
    for text in _with_and_without_asides(message.translation):
        for match in AFTER_LATIN.finditer(text):
            if final_consonant(match[1].strip("`")) in WRONG_AFTER_LATIN[match[2]]:
                wrong[match[0]] = match
    for match in wrong.values():
        yield f"has the particle {match[2]!r} after {match[1]!r}"
    for pair in re.findall(r"[을를은는이가과와으]\([을를은는이가과와로]\)", message.prose):
        yield f"has {pair!r}; choose one"


def _with_and_without_asides(text: str) -> set[str]:
    """Return a text, and what is heard of it: not what is in parentheses."""
    return {text, IN_PARENTHESES.sub("", text)}


RULES = LanguageRules(
    characters=f"{HANGUL}“”‘’…·–—",
    spacing=(
        rf"[{HANGUL}A-Za-z0-9)”{LITERAL}] [,.;:!?](?=\s|$)|"
        rf"[{HANGUL}][.!?][{HANGUL}]|[,:;][{HANGUL}]|"
        rf"[{HANGUL}A-Za-z0-9{LITERAL}] (?:{PARTICLES})(?![{HANGUL}\w(])|"
        rf"\([ ]|[ ]\)"
    ),
    endings={
        ".": [".", ""],
        ":": [":", "."],
        "?": ["?", ".", ""],
        "!": ["!", "."],
        ";": [";", ".", ",", ""],
        ",": [","],
        "": ["", ".", ":"],
    },
    # What is usual is well within.
    lengths=((160, 0.7, 1.55), (80, 0.6, 1.75), (40, 0.42, 1.9), (15, 0.28, 2.8), (1, 0.2, 4)),
    rules=(ending, speech_level, particle),
)
