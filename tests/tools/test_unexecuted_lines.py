"""The record of the lines that no sample executes finds them again when others move them."""

import json

import pytest

from tools.pages import unexecuted_lines

CODE = "a = 1\nif a:\n    b = 2\n    c = 3\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(unexecuted_lines, "ROOT", tmp_path)
    monkeypatch.setattr(unexecuted_lines, "UNEXECUTED_LINES", tmp_path / "record.json")
    (tmp_path / "code.py").write_text(CODE)
    unexecuted_lines.write(tmp_path / "record.json", {"code.py": {1, 4}, "other.py": ()})
    return tmp_path


def test_lines_are_found_again_where_others_moved_them(project):
    assert unexecuted_lines.numbers() == {"code.py": [1, 4]}
    (project / "code.py").write_text("x = 0\n\n\n" + CODE)
    assert unexecuted_lines.numbers() == {"code.py": [4, 7]}
    (project / "code.py").write_text(CODE.replace("b = 2", "b = 5"))
    assert unexecuted_lines.numbers() == {"code.py": [1]}, "other code stands around it"


def test_a_file_without_such_a_line_or_that_is_gone_has_no_numbers(project):
    assert list(json.loads((project / "record.json").read_text())) == ["code.py"]
    (project / "code.py").unlink()
    assert unexecuted_lines.numbers() == {}
