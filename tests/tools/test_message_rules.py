"""Each rule finds its fault and accepts good translations."""

from dataclasses import replace

import pytest

from tools.project.languages import TRANSLATIONS
from tools.translate.rules import GENERAL, apply_rules, rules_of
from tools.translate.rules.message import Message
from tools.translate.rules.words import code_words, translated_words, word_counts

KO, ZH = "ko", "zh_CN"

FAULTS = [
    # rule, language, format, source, translation
    ("markup", KO, "rest", "Call ``wait``.", "호출합니다."),
    ("markup", KO, "rest", "Call ``wait``.", "``wait``\\ 를 ``wait``\\ 합니다."),
    ("markup", KO, "rest", "Call ``wait``.", "``wait``를 호출합니다."),
    ("markup", KO, "rest", "See :doc:`a`.", ":doc:`b`\\ 를 봅니다."),
    ("markup", KO, "rest", "See :doc:`a`.", ":ref:`a`\\ 를 봅니다."),
    ("markup", KO, "rest", "See `x <https://a.org>`__.", "`x <https://b.org>`__ 참고."),
    ("markup", KO, "rest", "A *term*.", "용어."),
    ("markup", KO, "rest", "One.", "하나.\n\n둘."),
    ("markup", KO, "rest", "One.", ".. raw:: html\n\n   <b>x</b>"),
    ("markup", ZH, "myst", "Call `wait`.", "调用 `Wait`。"),
    ("markup", ZH, "myst", "See [x](a.md).", "见 [x](b.md)。"),
    ("markup", ZH, "myst", "See [x](a.md).", "见 [x](javascript:alert%281%29)。"),
    ("markup", ZH, "myst", "Text.", "文字 <b>粗</b>。"),
    ("markup", ZH, "myst", "Text.", "{download}`/etc/passwd`"),
    ("markup", ZH, "myst", "Text.", "```{include} a.md\n```"),
    ("markup", ZH, "plain", "Count `x`.", "计数。"),
    ("number", ZH, "myst", "Wait 5 s.", "等待 6 秒。"),
    ("number", ZH, "myst", "Wait 5 s.", "等待几秒。"),
    ("identifier", KO, "myst", "Pass --standalone here.", "옵션을 넘깁니다."),
    (
        "identifier",
        KO,
        "myst",
        "In gallery/tutorial/workers/a.py it is.",
        "gallery/tutorial/workers/b.py 안.",
    ),
    ("identifier", KO, "myst", "DistributedDataParallel is it.", "DistributeDataParallel 입니다."),
    ("identifier", KO, "myst", "Set MASTER_ADDR now.", "MASTER_PORT 설정."),
    ("link", KO, "plain", "See https://a.org/x now.", "https://b.org/x 참고."),
    ("placeholder", KO, "plain", "about %(minutes)s min", "약 %(minute)s분"),
    ("placeholder", KO, "plain", "rank {}", "랭크"),
    ("html", KO, "plain", "Made here", "<script>x</script>"),
    ("html", KO, "plain", "Made here", "javascript:alert(1)"),
    ("html", KO, "plain", "&#169; 2", "© 2"),
    ("character", KO, "plain", "a text", "글\u200b자"),
    ("character", KO, "plain", "a text", "글\u202e자"),
    ("character", KO, "plain", "a text", "글\x07자"),
    ("english", KO, "plain", "All the ranks wait.", "All the ranks wait."),
    ("english", KO, "plain", "All wait.", "모두 wait for the other ranks 합니다."),
    ("doubled", KO, "plain", "The group.", "그룹을 그룹을 만듭니다."),
    ("doubled", ZH, "plain", "The group.", "进程组的的名字"),
    ("character", KO, "plain", "A, b.", "가，나."),
    ("spacing", KO, "plain", "A b.", "가  나."),
    ("punctuation", ZH, "plain", "A, b.", "进程,节点。"),
    ("punctuation", ZH, "plain", "A.", "进程."),
    ("spacing", ZH, "plain", "A rank.", "每个rank。"),
    ("spacing", ZH, "plain", "A process.", "进 程。"),
    ("spacing", ZH, "plain", "A, b.", "进程， 节点。"),
    ("spacing", ZH, "myst", "Call `wait`.", "调用`wait`。"),
    ("character", ZH, "plain", "A process.", "進程。"),
    ("speech-level", KO, "plain", "It waits.", "기다린다."),
    ("speech-level", KO, "plain", "It waits.", "기다려요."),
    ("symbol", ZH, "myst", "A text.", "一段 [文字。"),
    ("symbol", KO, "plain", "A text.", "문장입니다 {{ config }}."),
    ("symbol", KO, "plain", "A text.", "- 문장입니다."),
    ("symbol", KO, "rest", "A ``b``.", "``b``\\\\ 는 문장입니다."),
    ("symbol", KO, "rest", ":download:`It <a.zip>`", ":download:`<a.zip>`"),
    ("symbol", ZH, "plain", "A text.", "一段 ~~文字~~。"),
    ("number", KO, "plain", "Three ranks wait.", "네 랭크가 기다립니다."),
    ("number", ZH, "plain", "They wait.", "四个都在等待。"),
    ("number", KO, "plain", "It is -4 now.", "지금은 4입니다."),
    ("number", ZH, "plain", "Wait 5 s.", "等待 5 分钟。"),
    ("identifier", KO, "plain", "With -O2 it is fast.", "-O3 옵션은 빠릅니다."),
    ("placeholder", KO, "plain", "rank {}", "랭크 {}{}"),
    ("placeholder", KO, "plain", "%(a)s of it", "%(a)s % 정도"),
    ("english", ZH, "plain", "Only this, in this case.", "只有 in this case 这样。"),
    ("english", KO, "plain", "The rest", "the 나머지"),
    ("english", KO, "plain", "Next", "Next"),
    ("word", KO, "plain", "It waits.", "TODO 기다립니다."),
    ("word", ZH, "plain", "Use NCCL here.", "在这里使用 Gloo。"),
    ("word", ZH, "plain", "The CUDA device", "该设备"),
    ("word", ZH, "plain", "The CUDA device", "该 Cuda 设备"),
    ("character", KO, "plain", "a text", "글\u00a0자"),
    ("character", KO, "plain", "a text", "글\u3164자"),
    ("character", KO, "plain", "a text", "글\ufffd자"),
    ("character", KO, "plain", "a text", "글자\u1100\u1161"),
    ("character", KO, "plain", "a text", "글자ㅋ"),
    ("character", KO, "plain", "a text", "文字"),
    ("character", KO, "plain", "an API", "АPI"),
    ("character", KO, "plain", "an API", "ＡPI"),
    ("character", ZH, "plain", "a text", "文字の"),
    ("character", ZH, "plain", "a text", "텍스트"),
    ("character", ZH, "plain", "in the end", "最後"),
    ("character", ZH, "plain", "a text", "\uf969字"),
    ("character", ZH, "plain", "a server", "伺服器"),
    ("spacing", KO, "plain", "The group.", "그룹.만듭니다."),
    ("spacing", KO, "rest", "It ``waits``.", "``waits`` 는 기다립니다."),
    ("spacing", KO, "plain", "A long text.", "공백이없는아주아주긴문장입니다."),
    ("spacing", KO, "plain", "A text.", "문장\n입니다."),
    ("punctuation", ZH, "plain", "A text (b).", "文字(乙)。"),
    ("punctuation", ZH, "plain", "A text (b).", "文字（乙。"),
    ("punctuation", ZH, "plain", "DDP: a", "DDP: 文字"),
    ("punctuation", ZH, "plain", "A, b.", "文字，，文字。"),
    ("punctuation", ZH, "plain", 'A "b".', '文字"文字"。'),
    ("punctuation", KO, "plain", "A text (b).", "문장(가입니다."),
    ("punctuation", KO, "plain", "A “b”.", "문장입니다."),
    ("ending", ZH, "plain", "A text.", "文字"),
    ("ending", ZH, "plain", "A text?", "文字。"),
    ("ending", ZH, "plain", "A text:", "文字。"),
    ("ending", ZH, "plain", "A text", "文字。"),
    ("ending", KO, "plain", "A text.", "문장입니다"),
    ("ending", KO, "plain", "A text.", "문장입니까?"),
    ("ending", KO, "plain", "A text", "문장."),
    ("doubled", KO, "plain", "The group.", "그룹를를 만듭니다."),
    ("doubled", KO, "plain", "The rank", "랭랭크"),
    ("doubled", KO, "plain", "Some text", "어떤 문장 어떤 문장"),
    ("doubled", ZH, "plain", "The tensor", "张量张量"),
    ("doubled", ZH, "plain", "The tensor", "张量量"),
    ("doubled", ZH, "plain", "It waits. It ends.", "它一直在等待。它一直在等待。"),
    ("speech-level", KO, "plain", "It waits (a).", "(기다린다.) 가입니다."),
    ("speech-level", KO, "plain", "It waits.", "기다리고 있어."),
    ("speech-level", KO, "plain", "It waits.", "기다리고 있음."),
    ("speech-level", KO, "plain", "It waits", "기다려요"),
    ("speech-level", ZH, "plain", "You wait.", "您要等待。"),
    ("particle", KO, "plain", "The rank.", "랭크을 만듭니다."),
    ("particle", KO, "plain", "The group.", "그룹를 만듭니다."),
    ("particle", KO, "plain", "The extension.", "통신는 확장입니다."),
    ("particle", KO, "plain", "The rank.", "랭크을(를) 만듭니다."),
    ("length", KO, "plain", "It waits until all the others have arrived there.", "기다립니다."),
    ("length", ZH, "plain", "barrier", "屏障会让所有进程都停下来等待其他的进程到达"),
    (
        "length",
        ZH,
        "plain",
        "One is here. Two are here. It goes on.",
        "一切都在这里，一直继续下去。",
    ),
    ("length", KO, "plain", "A text", "-"),
    ("negation", KO, "plain", "It does not wait.", "기다립니다."),
    ("negation", ZH, "plain", "It cannot wait.", "它会等待。"),
    ("negation", ZH, "plain", "You must wait.", "可以等待。"),
    ("note", KO, "plain", "It waits.", "기다립니다. (번역 확인 필요)"),
    ("note", ZH, "plain", "It waits.", "等待？？"),
    ("glossary-term", KO, "plain", "The tensor.", "tensor입니다."),
    ("glossary-term", ZH, "plain", "The Python code.", "PYTHON 代码。"),
    ("glossary-term", KO, "plain", "The tensor.", "배열."),
    ("glossary-term", KO, "plain", "The rank.", "순위."),
    ("glossary-term", ZH, "plain", "A backend.", "后台。"),
    ("glossary-term", ZH, "plain", "Two process groups.", "两个进程。"),
]

