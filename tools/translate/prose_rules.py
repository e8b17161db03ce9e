"""What makes good text in a language, rule by rule.

Each rule is a function that yields what it found, as a phrase for a translator. It gets
a ``Message`` of ``message_rules``. What a rule knows of a language stands above it, in
a table by language; of other languages it says little or nothing.
"""

import re
import unicodedata

HAN = "\u4e00-\u9fff"
HANGUL = "\uac00-\ud7a3"
FULL_WIDTH = "\u3001\u3002\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
LITERAL = "\x00"  # What ``Message.prose`` has in the place of each literal.
# Between markup and a letter, reStructuredText wants a space that is not shown.
HIDDEN_SPACE = re.compile(rf"(?<=[`*_])\\ |\\ (?=[`*:|])|\\(?=[{FULL_WIDTH}])")
SENTENCE_END = re.compile(r"[。？！]+|[.?!]+(?=[)）”\"’*]*(?:\s|$))")

# -- Characters ------------------------------------------------------------------

# What a language uses beside ASCII. It may also use what stands in the source.
CHARACTERS = {
    "ko": re.compile(rf"[{HANGUL}“”‘’…·–—]"),
    "zh_CN": re.compile(rf"[{HAN}{FULL_WIDTH}“”‘’《》…—·]"),
}
# Traditional and variant forms that GB 2312 holds beside the simplified ones, unless
# in one of these words.
NOT_SIMPLIFIED = "後於麽乾徵馀覆著夥锺摺"
SIMPLIFIED_WORDS = re.compile("覆盖|反覆|答覆|颠覆|乾坤|乾隆|著名|著作|显著|论著|专著|名著|昭著")
TAIWAN_WORDS = re.compile(
    "(?<!方)程式|函式|网路|记忆体|伺服器|软体|硬体|执行绪|讯息|萤幕|滑鼠|演算法|位元|建置|介面"
)


def character(message):
    """Characters that the language does not use, are not seen, or look like others."""
    text, own = message.translation, CHARACTERS.get(message.language)
    for found in dict.fromkeys(text):
        if found in message.source or " " <= found <= "~":
            continue
        category = unicodedata.category(found)
        if category[0] in "CZ" or category in ("Mn", "Me") or found == "\ufffd":
            yield f"has the invisible or broken character U+{ord(found):04X}"
        elif unicodedata.normalize("NFKC", found) != found and found not in FULL_WIDTH + "…":
            yield f"has {found!r} (U+{ord(found):04X}) in the place of a usual character"
        elif own and not own.match(found):
            yield f"has the character {found!r} (U+{ord(found):04X}), which is foreign here"
        elif message.language == "zh_CN" and not _is_simplified(found, text):
            yield f"has the traditional or rare character {found!r}"
    if message.language == "zh_CN":
        for found in TAIWAN_WORDS.findall(text):
            yield f"has the word {found!r}, which is not used on the mainland"


def _is_simplified(character, text):
    if character in NOT_SIMPLIFIED:
        return character not in SIMPLIFIED_WORDS.sub("", text)
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return not re.match(f"[{HAN}]", character)
    return True


# -- Punctuation and spaces ------------------------------------------------------


def spacing(message):
    """Spaces and line ends as the language writes them."""
    text = message.prose.replace("\n", " ")
    if "  " in text.strip() and "  " not in message.source_prose:
        yield "has two spaces in a row"
    if "\n" in message.translation.strip() and "\n" not in message.source.strip():
        yield "has a line end, which the source has not"
    for side in (str.lstrip, str.rstrip):
        ends = [
            x.removeprefix(side(x)).removesuffix(side(x))
            for x in (message.source, message.translation)
        ]
        if ends[0] != ends[1]:
            yield f"begins or ends with {ends[1]!r}, the source with {ends[0]!r}"
    for found in SPACING.get(message.language, re.compile("(?!)")).findall(text):
        yield f"lacks a space or has one too many in {_shown(found)!r}"


