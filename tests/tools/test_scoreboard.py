"""The recorded scoreboard of backends, and what the page says of gloo's row."""

import re
from datetime import date

import pytest
from c10d_conformance import registry

from tools import accept_scoreboard
from tools.accept_scoreboard import BACKENDS, COLUMNS, VERDICTS, committed, main
from tools.project.errors import BuildError
from tools.project.paths import GALLERY

CHECKS = {check.id for check in registry.load()}
PAGE = GALLERY / "communicate" / "test_your_backend.py"


def test_the_scoreboard_has_rows_of_its_backends():
    rows = committed()
    recorded = [backend for backend in BACKENDS if backend.name in rows]
    assert [*rows] == [backend.name for backend in recorded]
    for backend, row in zip(recorded, rows.values(), strict=True):
        assert [*row] == COLUMNS and row["command"] == " ".join(backend.command)
        assert row["version"] and date.fromisoformat(row["date"])
        counts = [row[verdict] for verdict in VERDICTS]
        if row["problem"]:
            assert backend.package and not any(counts) and not row["failing"]
        else:
            assert sum(map(int, counts)) > 100
            assert bool(row["failing"]) == any(map(int, counts[2:]))
        assert {*row["failing"].split()} <= CHECKS, "record it again: make accept-scoreboard"


def test_the_page_names_checks_that_gloo_fails():
    section = PAGE.read_text().partition("\n# Scoreboard\n")[2].partition("\n# Bug: ")[0]
    named = set(re.findall(r"``(\w+\.\w+)``", section)) - {"scoreboard.csv"}
    assert len(named) >= 5 and named <= CHECKS
    assert named <= {*committed()["gloo"]["failing"].split()}


def test_an_unknown_backend_is_one_message():
    with pytest.raises(BuildError, match="BACKEND=nothing: the scoreboard has gloo, fake"):
        main("nothing")


def test_a_backend_that_cannot_be_imported_gets_a_row(monkeypatch, tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "broken.py").write_text("raise ImportError('no symbol')\n")
    broken = accept_scoreboard.Backend("broken", "broken", package="broken==1.2")
    monkeypatch.setattr(accept_scoreboard, "BACKENDS", [broken])
    monkeypatch.setattr(accept_scoreboard, "TABLE", tmp_path / "table.csv")
    monkeypatch.setattr(accept_scoreboard, "FOLDER", tmp_path)
    monkeypatch.setattr(accept_scoreboard, "LOGS", tmp_path)
    monkeypatch.setattr(accept_scoreboard, "relative", str)
    monkeypatch.setattr(accept_scoreboard, "forget_inherited_settings", lambda: None)
    done = accept_scoreboard.Outcome(0, False, "", "")
    monkeypatch.setattr(accept_scoreboard, "install", lambda package, folder: done)
    main()
    row = committed()["broken"]
    assert row["problem"] == "--import broken fails: ImportError: no symbol"
    assert (row["version"], row["right"]) == ("1.2", "")