GOOD = [
    ("de", "rest", "Call ``wait`` in *one* rank.", "*Ein* Rang ruft ``wait`` auf; in Ruhe."),
    ("de", "plain", "Next", "Weiter"),
    ("de", "plain", "Name", "Name"),
    ("ja", "myst", "Call `wait` three times.", "`wait` を三回呼び出します。"),
    (
        KO,
        "rest",
        "``wait`` in *one* :doc:`a` rank.",
        "한 *랭크*\\ 의 :doc:`a`\\ 에서 ``wait``\\ 합니다.",
    ),
    (KO, "rest", "See `the site <https://a.org>`__.", "`사이트 <https://a.org>`__\\ 를 봅니다."),
    (KO, "myst", "See [the page](a.md) and `x_y`.", "[페이지](a.md)와 `x_y`를 봅니다."),
    (KO, "myst", "Two ranks, 4 nodes.", "노드 4개, 랭크 2개."),
    (KO, "plain", "rank {}", "랭크 {}"),
    (KO, "plain", "A store that ranks share.", "랭크들이 공유하는 저장소(store)입니다."),
    (KO, "plain", "Ranks wait (all of them).", "랭크가 (모두가) 기다립니다."),
    (ZH, "myst", "The `store` of PyTorch 2.13, “dummy”.", "PyTorch 2.13 的 `store`，“dummy”。"),
    (ZH, "rest", "Ranks call ``f`` (*once*).", "各 rank 调用 ``f``\\ （*一次*\\ ）。"),
    (ZH, "plain", "spawn", "spawn"),
    (ZH, "myst", "The Backend class.", "Backend 类。"),
    (ZH, "myst", "It splits a sample.", "它切分一个样本（sample）。"),
    (ZH, "plain", "Call wait(a, b), then stop.", "先调用 wait(a, b)，再停止。"),
    (ZH, "myst", "Two ranks; both wait.", "两个 rank 都会等待。"),
    (ZH, "myst", "It runs in 5 s. It waits.", "它运行 5 秒，并等待。"),
    (ZH, "myst", "One forward, one backward (1F1B).", "一次前向，一次反向（1F1B）。"),
    (ZH, "plain", "It is famous.", "它很著名，常常覆盖全部。"),
    (ZH, "myst", "PyTorch needs nothing but a network.", "PyTorch 有网络就能用。"),
    (ZH, "myst", "The other end, and the last backend.", "另一端和最后后端。"),
    (KO, "plain", "The environment of each rank:", "각 랭크의 환경은 다음과 같습니다."),
    (KO, "plain", "Most languages have it.", "대부분의 언어, 소프트웨어, 메시지에 있습니다."),
    (KO, "plain", "How does it wait?", "어떻게 기다리는지 살펴봅니다."),
    (
        KO,
        "plain",
        "It is needed by everything.",
        "모든 것에 필요합니다. 각각 결과와 효과를 봅니다.",
    ),
    (KO, "plain", "Half of the columns of three ranks.", "세 랭크의 열의 절반입니다."),
    (KO, "plain", "It has not ended yet.", "아직 끝나지 않았습니다."),
    (KO, "plain", "You must wait.", "기다려야 합니다."),
    (KO, "plain", "A third-party library.", "서드파티 라이브러리입니다."),
    (KO, "rest", "``a`` saves 10 s.", "``a``\\ 은 10초를 줄입니다."),
    (KO, "plain", "about 10 more", "약 10초 더"),
    (KO, "plain", "The autumn of a village", "마을의 가을은 나은 때"),
    (ZH, "plain", "gallery/tutorial/workers/a.py", "gallery/tutorial/workers/a.py"),
]


