"""Processes of ranks: started by fork, kept between checks, replaced when something breaks."""

import contextlib
import ctypes
import importlib
import multiprocessing
import multiprocessing.connection
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from c10d_conformance import stacks
from c10d_conformance.board import Board
from c10d_conformance.hosts import ENVIRONMENT, Host
from c10d_conformance.rank import Rank
from c10d_conformance.registry import CHECKS, Check
from c10d_conformance.search import Search
from c10d_conformance.settings import POLL, Settings
from c10d_conformance.verdicts import (
    CRASH,
    HANG,
    INIT,
    RAISED,
    REFUSED,
    RIGHT,
    UNREACHED,
    WRONG,
    CaseReport,
    Outcome,
    Status,
    judge,
)

_FORK = multiprocessing.get_context("fork")
STARTS = 4  # how often a check begins again, behind the case that hung or crashed
LEAST = 8.0  # seconds that a check with a group of its own may make no progress
HANGS = 2  # after so many hangs of one check, its other cases are not reached


@dataclass(frozen=True)
class TeamResult:
    """The reports of a team on one check, and the case that a crash or a hang has result."""

    logs: list[dict[int, CaseReport]]  # of each rank
    verdict: str | None = None  # CRASH or HANG; None if all ranks came back
    statuses: tuple[Status, ...] = ()  # of the ranks in the case that has no end
    stacks: str = ""
    name: str = ""  # of that case


