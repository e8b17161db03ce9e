"""A record counts for its inputs, and one that depends on the tools only for these tools."""

import pytest

from tools.state import records
from tools.state.digests import installed
from tools.state.records import Record


@pytest.fixture(params=[True, False], ids=["of the tools", "of itself"])
def record(request, tmp_path):
    return Record(tmp_path / "folder" / "record.json", of_tools=request.param)


def test_a_value_is_kept(record):
    assert record.load() is None
    record.save({"a": [1, "가"]})
    assert record.load() == {"a": [1, "가"]}
    assert [path.name for path in record.path.parent.iterdir()] == ["record.json"]
    record.forget()
    record.forget()
    assert record.load() is None


@pytest.mark.parametrize("damaged", [b"", b"x", b"\xff", None])
def test_a_damaged_record_is_none(record, damaged):
    record.save({"a": 1})
    whole = record.path.read_bytes()
    record.path.write_bytes(whole.replace(b"1}", b"2}") if damaged is None else damaged)
    assert record.load() is None


def test_other_tools_expire_only_what_depends_on_them(record, monkeypatch):
    record.save({"a": 1})
    monkeypatch.setattr(records, "_tools", lambda: "other tools")
    assert record.load() == (None if record.of_tools else {"a": 1})


def test_packages_that_only_tests_need_expire_nothing():
    names = {name.partition("-")[0] for name in installed()}
    assert {"sphinx", "myst_parser"} <= names and not {"ruff", "mypy"} & names


def test_what_was_made_from_what(record, tmp_path):
    outputs = [tmp_path / "one", tmp_path / "two"]
    for path in outputs:
        path.write_text("made")
    assert not record.is_made("key", outputs)
    record.note_made("key", outputs, more=1)
    assert record.is_made("key", outputs) and record.load()["more"] == 1
    assert not record.is_made("other key", outputs)
    assert not record.is_made("key", outputs[:1]), "there was another output"
    outputs[1].write_text("edited")
    assert not record.is_made("key", outputs)
    outputs[1].unlink()
    assert not record.is_made("key", outputs)