@pytest.mark.parametrize("rule, language, format, source, translation", FAULTS)
def test_a_fault_is_found(rule, language, format, source, translation):
    assert rule in apply_rules(Message(source, translation, language, format))


@pytest.mark.parametrize("language, format, source, translation", GOOD)
def test_a_good_translation_passes(language, format, source, translation):
    assert apply_rules(Message(source, translation, language, format)) == {}


def test_a_word_that_is_translated_elsewhere_is_not_left_in_english():
    source = "It saves memory for all."
    others = [Message(source, "메모리를 아낍니다.", KO, "plain")] * 4
    words = translated_words([word_counts(others)])
    message = Message(source, "모두의 memory 절약입니다.", KO, "plain", words)
    assert apply_rules(message)["english"] == ["leaves the word 'memory' in English"]
    code = code_words([Message("Call `memory`.", "", KO, "myst")])
    assert "english" not in apply_rules(replace(message, translated_elsewhere=words - code))


def test_every_rule_is_tested():
    everywhere = {fault[0] for fault in FAULTS}
    assert everywhere == {name for x in TRANSLATIONS for name in rules_of(x.gettext)}
    for language in TRANSLATIONS:
        tested = {fault[0] for fault in FAULTS if fault[1] == language.gettext}
        for name, rules in rules_of(language.gettext).items():
            assert name in tested or {*rules} <= {*GENERAL}
