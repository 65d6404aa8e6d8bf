"""The promises of siftlog, each proved against one simulated dialect.

A promise runs the shipped command as a process against the dialect over loopback and
compares what siftlog recorded with the endpoint's own ledger. It returns the figure for
the table and raises `AssertionError` where it does not hold.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from runner.simulate.billing import LedgerLine
from runner.simulate.dialect import RESPONSES
from runner.simulate.options import RequestOutcome
from runner.simulate.server import Simulated
from store.task import PICO_PER_USD, pico
from tests.conformance.commands import finish, run, runs_on, start
from tests.conformance.logs import Calls, bytes_of, calls_in
from tests.dialects import dialect
from tests.gates import Gate, gated
from tests.processes import status

JOB: Final = "paper-investigation"
MODEL: Final = "openai/sim-1"
KEY: Final = "sk-loopback-0123456789abcdefghij"
PAPERS: Final = 4
PRICES: Final = "1.25,10,0.125,1.5,2.5"
"""In, out, cached, written, written for an hour; dollars a million tokens."""

CONCURRENCY: Final = 8

RUNGS: Final[Mapping[str, str]] = {
    "anthropic": "no effect",  # its OpenAI form ignores `response_format`
    "deepseek": "json_object",
    "vllm": "json_object",
    "tgi": "json_object",
}
"""What the replies of a dialect are asked for as in the end; others: "json_schema"."""


@dataclass(frozen=True)
class Case:
    """One dialect, with a folder for its runs."""

    name: str
    folder: Path

    def serve(self, **options: Any) -> AbstractContextManager[Simulated]:
        """The dialect's endpoint."""
        return dialect(self.name, job=JOB, seed=5, bill_price=PRICES, **options)

    def words(self, url: str, run_id: str, *more: str) -> tuple[str, ...]:
        """The command of a run against *url*."""
        config = self.folder / "config.toml"
        config.write_text(
            f'[models."{MODEL}"]\n'
            "usd_per_mtok_in = 1.25\nusd_per_mtok_out = 10\n"
            "usd_per_mtok_cached = 0.125\nusd_per_mtok_cache_write = 1.5\n"
        )
        api = ("--api=responses",) if self.name == "responses" else ()
        return (
            *("run", JOB, f"--config={config}", f"--run-id={run_id}"),
            *(f"--model={MODEL}", f"--base-url={url}", "--api-key-env=LOOPBACK_KEY"),
            *(f"--limit={PAPERS}", "--no-score", f"--concurrency={CONCURRENCY}"),
            *("--stop-if=off", *api, *more),
        )

    def run(self, url: str, run_id: str, *more: str) -> int:
        """Carry a run out; its exit code."""
        return self.carry_out(self.words(url, run_id, *more))

    def resume(self, run_id: str, *more: str) -> int:
        """Go on with a run; the command's exit code."""
        return self.carry_out(("resume", run_id, "--no-score", *more))

    def carry_out(self, words: tuple[str, ...]) -> int:
        """Run a command; its exit code."""
        return run(*words, cwd=self.folder, env=self.env)

    @property
    def env(self) -> dict[str, str]:
        """What the command finds in its environment."""
        return {"LOOPBACK_KEY": KEY}

    def calls(self, run_id: str) -> Calls:
        """The calls that a run's log holds."""
        folder = self.folder / "runs" / run_id
        assert folder.exists(), self.said()[-600:]
        return calls_in(folder)

    def said(self) -> str:
        """All that the commands printed."""
        files = (self.folder / name for name in ("out.txt", "err.txt"))
        return "".join(file.read_text() for file in files if file.exists())

    @cached_property
    def calm(self) -> tuple[Calls, list[LedgerLine], int]:
        """A run among mild faults, which several promises look at."""
        with self.serve(rate_429=0.03, rate_5xx=0.03, rate_drop=0.02) as endpoint:
            code = self.run(endpoint.base_url, "calm")
            return self.calls("calm"), endpoint.ledger.lines, code


def dollars(pico_usd: int) -> str:
    """An exact sum."""
    return f"${pico_usd / PICO_PER_USD:.6f}"


def _billed_pico(line: LedgerLine) -> int:
    return pico(float(line.cost_usd))


