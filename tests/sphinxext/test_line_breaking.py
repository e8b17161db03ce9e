from sphinxext.text.line_breaking import break_lines


def test_a_line_breaks_between_chinese_words():
    words = ["引擎", "调用", "回调，", "释放", "rank", "的", "共享内存。"]
    for width in range(10, 40):
        lines = break_lines("".join(words), width, narrow=1, wide=2)
        ends = {sum(map(len, words[:n])) for n in range(1, len(words) + 1)}
        assert {sum(map(len, lines[:n])) for n in range(1, len(lines) + 1)} <= ends
        assert max(map(len, lines)) <= width
