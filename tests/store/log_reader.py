"""Reads a log by docs/log-format.md alone: what a program without siftlog would do.

    python tests/store/log_reader.py runs/RUN/log.db

It prints tasks by state, answers and the cost, and whether the chain holds.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

APPLICATION_ID = 0x45564C47
FORMAT = 1
HEADER = struct.Struct("<12q")
EVENT = """SELECT e.enc, e.facts, b.data
    FROM event AS e LEFT JOIN body AS b ON b.seq = e.seq WHERE e.seq = """
HERE = """(SELECT o.seq + :seq - own_seq AS here FROM origin AS o JOIN event AS n
    ON n.seq = here JOIN opening USING (epoch) JOIN merged USING (part) WHERE :log =
    lower(hex(log)) AND o.seq = (SELECT max(seq) FROM origin WHERE seq <= here))"""


@dataclass
class Task:
    """A planned task and what has become of it."""

    number: int
    stage: str
    key: str
    model: str
    replicate: int
    state: str
    unparsed: str | None = None
    reply: bytes | None = None


@dataclass
class Log:
    """All that the page lets a reader know."""

    run_id: str
    tasks: dict[int, Task] = field(default_factory=dict)
    events: int = 0
    cost_usd: float = 0.0
    possible_usd: float = 0.0
    in_flight_usd: dict[tuple[int, int], float] = field(default_factory=dict)
    unknown_kinds: Counter[str] = field(default_factory=Counter)
    is_chained: bool = True


def unpack(enc: int, data: bytes | None) -> bytes | None:
    if enc == 0 or data is None:
        return None
    if enc == 2:
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data


def adopted(
    conn: sqlite3.Connection, parent: Path, forked: dict[str, Any]
) -> bytes | None:
    """The reply that a fork took over: from its own blobs, or from its parent."""
    blob = conn.execute(
        "SELECT enc, data FROM blob WHERE sha256 = ?",
        (bytes.fromhex(forked["sha256"]),),
    ).fetchone()
    if blob is not None:
        return unpack(*blob)
    there = sqlite3.connect(f"{parent.resolve().as_uri()}?mode=ro", uri=True)
    try:
        statement = EVENT + (HERE if forked.get("log") else ":seq")  # of a split run
        enc, facts, data = there.execute(statement, forked).fetchone()
        if earlier := json.loads(facts).get("forked"):
            (first,) = there.execute("SELECT facts FROM event WHERE seq = 1").fetchone()
            run = json.loads(first)["fork"]["run"]
            return adopted(there, parent.parent.parent / run / "log.db", earlier)
        payload = unpack(enc, data)
    finally:
        there.close()
    if hashlib.sha256(payload or b"").hexdigest() != forked["sha256"]:
        raise ValueError(f"the reply of event {forked['seq']} in {parent} has changed")
    return payload


def read(path: Path) -> Log:
    conn = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        conn.execute("BEGIN")
        return _read(conn, path)
    finally:
        conn.close()


def _read(conn: sqlite3.Connection, path: Path) -> Log:
    if conn.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise ValueError("not a log of siftlog")
    run_id, config_sha256, created_us, version = conn.execute(
        "SELECT run_id, config_sha256, created_us, schema_ver FROM run"
    ).fetchone()
    if version != FORMAT:
        raise ValueError(f"format {version} is not known")
    log = Log(run_id=run_id)
    ends = dict(conn.execute("SELECT last_seq, h FROM chain ORDER BY last_seq"))
    identity = f"siftlog\0{run_id}\0{created_us}\0".encode() + config_sha256
    link = hashlib.sha256(identity).digest()
    commit = hashlib.sha256(link)
    rows = conn.execute(
        "SELECT e.seq, e.ts_us, e.epoch, e.ver, e.task, e.attempt, e.prev, e.enc, "
        "e.blen, k.name, e.facts, b.data FROM event AS e "
        "JOIN kind AS k ON k.id = e.kind LEFT JOIN body AS b ON b.seq = e.seq "
        "ORDER BY e.seq"
    )
    for *numbers, kind, facts, data in rows:
        name, stored = kind.encode(), data or b""
        present = [-1 if n is None else n for n in numbers]
        lengths = (len(name), len(facts), len(stored))
        commit.update(HEADER.pack(*present, *lengths) + name + facts + stored)
        log.events += 1
        log.is_chained &= numbers[0] == log.events
        is_whole = numbers[0] in ends
        if is_whole:
            link = ends.pop(numbers[0])
            log.is_chained &= link == commit.digest()
            commit = hashlib.sha256(link)
        fields = json.loads(facts)
        if numbers[0] == 1:
            parent = path.parent.parent / (fields.get("fork") or {}).get("run", "")
        payload = unpack(numbers[7], data)
        if fields.get("forked"):
            payload = adopted(conn, parent / "log.db", fields["forked"])
        _apply(log, kind, fields, payload)
    log.is_chained &= not ends and is_whole
    return log


def _apply(  # noqa: C901, PLR0912 - an arm a kind
    log: Log, kind: str, facts: dict[str, Any], payload: bytes | None
) -> None:
    log.possible_usd += facts.get("possible_usd") or 0.0
    of_one = log.tasks.get(facts.get("task", 0))
    sent = (facts.get("task", 0), facts.get("attempt", 0))
    if kind == "attempt_started":
        log.in_flight_usd[sent] = facts.get("worst_usd") or 0.0
    elif kind in ("attempt_answered", "attempt_failed"):
        log.in_flight_usd.pop(sent, None)
    match kind:
        case "tasks_planned":
            for number, row in enumerate(json.loads(payload or b"[]"), facts["first"]):
                names = (row[name] for name in ("stage", "key", "model", "replicate"))
                state = "queued" if row.get("skip") is None else "skipped"
                log.tasks[number] = Task(number, *names, state)
        case "tasks_reopened":
            for number in facts["tasks"]:
                task = log.tasks[number]
                task.state, task.reply, task.unparsed = "queued", None, None
        case "attempts_abandoned":
            for number, attempt in facts["attempts"]:
                log.tasks[number].state = "waiting" if facts.get("hold") else "queued"
                log.in_flight_usd.pop((number, attempt), None)
        case "attempt_answered":
            log.cost_usd += facts.get("cost_usd") or 0.0
            if of_one:
                of_one.reply = payload
                of_one.state = "running" if facts.get("reask") is None else "waiting"
        case "attempt_failed" if of_one:
            is_last = facts.get("retry_in_s") is None
            of_one.state = "running" if is_last else "waiting"
        case "attempt_started" if of_one:
            of_one.state = "running"
        case "task_completed" if of_one:
            of_one.state, of_one.unparsed = "completed", facts.get("unparsed")
        case "task_failed" if of_one:
            of_one.state, of_one.reply = "failed", None
        case "task_skipped" if of_one:
            of_one.state, of_one.reply = "skipped", None
        case _:
            log.unknown_kinds[kind] += 1


def main(path: str) -> None:
    log = read(Path(path))
    states = Counter(task.state for task in log.tasks.values())
    answers = sum(task.reply is not None for task in log.tasks.values())
    print(f"{log.run_id}: {log.events} events, {dict(states)}, {answers} answers")
    end = "holds" if log.is_chained else "breaks"
    print(f"cost ${log.cost_usd:.4f}; the chain {end}")


if __name__ == "__main__":
    main(*sys.argv[1:])
