"""Each rule finds the fault that it is there for, and leaves good translations alone."""

import pytest

from tools.message_rules import RULES, Message

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
    ("identifier", KO, "myst", "In gallery/workers/a.py it is.", "gallery/workers/b.py 안."),
    ("identifier", KO, "myst", "DistributedDataParallel is it.", "DistributeDataParallel 입니다."),
    ("identifier", KO, "myst", "Set MASTER_ADDR now.", "MASTER_PORT 설정."),
    ("link", KO, "plain", "See https://a.org/x now.", "https://b.org/x 참고."),
    ("placeholder", KO, "plain", "about %(minutes)s min", "약 %(minute)s분"),
    ("placeholder", KO, "plain", "rank {}", "랭크"),
    ("html", KO, "plain", "Made here", "<script>x</script>"),
    ("html", KO, "plain", "Made here", "javascript:alert(1)"),
    ("html", KO, "plain", "&#169; 2", "© 2"),
    ("invisible", KO, "plain", "a text", "글\u200b자"),
    ("invisible", KO, "plain", "a text", "글\u202e자"),
    ("invisible", KO, "plain", "a text", "글\x07자"),
    ("english", KO, "plain", "All the ranks wait.", "All the ranks wait."),
    ("english", KO, "plain", "All wait.", "모두 wait for the other ranks 합니다."),
    ("doubled", KO, "plain", "The group.", "그룹을 그룹을 만듭니다."),
    ("doubled", ZH, "plain", "The group.", "进程组的的名字"),
    ("spacing", KO, "plain", "A, b.", "가，나."),
    ("spacing", KO, "plain", "A b.", "가  나."),
    ("spacing", ZH, "plain", "A, b.", "进程,节点。"),
    ("spacing", ZH, "plain", "A.", "进程."),
    ("spacing", ZH, "plain", "A rank.", "每个rank。"),
    ("spacing", ZH, "plain", "A process.", "进 程。"),
    ("spacing", ZH, "plain", "A, b.", "进程， 节点。"),
    ("spacing", ZH, "myst", "Call `wait`.", "调用`wait`。"),
    ("traditional", ZH, "plain", "A process.", "進程。"),
    ("speech-level", KO, "plain", "It waits.", "기다린다."),
    ("speech-level", KO, "plain", "It waits.", "기다려요."),
    ("glossary-term", KO, "plain", "The tensor.", "배열."),
    ("glossary-term", KO, "plain", "The rank.", "순위."),
    ("glossary-term", ZH, "plain", "A backend.", "后台。"),
    ("glossary-term", ZH, "plain", "Two process groups.", "两个进程。"),
]

GOOD = [
    (KO, "rest", "``wait`` in *one* :doc:`a` rank.", "한 *랭크*\\ 의 :doc:`a`\\ 에서 ``wait``\\ 합니다."),
    (KO, "rest", "See `the site <https://a.org>`__.", "`사이트 <https://a.org>`__\\ 를 봅니다."),
    (KO, "myst", "See [the page](a.md) and `x_y`.", "[페이지](a.md)와 `x_y`를 봅니다."),
    (KO, "myst", "Two ranks, 4 nodes.", "노드 4개, 랭크 2개."),
    (KO, "plain", "rank {}", "랭크 {}"),
    (KO, "plain", "A store that ranks share.", "랭크들이 공유하는 저장소(store)입니다."),
    (KO, "plain", "Ranks wait (all of them).", "랭크가 (모두가) 기다립니다."),
    (ZH, "myst", "The `store` of PyTorch 2.13, “dummy”.", "PyTorch 2.13 的 `store`，“dummy”。"),
    (ZH, "rest", "Ranks call ``f`` (*once*).", "各 rank 调用 ``f`` \\（*一次*\\ ）。"),
    (ZH, "plain", "broadcast", "broadcast"),
    (ZH, "plain", "gallery/workers/a.py", "gallery/workers/a.py"),
]


@pytest.mark.parametrize("rule, language, format, source, translation", FAULTS)
def test_a_fault_is_found(rule, language, format, source, translation):
    assert list(RULES[rule](Message(source, translation, language, format)))


@pytest.mark.parametrize("language, format, source, translation", GOOD)
def test_a_good_translation_passes(language, format, source, translation):
    message = Message(source, translation, language, format)
    findings = [finding for rule in RULES.values() for finding in rule(message)]
    assert findings == []


def test_every_rule_is_tested():
    assert {fault[0] for fault in FAULTS} == set(RULES)
