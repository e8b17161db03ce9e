"""Simplified Chinese."""

import re

from .language import LanguageRules
from .message import FULL_WIDTH, LITERAL, shown

HAN = "\u4e00-\u9fff"
# Traditional and variant forms that GB 2312 holds beside the simplified ones, unless
# in one of these words.
NOT_SIMPLIFIED = "後於麽乾徵馀覆著夥锺摺"
SIMPLIFIED_WORDS = re.compile("覆盖|反覆|答覆|颠覆|乾坤|乾隆|著名|著作|显著|论著|专著|名著|昭著")
TAIWAN_WORDS = re.compile(
    "(?<!方)程式|函式|网路|记忆体|伺服器|软体|硬体|执行绪|讯息|萤幕|滑鼠|演算法|位元|建置|介面"
)
# Syllables that begin one word and end the one before it, or are words when doubled.
OFTEN_DOUBLED = (
    "看早往会到步对后前组向上下中行度化子出人大发常刚慢仅恰渐种样试想等处时稍多好层天"
    "次纷紧默远明白偏最整足牢悄点单块一二三索"
)
CALL = re.compile(r"\w\([ -~]*?\)")  # Code that is not marked as such.


def character(message):
    """Simplified forms, and the words of the mainland."""
    for found in dict.fromkeys(re.findall(f"[{HAN}]", message.translation)):
        if found not in message.source and not _is_simplified(found, message.translation):
            yield f"has the traditional or rare character {found!r}"
    for found in TAIWAN_WORDS.findall(message.translation):
        yield f"has the word {found!r}, which is not used on the mainland"


def _is_simplified(character, text):
    if character in NOT_SIMPLIFIED:
        return character not in SIMPLIFIED_WORDS.sub("", text)
    return character.encode("gb2312", "ignore") != b""


def punctuation(message):
    """Marks of full width beside Chinese."""
    text = CALL.sub("x", message.prose.replace("\n", " "))
    source = CALL.sub("x", " ".join(message.source_prose.split()))
    near = rf"[{HAN}{FULL_WIDTH}”{LITERAL}]"
    pattern = rf"{near}[*]*[.](?=\s|$|{near})|\.\s*{near}|{near}\s*[()]|[()]\s*{near}"
    for found in re.findall(pattern, text):
        yield f"has a punctuation mark of half width in {shown(found)!r}"
    for found in re.findall(r"\S?\s*[,;:!?]\s*\S?", text):
        if found.rstrip() not in source:
            yield f"has a punctuation mark of half width in {shown(found)!r}"
    if found := re.search(rf'"[^"]*[{HAN}][^"]*"', text):
        yield f"has straight quotation marks in {shown(found[0])!r}"


def speech_level(message):
    """The reader is 你, and no sentence ends in a particle of speech."""
    for found in re.findall("您|[哦啦呀嘛哈哟呢吧][。！]", message.prose):
        yield f"has {found!r}: this site says 你, and is sober"


RULES = LanguageRules(
    characters=f"{HAN}{FULL_WIDTH}“”‘’《》…—·",
    numbers={
        1: "一(?=[个次条])",
        2: "两|二",
        **{
            value: f"{word}(?![方角周十百千元])"
            for value, word in enumerate("三四五六七八九", start=3)
        },
    },
    one="一|1|单|唯|首|每|某|该",
    two="两|二|2|双|对|半",
    numerals="[一两二三四五六七八九十百几数半]",
    units={
        "millisecond": "毫秒",
        "second": "秒",
        "minute": "分钟",
        "hour": "小时",
        "byte": "字节",
        "bit": "位(?!置)",
    },
    spacing=(
        rf"[{HAN}][A-Za-z0-9{LITERAL}]|[A-Za-z0-9{LITERAL}][{HAN}]|[{HAN}] [{HAN}]|"
        rf"[{FULL_WIDTH}] (?=[^*_])| [{FULL_WIDTH}]"
    ),
    endings={
        ".": ["。"],
        ":": ["："],
        "?": ["？"],
        "!": ["！", "。"],
        ";": ["；", "。"],
        ",": ["，", ",", "、"],
        "": ["", "："],
    },
    doubled=(
        rf"((?!一)[{HAN}]{{2,}})\1|\b([A-Za-z]+) \2\b",
        rf"([{HAN}])\1(?:(?<![{OFTEN_DOUBLED}])|(?=\1))",
    ),
    # What is usual is well within.
    lengths=((160, 0.48, 1.1), (80, 0.42, 1.2), (40, 0.36, 1.35), (15, 0.28, 2.6), (1, 0.2, 4)),
    joined=0.58,
    negations="[不没无非未别勿否莫免除缺只仅难拒禁]|关闭|省去|去掉|以外|失败",
    absences="脱离|独立|直接|自行|单独|节省|省下",
    obligations="必|须|得|要|需|应|只能|才|不可|不能|务|该",
    notes=(
        "(?:待|未|请|机器|需要)翻译|翻译[：:]|译者注|译注|待译|待定|待校|待确认|机翻|"
        "译[文本][：:]|以下[是为].{0,10}译|他妈|操你|傻[逼屄]|妈的|狗屁|去死"
    ),
    rules=(character, punctuation, speech_level),
)