PARTICLES = "을|를|은|는|가|에|에서|에게|으로|로|와|과|의|까지|부터|처럼|라는|이라는|라고|이라고"
SPACING = {
    "ko": re.compile(
        rf"[{HANGUL}A-Za-z0-9)”{LITERAL}] [,.;:!?](?=\s|$)|"
        rf"[{HANGUL}][.!?][{HANGUL}]|[,:;][{HANGUL}]|"
        rf"[{HANGUL}A-Za-z0-9{LITERAL}] (?:{PARTICLES})(?![{HANGUL}\w(])|"
        rf"[{HANGUL}]{{12,}}|\([ ]|[ ]\)"
    ),
    "zh_CN": re.compile(
        rf"[{HAN}][A-Za-z0-9{LITERAL}]|[A-Za-z0-9{LITERAL}][{HAN}]|[{HAN}] [{HAN}]|"
        rf"[{FULL_WIDTH}] (?=[^*_])| [{FULL_WIDTH}]"
    ),
}


def _shown(text):
    return text.replace(LITERAL, "``")


CALL = re.compile(r"\w\([ -~]*?\)")  # Code that is not marked as such.


DOUBLED_MARK = re.compile(r"[,;:，。、；：！](?=\s*[.,;:，。、；：])|[。？]{2}|(?<!\.)\.\.(?!\.)")


def punctuation(message):
    """Marks of the right width, none twice, and none without its other half."""
    text = message.prose.replace("\n", " ")
    for found in DOUBLED_MARK.findall(text):
        is_quoted = found in FULL_WIDTH and found in message.source  # It speaks of it.
        if found + found not in message.source and not is_quoted:
            yield f"has two punctuation marks in a row, after {found!r}"
    if message.language == "zh_CN":
        yield from _half_width(CALL.sub("x", text), " ".join(message.source_prose.split()))
    for pair in ("()", "（）", "“”", "[]", "《》"):
        if not _is_balanced(text, pair) and _is_balanced(message.source_prose, pair):
            yield f"has one of {pair!r} without the other"
    if text.count('"') > message.source_prose.count('"'):
        yield "has a quotation mark that the source has not"
    if re.search('[“"]', message.source_prose) and not re.search("[“\"‘'《*]", text):
        yield "lacks the quotation marks"


def _half_width(text, source):
    near = rf"[{HAN}{FULL_WIDTH}”{LITERAL}]"
    pattern = rf"{near}[*]*[.](?=\s|$|{near})|\.\s*{near}|{near}\s*[()]|[()]\s*{near}"
    for found in re.findall(pattern, text):
        yield f"has a punctuation mark of half width in {_shown(found)!r}"
    for found in re.finditer(r"\S?\s*[,;:!?]\s*\S?", text):
        if found[0].rstrip() not in CALL.sub("x", source):
            yield f"has a punctuation mark of half width in {_shown(found[0])!r}"
    if found := re.search(rf'"[^"]*[{HAN}][^"]*"', text):
        yield f"has straight quotation marks in {_shown(found[0])!r}"


def _is_balanced(text, pair):
    depth = 0
    for found in text:
        depth += (found == pair[0]) - (found == pair[1])
        if depth < 0:
            return False
    return depth == 0


# What a text may end with, by what its source ends with: punctuation, or "" for none.
ENDINGS = {
    "ko": {
        ".": [".", ""],
        ":": [":", "."],
        "?": ["?", ".", ""],
        "!": ["!", "."],
        ";": [";", ".", ",", ""],
        ",": [","],
        "": ["", ".", ":"],
    },
    "zh_CN": {
        ".": ["。"],
        ":": ["："],
        "?": ["？"],
        "!": ["！", "。"],
        ";": ["；", "。"],
        ",": ["，", ",", "、"],
        "": ["", "："],
    },
}


def ending(message):
    """The punctuation mark at the end is that of the source."""
    source, translation = map(_ending, (message.source_prose, message.prose))
    expected = ENDINGS.get(message.language, {}).get(source)
    if expected and translation not in expected:
        yield f"ends with {translation!r}, where the source ends with {source!r}"
    elif message.language == "ko":
        sentence = re.search(r"(?:니다|니까|시오)[*)”\"]*[.?!]?[*)”\"]*$", message.prose.strip())
        if sentence and translation == "" != source:
            yield "lacks the mark at the end of its sentence"
        if source == "." != translation and _sentences(message.source_prose) > 1:
            yield "lacks the mark at the end of its last sentence"
        if translation == "." and source == "" and not sentence:
            yield "ends with '.', which its source does not"


