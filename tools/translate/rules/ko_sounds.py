"""How words in Latin letters, literals and numbers end when Korean readers say them aloud.

Final consonants are numbered as in Unicode: 0 for none, 4 ㄴ, 8 ㄹ, 16 ㅁ, 21 ㅇ.
"""

import re

NIEUN, RIEUL, MIEUM, IEUNG = 4, 8, 16, 21
# 영 일 이 삼 사 오 육 칠 팔 구
DIGITS = (IEUNG, RIEUL, 0, MIEUM, 0, 0, 1, RIEUL, RIEUL, 0)
ZEROS = {1: 17, 2: 1, 3: NIEUN, 4: NIEUN}  # 십 백 천 만
# Endings of words of which all readings end in the same way; the first that fits counts.
ENDINGS = {
    "acme": 0,  # 애크미, the project that readers begin with
    "ng": IEUNG,
    "n|ne": NIEUN,
    "m|me": MIEUM,
    "l|le": RIEUL,
    "[aiouywsxzfvdjhr]|[eiuo]e|[rcszvgtdfhk]e|[^aeiou]t|[nrsl]k|[^n]g": 0,
}


def final_consonant(text: str) -> int | None:
    """Return the number of the consonant that a text ends with, or None if readers may differ."""
    text = re.sub(r"[\"'()\[\]]+$", "", text)
    if number := re.search(r"(?<![A-Za-z])\d+$", text):
        zeros = len(number[0]) - len(number[0].rstrip("0"))
        if 0 < zeros < len(number[0]):
            return ZEROS.get(zeros)
        return DIGITS[int(number[0][-1])]
    word = re.search(r"[A-Za-z]+\Z", text)
    if not word:
        return None
    if word[0].isupper():
        return _of_acronym(word[0])
    for ending, consonant in ENDINGS.items():
        if re.search(rf"(?:{ending})\Z", word[0].lower()):
            return consonant
    return None


def _of_acronym(word: str) -> int | None:
    last = word[-1]
    if last in "LMN":
        return {"L": RIEUL, "M": MIEUM, "N": NIEUN}[last]
    # It may be read as a word, or R as 아르.
    if last == "R" or (last in "BCEGKPT" and re.search("[AEIOU]", word[:-1])):
        return None
    return 0