def answered(case: Case) -> str:
    """Every call is answered in the end."""
    calls, _, code = case.calm
    stands = status(case.folder, "calm")["tasks"]
    assert code == 0, case.said()[-600:]
    assert stands["open"] == stands["failed"] == 0, stands
    assert stands["completed"] == len(calls.tasks_answered) > CONCURRENCY, stands
    return f"{stands['completed']} of {stands['planned']}"


def billed_is_shown(case: Case) -> str:
    """Each answer costs what the provider bills for it; so do their sums."""
    calls, lines, _ = case.calm
    received = [line for line in lines if line.outcome is RequestOutcome.ANSWERED]
    received = [line for line in received if line.finish]
    told = sum(_billed_pico(line) for line in received if line.tells_usage)
    bill = sum(map(_billed_pico, lines))
    assert calls.cost_pico == told, f"{dollars(calls.cost_pico)} for {dollars(told)}"
    assert bill <= calls.cost_pico + calls.possible_pico, "billed more than possible"
    shown = status(case.folder, "calm")
    assert pico(shown["cost_usd"]) == calls.cost_pico
    told_tokens = [line for line in received if line.tells_usage]
    assert sum(a.tokens_in or 0 for a in calls.answered) == sum(
        line.tokens_in for line in told_tokens
    )
    assert sum(a.tokens_out or 0 for a in calls.answered) == sum(
        line.tokens_out for line in told_tokens
    )
    unknown = len(received) - len(told_tokens)
    return f"{dollars(told)}" + (f", {unknown} without usage" if unknown else "")


def budget_is_kept(case: Case) -> str:
    """The provider's bill stays within the budget, which ends the run."""
    _, lines, _ = case.calm
    whole = sum(map(_billed_pico, lines)) / PICO_PER_USD
    with case.serve(rate_drop=0.05, rate_malformed=0.05) as endpoint:
        cap = round(whole / 2, 6)
        code = case.run(endpoint.base_url, "capped", f"--budget={cap}")
        bill = endpoint.ledger.bill().cost_usd
    assert code == 4, f"exit {code}: {case.said()[-600:]}"
    assert bill <= cap, f"${bill} of ${cap}"
    return f"${bill:.4f} of ${cap:.4f}"


def limits_are_kept(case: Case) -> str:
    """A limit that a person sets, or that headers tell, is not passed by siftlog."""
    with case.serve(rps=20.0) as endpoint:
        assert case.run(endpoint.base_url, "set", "--rpm=1200") == 0, case.said()
        by_hand = _limited(endpoint)
    with case.serve(rps=20.0, limit_headers=True) as endpoint:
        assert case.run(endpoint.base_url, "told") == 0, case.said()
        by_headers = _limited(endpoint)
    headers = [set(answer.headers or {}) for answer in case.calls("told").answered]
    is_told = any("limit" in name for names in headers for name in names)
    assert by_hand == 0, f"{by_hand} calls were refused at the limit that was set"
    # before the first reply nothing is told, and the crowd is small
    if is_told:
        assert by_headers <= CONCURRENCY, f"{by_headers} calls were refused"
    return f"{by_hand} set, {by_headers} {'told' if is_told else 'not told'}"


def _limited(endpoint: Simulated) -> int:
    outcomes = Counter(line.outcome for line in endpoint.ledger.lines)
    return outcomes[RequestOutcome.RATE_LIMITED]


def ends_are_counted(case: Case) -> str:
    """Truncated and filtered replies are counted as the provider counts them."""
    with case.serve(rate_refuse=0.15) as endpoint:
        case.run(endpoint.base_url, "ends")
        lines = endpoint.ledger.lines
    calls = case.calls("ends")
    theirs = Counter(line.finish for line in lines if line.status == 200)
    ours = Counter(answer.finish_reason for answer in calls.answered)
    declined = ours["refusal"] + ours["content_filter"]
    if not ours["unknown"]:
        assert ours["length"] == theirs["length"], (ours, theirs)
        assert declined == theirs["content_filter"], (ours, theirs)
    filtered = sum(f.error == "ContentFiltered" for f in calls.failed)
    refused = [line for line in lines if line.outcome is RequestOutcome.REFUSED]
    assert filtered <= len(refused)
    assert declined + filtered > 0, (
        ours,
        theirs,
        Counter(f.error for f in calls.failed),
    )
    shown = json.dumps(status(case.folder, "ends"))
    assert "truncated" in shown
    return f"{theirs['length']} truncated, {declined + filtered} refused"


