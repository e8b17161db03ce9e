"""The report, as JSON for programs and as text for people."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from c10d_conformance.registry import CAPABILITIES, Check
from c10d_conformance.settings import Settings
from c10d_conformance.verdicts import (
    ABSENT,
    FAILURES,
    RAISED,
    REFUSED,
    RIGHT,
    VERDICTS,
    Outcome,
    stable,
    worst,
)

FORMAT = 1
_TEXT_CASES = 3  # failing cases of a check in the text
_JSON_CASES = 20  # failing cases of a check in the JSON
_MANY_CHECKS = 6  # with more failing checks, the text has one case of each

Json = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """The outcomes of one check with one world size."""

    check: Check
    size: int
    outcomes: list[Outcome]
    seconds: float
    skipped: str = ""


def content(settings: Settings, results: list[Result], seconds: float) -> Json:
    """Return the report; only the fields `seconds` differ from run to run."""
    entries = [entry(result) for result in results]
    capabilities = []
    for name, title in CAPABILITIES.items():
        mine = [x for x in entries if x["capability"] == name and not x["skipped"]]
        if mine:
            counts = _total(mine)
            row = {"id": name, "title": title, "verdict": worst(counts)}
            capabilities.append(row | {"counts": {v: counts[v] for v in VERDICTS}})
    total = _total(capabilities)
    failed = any(total[verdict] for verdict in FAILURES)
    right, selected = _right_cases(entries), {item["id"] for item in entries}
    broken_claims = [
        {"check": check, "claimed": number, "right": right[check]}
        for check, number in (settings.claims or {}).items()
        if check in selected and right[check] < number
    ]
    return {
        "format": FORMAT,
        "backend": settings.backend,
        "device": settings.device,
        "torch": torch.__version__,
        "ranks": list(settings.ranks),
        "hosts": settings.hosts,
        "quick": settings.quick,
        "seed": settings.seed,
        "examples": settings.examples,
        "status": 1 if failed or broken_claims or not total[RIGHT] else 0,
        "counts": {verdict: total[verdict] for verdict in VERDICTS},
        "capabilities": capabilities,
        "unkept_claims": broken_claims,
        "checks": entries,
        "seconds": round(seconds, 1),
    }


def _total(rows: list[Json]) -> Counter[str]:
    """Return the sum of the counts of rows."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row["counts"])
    return total


def _right_cases(entries: list[Json]) -> Counter[str]:
    """Count the right cases of each check, with all world sizes together: none if one fails."""
    right: Counter[str] = Counter()
    failing = set()
    for item in entries:
        right[item["id"]] += item["counts"][RIGHT]
        if item["verdict"] in FAILURES:
            failing.add(item["id"])
    return Counter({check: number for check, number in right.items() if check not in failing})


def claims_text(before: dict[str, int], report: Json) -> str:
    """Return the lines of a file of claims: those of before, and those of the checks that ran."""
    right = _right_cases(report["checks"])
    claims = before | {item["id"]: right[item["id"]] for item in report["checks"]}
    return "".join(f"{check}: {number}\n" for check, number in claims.items() if number)


def unclaimed_text(report: Json) -> str:
    """Return how many refused cases and failing checks the claims of a run leave out."""
    refused = sum(item["counts"][REFUSED] for item in report["checks"])
    failing = {item["id"] for item in report["checks"] if item["verdict"] in FAILURES}
    return f"not claimed: {refused} refused cases, {len(failing)} checks that fail"


def entry(result: Result) -> Json:
    """Return the part of the report on one check."""
    counts = Counter(outcome.verdict for outcome in result.outcomes)
    refusals = Counter(_short(x.text) for x in result.outcomes if x.verdict == REFUSED)
    failing = [outcome for outcome in result.outcomes if outcome.verdict in FAILURES]
    return {
        "id": result.check.id,
        "ranks": result.size,
        "capability": result.check.capability,
        "promise": result.check.promise,
        "source": result.check.source,
        "skipped": result.skipped,
        "verdict": worst(counts),
        "counts": {verdict: counts[verdict] for verdict in VERDICTS},
        "refusals": [{"text": text, "cases": cases} for text, cases in sorted(refusals.items())],
        "failing": [outcome.name for outcome in failing],
        "failures": [_failure(outcome) for outcome in failing[:_JSON_CASES]],
        "seconds": round(result.seconds, 1),
    }


def _failure(outcome: Outcome) -> Json:
    ranks = []
    for status in outcome.statuses:
        kind = "raises" if status.kind == RAISED else status.kind
        ranks.append(kind + (f": {_short(status.text)}" if status.text else ""))
    trace = next((status.trace for status in outcome.statuses if status.trace), "")
    return {
        "case": outcome.name,
        "verdict": outcome.verdict,
        "text": stable(outcome.text),
        "ranks": ranks,
        "trace": stable(_own_frames(trace)),
        "stacks": stable(outcome.stacks),
        "program": outcome.program,
    }