def _sentences(text):
    return len(SENTENCE_END.findall(text))


def _ending(text):
    found = re.search(r"([.:;?!,。：；？！，、]?)[*_)）”\"’]*$", text.strip())
    return found[1]


# -- Words -----------------------------------------------------------------------

# Syllables that begin one word and end the one before it, or are words when doubled.
OFTEN_DOUBLED = {
    "ko": "각스기도지시가의이로고하일사점종차부조자주은는",
    "zh_CN": "看早往会到步对后前组向上下中行度化子出人大发常刚慢仅恰渐种样试想等处时稍多好层天"
    "次纷紧默远明白偏最整足牢悄点单块一二三索",
}
DOUBLED = {
    "ko": re.compile(
        rf"(?<![{HANGUL}\w])([{HANGUL}A-Za-z]{{2,}}) \1(?![{HANGUL}\w])|"
        rf"[{HANGUL}](을을|를를|을를|를을|은은|는는|은는|는은|에에|에서에서|으로으로|에게에게|"
        rf"(?<![회정주논합강문])의의|(?<![평증국추단물원허])가가)(?![{HANGUL}])|(니다니다)"
    ),
    "zh_CN": re.compile(rf"((?!一)[{HAN}]{{2,}})\1|\b([A-Za-z]+) \2\b"),
}


def doubled(message):
    """A word or a sentence twice in a row."""
    pattern = DOUBLED.get(message.language)
    for found in pattern.finditer(message.prose) if pattern else ():
        if found[0] not in message.source:
            yield f"says {next(filter(None, found.groups()))!r} twice in a row"
    for found in re.finditer(rf"([{HANGUL}{HAN}])\1", message.prose):
        if pattern and (
            found[1] not in OFTEN_DOUBLED[message.language]
            or message.prose[found.end() : found.end() + 1] == found[1]
        ):
            yield f"says {found[1]!r} twice in a row"
    text = message.prose.strip()
    if (found := re.fullmatch(r"(.{2,}?) ?\1", text, re.S)) and text not in message.source:
        yield f"says {_shown(found[1])!r} twice"
    for sentence in _repeated(message.prose) - _repeated(message.source_prose):
        if not _repeated(message.source_prose):
            yield f"says {_shown(sentence)!r} twice"


def _repeated(text):
    sentences = [x.strip() for x in SENTENCE_END.split(text)]
    return {x for x in sentences if len(x) > 5 and sentences.count(x) > 1}


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
    """One speech level: Korean sentences end in 합니다-style, Chinese says 你."""
    source_is_sentence = _ending(message.source_prose) in (".", ":", "?", "!")
    if message.language == "ko":
        for word, after in re.findall(rf"([{HANGUL}]+)[*]*(?=([.?!,:;)”\"’]|$))", message.prose):
            is_end = after in (".", "?", "!") or (after == "" and source_is_sentence)
            if (
                PLAIN_VERB.match(word)
                or (is_end and CASUAL_END.search(word))
                or (after == "." and source_is_sentence and NOMINAL_END.search(word))
            ):
                yield f"has {word!r}, not in 합니다-style"
    if message.language == "zh_CN":
        for found in re.findall("您|[哦啦呀嘛哈哟呢吧][。！]", message.prose):
            yield f"has {found!r}: this site says 你, and is sober"


# Particles, and the final consonants after which none of them stands. The numbers are
# those of Unicode: 0 for none, 4 ㄴ, 8 ㄹ, 21 ㅇ.
WRONG_PARTICLES = {
    "를": {*range(1, 28)},
    "와": {*range(1, 28)},
    "는": {4, 8, 21},
    "을": {0},
    "은": {0},
    "과": {0},
    "으로": {0, 8},
}
NO_PARTICLE = re.compile(
    r"(?:가|마|노)을|(?:나|지|이|부|그)은|[효사초부투교여치]과|(?<![가-힣])[신안]는"
)