def settled_at_once(case: Case) -> str:
    """A parameter that is refused costs one call in the run, and is remembered."""
    calls, lines, _ = case.calm
    refused = [line for line in lines if line.outcome is RequestOutcome.REFUSED]
    facts = [fact for fact in calls.refused if fact.how == "refused"]
    assert len(refused) == len(facts), (
        len(refused),
        [(fact.name, fact.words) for fact in facts],
    )
    names = [fact.name for fact in facts]
    assert len(set(zip(names, (f.instead for f in facts), strict=True))) == len(names)
    return f"{len(refused)} calls: {', '.join(names) or '-'}"


def best_rung(case: Case) -> str:
    """Structured output is asked for in the best form that the endpoint has."""
    calls, _, _ = case.calm
    rung = "json_schema"
    for fact in calls.refused:
        if fact.name == "response_format":
            rung = "no effect" if fact.how == "ignored" else fact.instead or "words"
    expected = RUNGS.get(case.name, "json_schema")
    if case.name != "hostile":
        assert rung == expected, [(f.name, f.how, f.words) for f in calls.refused]
    return rung


def nothing_is_repeated(case: Case) -> str:
    """After `kill -9` and resume no recorded answer is asked for again."""
    kills = (7, 8, 6)  # fewer calls than tasks, so that none of them ends the run
    unknown = 0
    with (
        case.serve(latency_ms=30) as endpoint,
        gated(endpoint.base_url, passes=0) as gate,
    ):
        words = case.words(gate.url, "killed")
        known: dict[int, int] = {}
        for sent in kills:
            _kill(case, words, gate, sent)
            calls = case.calls("killed")
            _unrepeated(known, calls)
            known = {task: calls.attempts[task] for task in calls.tasks_answered}
            words = ("resume", "killed", "--no-score")
        gate.open()
        code = run(*words, cwd=case.folder, env=case.env)
        assert code == 0, case.said()[-600:]
        calls = case.calls("killed")
        _unrepeated(known, calls)
        served = len(endpoint.ledger.lines)
        unknown = calls.started - len(calls.answered) - len(calls.failed)
    assert unknown <= CONCURRENCY * len(kills), unknown
    assert served <= calls.started
    return f"{len(kills)} kills, {unknown} unknown"


def _kill(case: Case, words: tuple[str, ...], gate: Gate, sent: int) -> None:
    gate.let(sent)
    process = start(*words, cwd=case.folder, env=case.env)
    while not gate.is_keeping:
        assert runs_on(process, 0.01), case.said()[-600:]
    process.kill()
    finish(process)


def _unrepeated(known: Mapping[int, int], calls: Calls) -> None:
    again = [task for task, count in known.items() if calls.attempts[task] != count]
    assert not again, f"answered tasks {again} were asked again"


def served_is_recorded(case: Case) -> str:
    """What the provider says of who answered stands in each answer."""
    calls, lines, _ = case.calm
    by_id = {line.request_id: line for line in lines if line.request_id is not None}
    compared = 0
    models = set()
    for answer in calls.answered:
        served = answer.served
        assert served is not None, "an answer without any origin"
        models.add(served.model)
        line = by_id.get(served.request_id)
        if line is not None:
            compared += 1
            if line.path != RESPONSES:  # that form has no field for it
                assert served.fingerprint == line.fingerprint, (served, line)
            assert served.provider == line.provider, (served, line)
    theirs = {line.served_model for line in lines if line.finish}
    assert models <= theirs | {MODEL.partition("/")[2]}, (models, theirs)
    return f"{len(models)} names, {compared} matched by id"


def keys_are_nowhere(case: Case) -> str:
    """The key stands in no file, no body and no output."""
    count = 0
    for name, data in bytes_of(case.folder):
        count += 1
        assert KEY.encode() not in data, f"the key stands in {name}"
    assert KEY not in case.said()
    return f"{count} files and bodies"


PROMISES: Final[Mapping[str, Callable[[Case], str]]] = {
    "answered": answered,
    "billed = shown": billed_is_shown,
    "budget": budget_is_kept,
    "429s at a limit": limits_are_kept,
    "ends counted": ends_are_counted,
    "parameters": settled_at_once,
    "structured": best_rung,
    "resume after kill -9": nothing_is_repeated,
    "served model": served_is_recorded,
    "keys nowhere": keys_are_nowhere,
}
