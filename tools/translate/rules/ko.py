"""Korean."""

import re

from .ko_sounds import final_consonant
from .language import LanguageRules
from .message import LITERAL, count_sentences, final_mark

HANGUL = "\uac00-\ud7a3"
PARTICLES = "을|를|은|는|가|에|에서|에게|으로|로|와|과|의|까지|부터|처럼|라는|이라는|라고|이라고"
# Syllables that begin one word and end the one before it, or are words when doubled.
OFTEN_DOUBLED = "각스기도지시가의이로고하일사점종차부조자주은는"


def ending(message):
    """Sentences end with a mark, and what is no sentence does not end with a full stop."""
    source, translation = final_mark(message.source_prose), final_mark(message.prose)
    sentence = re.search(r"(?:니다|니까|시오)[*)”\"]*[.?!]?[*)”\"]*$", message.prose.strip())
    if sentence and translation == "" and source in (".", "?", ";"):
        yield "lacks the mark at the end of its sentence"
    several = source == "." and count_sentences(message.source_prose) > 1
    if translation == "" and source and (several or count_sentences(message.prose)):
        yield "lacks the mark at the end of its last sentence"
    if translation == "." and source == "" and not sentence:
        yield "ends with '.', which its source does not"


# Verbs in another speech level than 합니다; what looks like them and is a noun.
PLAIN_VERB = re.compile(
    rf"[{HANGUL}]*(?:[^니보마]다|(?:해|어|아|여|에|예|돼|와|줘|봐|져|켜|려|네|나|세|지|가|겨|춰|워)요)$"
)
CASUAL_END = re.compile(
    r"(?:[^니]까|(?<![이방오])해|돼|[있없않같했겠었았됐왔갔났렸졌많좋싶남맞]어|[않같남많좋싶맞받찾]아|이야|네|죠|줘|봐|져|켜|려|겨|와|남겨요|"
    r"(?:하|되|이|있|없|않)(?:자|라|지|냐|니|군|네)|해라|거든)$"
)
NOMINAL_END = re.compile(r"(?:(?<!포)함|됨|있음|없음|않음|줌|(?<![타책레])임)$")


def speech_level(message):
    """One speech level: sentences end in 합니다-style."""
    source_is_sentence = final_mark(message.source_prose) in (".", ":", "?", "!")
    for word, after in re.findall(rf"([{HANGUL}]+)[*]*(?=([.?!,:;)”\"’]|$))", message.prose):
        is_end = after in (".", "?", "!") or (after == "" and source_is_sentence)
        if (
            PLAIN_VERB.match(word)
            or (is_end and CASUAL_END.search(word))
            or (after == "." and source_is_sentence and NOMINAL_END.search(word))
        ):
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


def particle(message):
    """Particles follow the sound of the word before them, as it is read aloud."""
    # What is in parentheses is not heard.
    texts = {message.prose, IN_PARENTHESES.sub("", message.prose)}
    found = {}
    for match in (x for text in texts for x in AFTER_HANGUL.finditer(text)):
        final = (ord(match[1]) - 0xAC00) % 28
        if final in WRONG_PARTICLES[match[2]]:
            asks = match.string.startswith("가?", match.start(2))  # 빠른가?
            if not asks and not NO_PARTICLE.match(match.string, match.start()):
                found[match[0]] = (match[2], match[1])
    texts = {message.translation, IN_PARENTHESES.sub("", message.translation)}
    for match in (x for text in texts for x in AFTER_LATIN.finditer(text)):
        if final_consonant(match[1].strip("`")) in WRONG_AFTER_LATIN[match[2]]:
            found[match[0]] = (match[2], match[1])
    for wrong, before in found.values():
        yield f"has the particle {wrong!r} after {before!r}"
    for pair in re.findall(r"[을를은는이가과와으]\([을를은는이가과와로]\)", message.prose):
        yield f"has {pair!r}; choose one"


NATIVE = "세|셋 네|넷 다섯 여섯 일곱 여덟 아홉".split()  # From three on.

RULES = LanguageRules(
    characters=f"{HANGUL}“”‘’…·–—",
    numbers={
        value: rf"(?<![{HANGUL}])(?:{words})"
        for value, words in enumerate(
            [
                rf"(?:한(?= [{HANGUL}A-Z])(?! 번에| 다)|하나(?!의))",
                rf"(?:두(?= [{HANGUL}A-Z])|둘)",
                *(f"(?:{x})(?=[ 을를이가은는의개번째도로과와,.)]|입|$)" for x in NATIVE),
            ],
            start=1,
        )
    },
    one="한|하나|1|첫|단일|유일|일|혼자|따로|홀로|매|마다|각",
    two="두|둘|2|양|쌍|이중|째",
    numerals=f"(?<![{HANGUL}])(?:한|두|세|네|다섯|여섯|일곱|여덟|아홉|열|몇|수)",
    units={"second": "초", "minute": "분(?!의)", "hour": "시간", "byte": "바이트", "bit": "비트"},
    spacing=(
        rf"[{HANGUL}A-Za-z0-9)”{LITERAL}] [,.;:!?](?=\s|$)|"
        rf"[{HANGUL}][.!?][{HANGUL}]|[,:;][{HANGUL}]|"
        rf"[{HANGUL}A-Za-z0-9{LITERAL}] (?:{PARTICLES})(?![{HANGUL}\w(])|"
        rf"[{HANGUL}]{{12,}}|\([ ]|[ ]\)"
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
    doubled=(
        rf"(?<![{HANGUL}\w])([{HANGUL}A-Za-z]{{2,}}) \1(?![{HANGUL}\w])|"
        rf"[{HANGUL}](을을|를를|을를|를을|은은|는는|은는|는은|에에|에서에서|으로으로|에게에게|"
        rf"(?<![회정주논합강문])의의|(?<![평증국추단물원허])가가)(?![{HANGUL}])|(니다니다)",
        rf"([{HANGUL}])\1(?:(?<![{OFTEN_DOUBLED}])|(?=\1))",
    ),
    # What is usual is well within.
    lengths=((160, 0.7, 1.55), (80, 0.6, 1.75), (40, 0.42, 1.9), (15, 0.28, 2.8), (1, 0.2, 4)),
    joined=0.75,
    negations=(
        "않|없|못|아니|아닌|아닙|아님|말고|마십|말아|모르|모릅|몰라|어렵|제외|외에|빼|뺍|빠|"
        f"끄|끕|뿐|(?<![{HANGUL}])안 |불가|불필요|미지원|무관|무시|거부|금지|실패|대신|그대로|부족|"
        "많아야"
    ),
    absences="생략|절약|면제|독립|벗어나|떠나|만으로|곧바로|스스로|혼자",
    obligations="야|필요|필수|반드시|요구|하려면|십시오|의무|밖에|말아|려면",
    notes=(
        "번역 ?(?:필요|요망|예정|미정|안 됨)|역자 ?주|역주|검토 ?(?:요망|필요)|확인 필요|"
        "번역(?:문|본|결과)? ?:|다음은 .{0,20}번역|씨발|시발[놈아]|병신|개새끼|존나|좆|지랄|닥쳐"
    ),
    rules=(ending, speech_level, particle),
)