class Team:
    """Ranks that run one check after another."""

    def __init__(
        self,
        settings: Settings,
        hosts: Sequence[Host],
        size: int,
        group: bool,
        environment: dict[str, str],
    ) -> None:
        self.size = size
        self.group = group
        self.broken = False
        self._settings = settings
        self._folder = Path(tempfile.mkdtemp(prefix="c10d-"))
        self._board = Board(size)
        self._pipes: list[Connection] = []
        self._processes: list[multiprocessing.context.ForkProcess] = []
        address = hosts[0].address if hosts else "127.0.0.1"
        for rank in range(size):
            ours, theirs = _FORK.Pipe()
            place = (rank, size, settings, address, self._board)
            process = _FORK.Process(
                target=_serve, args=(*place, theirs, self._folder, environment), daemon=True
            )
            with warnings.catch_warnings():
                # Python warns if a library of the parent has threads; no rank uses those.
                warnings.simplefilter("ignore", DeprecationWarning)
                if hosts:
                    hosts[_host(rank, size, settings)].call(process.start)
                else:
                    process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def run(self, check: Check, limit: float, skip: int, example: Any, poll: float) -> TeamResult:
        """Run one check in all ranks, without its first `skip` cases, or with a drawn input.

        It hangs if no rank makes progress for `limit` seconds.
        """
        for rank in range(self.size):
            (self._folder / f"log-{rank}").write_text("")
        self._board.clear()
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.send((check.id, skip, example, poll))
        if not check.group:  # these wait for timeouts of their own
            limit = max(limit, LEAST)
        verdict = self._watch(limit * check.patience)
        if not verdict:
            return TeamResult(self._logs())
        self.broken = True
        traces = self._stop(verdict)
        logs = self._logs()
        statuses, name = self._blame(verdict, logs, skip)
        return TeamResult(logs, verdict, tuple(statuses), traces, name)

    def close(self) -> None:
        """End all ranks and remove their files."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        for pipe in self._pipes:
            pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _watch(self, limit: float) -> str | None:
        """Return None when all ranks have answered, else CRASH or HANG."""
        waiting = dict(zip(self._pipes, self._processes, strict=True))
        last, since = None, time.monotonic()
        while waiting:
            ends = [process.sentinel for process in waiting.values()]
            ready = multiprocessing.connection.wait([*waiting, *ends], timeout=0.1)
            for pipe in [pipe for pipe in waiting if pipe in ready]:
                try:
                    self.broken |= not pipe.recv()
                    del waiting[pipe]
                except (EOFError, OSError):
                    waiting[pipe].join(5)
            for pipe, process in list(waiting.items()):
                if not process.is_alive():
                    if not self._board.has_left(self._processes.index(process)):
                        return CRASH
                    self.broken = True
                    del waiting[pipe]
            now = self._board.snapshot(), len(waiting)
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > limit:
                return HANG
        return None

    def _stop(self, verdict: str) -> str:
        """Make the ranks that are left print their stacks, and return those that matter."""
        texts = []
        if verdict == HANG:
            living = [process for process in self._processes if process.is_alive()]
            for process in living:
                if process.pid is not None:
                    os.kill(process.pid, stacks.SIGNAL)
            deadline = time.monotonic() + 5
            for process in living:
                process.join(max(0, deadline - time.monotonic()))
        for rank, process in enumerate(self._processes):
            output = self._output(rank)
            text = stacks.shorten(output)
            if text:
                texts.append(f"stacks of rank {rank}:\n{text}")
            elif verdict == CRASH and not process.is_alive() and output.strip():
                tail = "\n".join(output.strip().splitlines()[-15:])
                texts.append(f"output of rank {rank}:\n{tail}")
        return "\n".join(texts)

    def _output(self, rank: int) -> str:
        return (self._folder / f"output-{rank}").read_text(errors="replace")

    def _logs(self) -> list[dict[int, CaseReport]]:
        """Return the reports of each rank, by the index of the case."""
        paths = (self._folder / f"log-{rank}" for rank in range(self.size))
        return [CaseReport.read_all(path.read_text()) for path in paths]

    def _blame(
        self, verdict: str, logs: list[dict[int, CaseReport]], skip: int
    ) -> tuple[list[Status], str]:
        """Return the status of each rank in the first case that some rank did not end."""
        first = min(max(log, default=skip) for log in logs) + 1
        statuses, name = [], ""
        for rank, log in enumerate(logs):
            process = self._processes[rank]
            if first in log:
                name = log[first].name
                statuses.append(log[first].status)
                continue
            begun, ended, _ = self._board.numbers(rank)
            name = name or (self._board.name(rank) if begun > ended else "")
            if verdict == CRASH and not process.is_alive():
                statuses.append(Status(CRASH, exit_text(process.exitcode)))
            elif verdict == HANG:
                where = "does not return" if begun > ended else "is not in any case"
                statuses.append(Status(HANG, where))
            else:
                statuses.append(Status(UNREACHED, "was still running"))
        return statuses, name


def exit_text(code: int | None) -> str:
    if code is not None and code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"ended with exit status {code}"


class Pool:
    """The teams of a session: one standing team for each world size."""

    def __init__(self, settings: Settings, hosts: Sequence[Host] = ()) -> None:
        self._settings = settings
        self._hosts = hosts
        self._standing: dict[int, Team] = {}

    def timed(self, check: Check, size: int) -> tuple[list[Outcome], float]:
        """Return the outcomes of a check with `size` ranks, and its seconds."""
        start = time.monotonic()
        return self.run(check, size), time.monotonic() - start

    def run(self, check: Check, size: int) -> list[Outcome]:
        """Run a check with `size` ranks and return the outcomes of its cases."""
        if check.examples:
            strategy = check.examples(size)

            def run(example: Any, limit: float, poll: float) -> Outcome:
                return self._run(check, size, limit, poll, example)[0]

            return Search(self._settings, strategy, run).outcomes()
        return self._run(check, size, self._settings.limit)

    def _run(
        self, check: Check, size: int, limit: float, poll: float = POLL, example: Any = None
    ) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}
        skip, hangs = 0, 0
        for _ in range(STARTS):
            team = self._team(check, size)
            try:
                result = team.run(check, limit, skip, example, poll)
            except BaseException:  # as of Ctrl-C
                self._discard(team)
                raise
            count = max(max(log, default=skip) for log in result.logs)
            complete = min(max(log, default=skip) for log in result.logs)
            for index in range(skip + 1, (complete if result.verdict else count) + 1):
                outcomes[index] = self._outcome(index, result)
            if not check.group or team.broken or self._failed(outcomes, skip):
                self._discard(team)
            if not result.verdict:
                break
            failing = complete + 1
            operation = next((x[failing].operation for x in result.logs if failing in x), "")
            outcome = judge(
                result.name or check.id, list(result.statuses), self._settings.backend, operation
            )
            outcome.stacks = result.stacks
            outcomes[failing] = outcome
            hangs += result.verdict == HANG
            skip = failing
            if hangs == HANGS or not result.name or example is not None:
                break
        return [outcomes[index] for index in sorted(outcomes)]

    def close(self) -> None:
        """End all ranks."""
        for team in list(self._standing.values()):
            team.close()
        self._standing.clear()

    def _team(self, check: Check, size: int) -> Team:
        if not check.group:
            return Team(self._settings, self._hosts, size, False, check.environment)
        if size not in self._standing:
            self._standing[size] = Team(self._settings, self._hosts, size, True, {})
        return self._standing[size]

    def _discard(self, team: Team) -> None:
        team.close()
        if team.group:
            self._standing.pop(team.size, None)

    def _failed(self, outcomes: dict[int, Outcome], skip: int) -> bool:
        new = [outcome for index, outcome in outcomes.items() if index > skip]
        return any(outcome.verdict not in (RIGHT, REFUSED) for outcome in new)

    def _outcome(self, index: int, result: TeamResult) -> Outcome:
        reports = [log.get(index) for log in result.logs]
        first = next(report for report in reports if report)
        missing = Status(UNREACHED, "did not come to this case")
        statuses = [report.status if report else missing for report in reports]
        return judge(first.name, statuses, self._settings.backend, first.operation)


def import_backend(settings: Settings) -> None:
    """Import the module that registers the backend, or let PyTorch find its entry point."""
    if settings.module:
        importlib.import_module(settings.module)
    ensure = getattr(dist.Backend, "_ensure_backend_registered", None)
    if ensure:
        ensure(settings.backend)


def _serve(
    rank: int,
    size: int,
    settings: Settings,
    address: str,
    board: Board,
    pipe: Connection,
    folder: Path,
    environment: dict[str, str],
) -> None:
    """Run the checks that the suite sends, in a new process."""
    _die_with_parent()
    output = os.open(folder / f"output-{rank}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pool ends its ranks itself
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the server of pytest handles it
    host = _host(rank, size, settings)
    local = sum(_host(other, size, settings) == host for other in range(rank))
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(local), WORLD_SIZE=str(size))
    os.environ.update((ENVIRONMENT if settings.hosts > 1 else {}) | environment)
    stacks.announce()
    warnings.simplefilter("default")  # the filters of the caller are not those of a rank
    torch.set_num_threads(1)
    dist.set_debug_level_from_env()
    log = os.open(folder / f"log-{rank}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    context = Rank(rank, size, settings, address, board, log, str(folder))
    problem: Status | None = None
    try:
        import_backend(settings)
        context.use_device(settings.device)
    except Exception as error:
        problem = _status_of(error, RAISED)
    checks = {check.id: check for check in CHECKS}
    while True:
        name, skip, example, poll = pipe.recv()
        check = checks[name]
        context.start(check, skip, example, poll)
        if problem is None and check.group and not dist.is_initialized():
            board.begin(rank, INIT)
            try:
                context.init()
            except Exception as error:
                problem = _status_of(error, RAISED)
            board.restart(rank)
        if problem:
            CaseReport(skip + 1, INIT, INIT, problem).write(log)
        else:
            try:
                check.run(context)
            except Exception as error:
                status = _status_of(error, WRONG, "outside of any case: ")
                CaseReport(context.next_case, check.id, "", status).write(log)
        pipe.send(problem is None)


def _host(rank: int, size: int, settings: Settings) -> int:
    """Return the number of the host of a rank: ranks that follow each other share one."""
    return rank * settings.hosts // size


def _status_of(error: Exception, kind: str, place: str = "") -> Status:
    return Status(kind, f"{place}{type(error).__name__}: {error}", traceback.format_exc())


def _die_with_parent() -> None:
    """Let Linux end this process with the suite, however that ends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