def _own_frames(trace: str) -> str:
    """Return a traceback without the frames of the suite itself and of PyTorch's wrappers."""
    lines, keep = [], True
    for line in trace.splitlines():
        if line.startswith('  File "'):
            keep = not line.endswith(("in case", "in wrapper", "in _serve"))
        elif not line.startswith("   "):
            keep = True
        if keep:
            lines.append(line)
    return "\n".join(lines)


def _short(text: str) -> str:
    lines = [line for line in stable(text).splitlines() if line.strip()]
    return lines[0][:300] if lines else "(an exception without text)"


def write(report: Json, path: str | Path) -> None:
    """Write the report as JSON."""
    Path(path).write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


def failures_text(entries: list[Json]) -> str:
    """Return the promise and some cases of each failing check."""
    lines = []
    limit = _TEXT_CASES if len(entries) <= _MANY_CHECKS else 1
    for item in entries:
        lines.append(f"{item['id']} ({item['ranks']} ranks)")
        lines.append(f"  promise: {item['promise']}")
        lines.append(f"  made by: {item['source']}")
        for failure in item["failures"][:limit]:
            lines += _failure_lines(failure)
        more = item["failing"][limit:]
        if more:
            lines.append(f"  … and {len(more)} more cases: " + "; ".join(more[:4]))
        lines.append("")
    return "\n".join(lines)


def _failure_lines(failure: Json) -> list[str]:
    lines = [f"  {failure['verdict'].upper()}: {failure['case']}"]
    if failure["text"]:
        lines += ["    " + line for line in failure["text"].splitlines()[:6]]
    if len(set(failure["ranks"])) > 1 or not failure["text"]:
        for rank, text in enumerate(failure["ranks"]):
            if text != ABSENT:
                lines.append(f"    rank {rank}: {text}")
    for part in (failure["trace"], failure["stacks"]):
        lines += ["    | " + line for line in part.splitlines()]
    if failure["program"]:
        # Not indented, so that one can paste it.
        lines += ["    the program:", "", *failure["program"].splitlines(), ""]
    return lines


def summary(report: Json, verbose: bool) -> str:
    """Return the end of the output: failures, a table of capabilities, one line of numbers."""
    lines = [""]
    failing = [item for item in report["checks"] if item["verdict"] in FAILURES]
    if failing:
        lines += ["Failures", "--------", failures_text(failing)]
    width = max((len(row["title"]) for row in report["capabilities"]), default=0)
    head = "".join(f"{verdict:>9}" for verdict in VERDICTS)
    lines.append(f"{'':{width}}{head}")
    for row in report["capabilities"]:
        numbers = "".join(f"{row['counts'][verdict] or '':>9}" for verdict in VERDICTS)
        mark = "  <- FAILS" if row["verdict"] in FAILURES else ""
        mark = "  (all refused)" if row["verdict"] == REFUSED else mark
        lines.append(f"{row['title']:{width}}{numbers}{mark}".rstrip())
    refusals: Counter[str] = Counter()
    for item in report["checks"]:
        for refusal in item["refusals"]:
            refusals[refusal["text"]] += refusal["cases"]
    if refusals:
        lines += ["", "Refusals, the most frequent first:"]
        frequent = refusals.most_common(None if verbose else 6)
        lines += [f"{count:5}  {text[:140]}" for text, count in frequent]
        if len(frequent) < len(refusals):
            lines.append(f"       … and {len(refusals) - len(frequent)} other texts (--verbose)")
    for item in report["checks"]:
        if item["skipped"]:
            lines.append(f"{item['skipped']}: {item['id']} ({item['ranks']} ranks)")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report["counts"].items())
    ranks = ",".join(map(str, report["ranks"])) + " ranks"
    if report["hosts"] > 1:
        ranks += f" on {report['hosts']} hosts"
    lines += [
        "",
        f"{report['backend']} on {report['device']}, PyTorch {report['torch']}, {ranks}: "
        f"{counts}; {len(failing)} of {len(report['checks'])} checks fail "
        f"({report['seconds']:.0f} s)",
    ]
    for claim in report["unkept_claims"]:
        fails = any(item["id"] == claim["check"] for item in failing)
        found = "but one fails" if fails else f"{claim['right']} right"
        lines.append(f"{claim['check']}: {claim['claimed']} cases claimed, {found}")
    if not report["counts"][RIGHT]:
        lines.append("Not one case was right.")
    return "\n".join(lines) + "\n"