def particle(message):
    """Korean particles that follow the sound of the word before them."""
    if message.language != "ko":
        return
    pattern = rf"([{HANGUL}])({'|'.join(WRONG_PARTICLES)})(?![{HANGUL}])"
    for found in re.finditer(pattern, message.prose):
        final_consonant = (ord(found[1]) - 0xAC00) % 28
        if final_consonant in WRONG_PARTICLES[found[2]] and not NO_PARTICLE.match(
            message.prose, found.start()
        ):
            yield f"has the particle {found[2]!r} after {found[1]!r}"
    for found in re.findall(r"[을를은는이가과와으]\([을를은는이가과와로]\)", message.prose):
        yield f"has {found!r}; choose one"


# -- Completeness ----------------------------------------------------------------

# The least and the most that a translation takes up for each character of a source of
# at least so many characters; Hangul and Han count twice. What is usual lies well within.
LENGTHS = {
    "ko": [(160, 0.7, 1.55), (80, 0.6, 1.75), (40, 0.42, 1.9), (15, 0.28, 2.8), (1, 0.2, 4)],
    "zh_CN": [(160, 0.48, 1.1), (80, 0.42, 1.2), (40, 0.36, 1.35), (15, 0.28, 2.6), (1, 0.2, 4)],
}


def length(message):
    """Nothing is left out, and nothing added, as far as its length can tell."""
    if re.search("[A-Za-z]{3}", message.source_prose):
        if not re.search(r"[^\W\d_]", message.prose):
            yield "has no words"
    source, translation = len(message.source_prose), _width(message.prose)
    for characters, least, most in LENGTHS.get(message.language, ()):
        if source >= characters:
            if not least * source <= translation <= most * source:
                yield "is much shorter or longer than the source: is it all there?"
            break
    if message.language in LENGTHS:
        expected, found = _sentences(message.source_prose), _sentences(message.prose)
        if found < expected - 1 or (expected and found > 2 * expected + 2):
            yield f"has {found} sentences, the source {expected}"


def _width(text):
    return sum(2 if found > "\u2e80" else 1 for found in text)


NEGATION = re.compile(r"\b(?:not(?! only)|never|cannot|without|none|no(?! more))\b|n't\b", re.I)
NEGATIVE = {
    "ko": re.compile(
        r"않|없|못|아니|아닌|아닙|아님|말고|마십|말아|모르|모릅|몰라|어렵|제외|외에|빼|뺍|빠|"
        r"끄|끕|뿐|"
        r"(?<![가-힣])안 |불가|불필요|미지원|무관|무시|거부|금지|실패|대신|그대로|부족|많아야"
    ),
    "zh_CN": re.compile("[不没无非未别勿否莫免除缺只仅难拒禁]|关闭|省去|去掉|以外|失败"),
}
OBLIGATION = re.compile(r"\b(?:must|(?<!not )ha(?:ve|s) to)\b(?! not)")
OBLIGED = {
    "ko": re.compile("야|필요|필수|반드시|요구|하려면|십시오|의무|밖에|말아|려면"),
    "zh_CN": re.compile("必|须|得|要|需|应|只能|才|不可|不能|务|该"),
}


def negation(message):
    """What the source denies or demands is not translated as if it did not."""
    for english, words in ((NEGATION, NEGATIVE), (OBLIGATION, OBLIGED)):
        found, pattern = english.search(message.source_prose), words.get(message.language)
        if found and pattern and not pattern.search(message.prose):
            yield f"lacks what says {found[0]!r}"


NOTE = re.compile(
    r"\b(?:TODO|FIXME|XXX|TBD)\b|\[\?\]|\?\?|[？]{2}|"
    r"번역 ?(?:필요|요망|예정|미정|안 됨)|역자 ?주|역주|검토 ?(?:요망|필요)|확인 필요|"
    r"(?:待|未|请|机器|需要)翻译|翻译[：:]|译者注|译注|待译|待定|待校|待确认|机翻"
)


def note(message):
    """Notes of a translator, and what a machine says about its own work."""
    if not re.search("translat", message.source, re.I):
        for found in NOTE.findall(message.prose):
            if found not in message.source:
                yield f"has the note {found!r}"


PROSE_RULES = [
    character,
    spacing,
    punctuation,
    ending,
    doubled,
    speech_level,
    particle,
    length,
    negation,
    note,
]
