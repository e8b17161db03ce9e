"""Each rule finds its fault and accepts good translations."""

import pytest

from tools.translate.rules import apply_rules, terms
from tools.translate.rules.message import Message

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
    ("number", ZH, "myst", "Wait 5 s.", "等待几秒。"),
    ("identifier", KO, "myst", "Pass --standalone here.", "옵션을 넘깁니다."),
    ("identifier", KO, "myst", "In a/folder/a.py it is.", "a/folder/b.py 안."),
    ("identifier", KO, "myst", "DistributedDataParallel is it.", "DistributeDataParallel 입니다."),
    ("identifier", KO, "myst", "Set MASTER_ADDR now.", "MASTER_PORT 설정."),
    ("link", KO, "plain", "See https://a.org/x now.", "https://b.org/x 참고."),
    ("placeholder", KO, "plain", "about %(minutes)s min", "약 %(minute)s분"),
    ("placeholder", KO, "plain", "rank {}", "랭크"),
    ("html", KO, "plain", "Made here", "<script>x</script>"),
    ("html", KO, "plain", "Made here", "javascript:alert(1)"),
    ("html", KO, "plain", "&#169; 2", "© 2"),
    ("character", KO, "plain", "a text", "글\u202e자"),
    ("english", "de", "plain", "All the ranks wait.", "All the ranks wait."),
    ("doubled", KO, "plain", "The group.", "그룹을 그룹을 만듭니다."),
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
    ("number", KO, "plain", "It is -4 now.", "지금은 4입니다."),
    ("identifier", KO, "plain", "With -O2 it is fast.", "-O3 옵션은 빠릅니다."),
    ("placeholder", KO, "plain", "%(a)s of it", "%(a)s % 정도"),
    ("english", ZH, "plain", "Only this, in this case.", "只有 in this case 这样。"),
    ("identifier", ZH, "plain", "Use NCCL here.", "在这里使用 Gloo。"),
    ("identifier", ZH, "plain", "The CUDA device", "该 Cuda 设备"),
    ("character", KO, "plain", "a text", "글\u3164자"),
    ("character", KO, "plain", "a text", "글\ufffd자"),
    ("character", KO, "plain", "an API", "АPI"),
    ("character", KO, "plain", "an API", "ＡPI"),
    ("character", ZH, "plain", "a text", "文字の"),
    ("spacing", KO, "plain", "The group.", "그룹.만듭니다."),
    ("spacing", KO, "rest", "It ``waits``.", "``waits`` 는 기다립니다."),
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
    ("doubled", ZH, "plain", "The tensor", "张量张量"),
    ("doubled", ZH, "plain", "It waits. It ends.", "它一直在等待。它一直在等待。"),
    ("speech-level", ZH, "plain", "You wait.", "您要等待。"),
    ("particle", KO, "plain", "The rank.", "랭크을 만듭니다."),
    ("particle", KO, "plain", "The group.", "그룹를 만듭니다."),
    ("particle", KO, "plain", "The extension.", "통신는 확장입니다."),
    ("particle", KO, "plain", "The rank.", "랭크을(를) 만듭니다."),
    ("length", KO, "plain", "It waits until all the others have arrived there.", "기다립니다."),
    ("length", ZH, "plain", "barrier", "屏障会让所有进程都停下来等待其他的进程到达"),
    ("length", KO, "plain", "A text", "-"),
    ("glossary-term", KO, "plain", "The tensor.", "tensor입니다."),
    ("glossary-term", ZH, "plain", "The Python code.", "PYTHON 代码。"),
    ("glossary-term", KO, "plain", "The rank.", "순위."),
    ("glossary-term", ZH, "plain", "Two process groups.", "两个进程。"),
    ("particle", KO, "rest", "Call ``wait_all``.", "``wait_all``\\ 를 호출합니다."),
    ("particle", KO, "myst", "The `store` there.", "그 `store`은 있습니다."),
    ("particle", KO, "myst", "With `Python` it is.", "`Python`로 합니다."),
    ("particle", KO, "plain", "The NCCL there.", "거기의 NCCL는 있습니다."),
    ("particle", KO, "plain", "To rank 3.", "랭크 3를 봅니다."),
    ("particle", KO, "plain", "To rank 10.", "랭크 10는 봅니다."),
    ("particle", KO, "plain", "The rank (of it).", "랭크(순위 값)이 있습니다."),
    ("particle", KO, "plain", "The group waits.", "그룹가 기다립니다."),
    ("particle", KO, "plain", "To the group.", "그룹로 보냅니다."),
    ("punctuation", KO, "plain", "It waits…", "기다립니다..."),
    ("character", "de", "plain", "a text", "ein \u0301Text"),
    ("character", "pt_BR", "plain", "a text", "um texto lo\u0301gico"),
    ("number", "pt_BR", "plain", "It takes 0.5 s.", "Leva 0,6 s."),
    *(("english", x, "plain", "Message passing", "Message passing") for x in (KO, ZH, "ja", "ru")),
    *(("english", x, "plain", "memory", "memory") for x in (KO, ZH, "ja")),
    ("english", KO, "plain", "Rows of a table.", "Rows of the Table"),
    ("english", KO, "myst", "The `first` text", "The `first` text"),
    ("english", KO, "rest", "Rows of ``torch.profiler``", "Rows of ``torch.profiler``"),
    ("english", KO, "myst", "[The guide](guide.md)", "[The guide](guide.md)"),
    ("english", ZH, "plain", "gloo's deadline", "gloo's deadline"),
    ("english", "de", "plain", "Message passing", "Message passing"),
]

GOOD = [
    ("de", "rest", "Call ``wait`` in *one* rank.", "*Ein* Rang ruft ``wait`` auf; in Ruhe."),
    ("de", "plain", "Name", "Name"),
    *(
        (KO, "plain", x, x)
        for x in ("NCCL 2.30", "64 KiB", "SUM, PRODUCT", "Python", "gloo, store")
    ),
    (KO, "plain", "%(what)s: %(status)s", "%(what)s: %(status)s"),
    (KO, "plain", "Intel GPUs", "Intel GPU"),
    (KO, "myst", "[RPC](rpc.rst)", "[RPC](rpc.rst)"),
    (KO, "myst", "DTensor, `parallelize_module`", "DTensor, `parallelize_module`"),
    (KO, "myst", "{ref}`a/error-messages#calls`", "{ref}`a/error-messages#calls`"),
    (KO, "rest", ":doc:`waiting`, :doc:`futures`", ":doc:`waiting`, :doc:`futures`"),
    (ZH, "plain", "rank {}", "rank {}"),
    (ZH, "plain", "at_once()", "at_once()"),
    (KO, "rest", "It has :count:`x` checks.", "검사가 :count:`x`\\ 개 있습니다."),
    (ZH, "myst", "It has {count}`x` checks.", "它有 {count}`x` 项检查。"),
    ("ja", "myst", "Call `wait` three times.", "`wait` を三回呼び出します。"),
    (KO, "rest", "``wait`` *in* :doc:`a`.", ":doc:`a`\\ *에서* ``wait``\\ 합니다."),
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
    (ZH, "myst", "One forward, one backward (1F1B).", "一次前向，一次反向（1F1B）。"),
    (KO, "plain", "All of it, result and effect.", "모든 것, 각각 결과와 효과를 봅니다."),
    (KO, "rest", "``a`` saves 10 s.", "``a``\\ 는 10초를 줄입니다."),
    (KO, "rest", "``wait`` and ``C++`` are here.", "``wait``\\ 와 ``C++``\\ 이 있습니다."),
    (KO, "plain", "The rank (rank) waits.", "랭크(rank)가 기다립니다."),
    (KO, "plain", "The path: who is an expert?", "경로: 누군가 전문가인가"),
    ("en_GB", "plain", "The ranks wait for each other.", "The ranks wait for each other."),
    ("pt_BR", "plain", "It takes 0.5 s with 2.13.", "Leva 0,5 s com 2.13."),
    ("pt_BR", "plain", "Call them there.", "Vamos chamá-las ali."),
    ("ar", "plain", "The rank waits.", "الرُّتبة تنتظر."),
    ("fa", "plain", "The rank waits.", "رتبه منتظر می\u200cماند."),
    ("th", "plain", "The rank waits.", "แรงก์กำลังรอ"),
    ("hi", "plain", "The rank waits.", "रैंक प्रतीक्षा करता है।"),
    (KO, "plain", "The autumn of a village", "마을의 가을은 나은 때"),
    (ZH, "plain", "gallery/tutorial/workers/a.py", "gallery/tutorial/workers/a.py"),
]


@pytest.mark.parametrize("rule, language, format, source, translation", FAULTS)
def test_a_fault_is_found(rule, language, format, source, translation):
    assert rule in apply_rules(Message(source, translation, language, format))


@pytest.mark.parametrize("language, format, source, translation", GOOD)
def test_a_good_translation_passes(language, format, source, translation):
    assert apply_rules(Message(source, translation, language, format)) == {}


def test_a_term_may_still_lack_a_word_of_a_new_language(monkeypatch, tmp_path):
    glossary = tmp_path / "glossary.csv"
    glossary.write_text("term,ja,avoid_ja,note\nrank,ランク,,\nstore,,,first use bilingual\n")
    monkeypatch.setattr(terms, "GLOSSARY", glossary)
    monkeypatch.setattr(terms, "glossary", terms.glossary.__wrapped__)
    found = apply_rules(Message("The rank has a store.", "順位はストアを持つ。", "ja", "plain"))
    assert found == {"glossary-term": ["lacks 'ランク', the glossary's word for 'rank'"]}
