"""A run full of texts, with its redacted bundle."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

from runner.bundle.manifest import RedactedManifest
from runner.bundle.pack import Bundle
from runner.bundle.redacted_pack import make_redacted_bundle
from store.errors import ignore_progress
from store.events import (
    AttemptFailed,
    AttemptStarted,
    CommandAccepted,
    CommandRejected,
    Entry,
    ParameterRefused,
    RunPaused,
    TaskFailed,
    TasksReopened,
)
from store.labels.writer import LabelWriter
from store.log.sqlite import SqliteLog
from store.runs import RunFolder
from tests.plugging import plugged
from tests.processes import siftlog
from tests.runner.bundle.quoting import PROMPT
from tests.store.memory_log import FakeClock

AUTHOR = "Dr Adelheid Windermere-Quill"


@dataclass(frozen=True)
class Redacted:
    """A run of `quoting`, its redacted bundle, and every text of it."""

    folder: RunFolder
    path: Path
    secret: Path
    manifest: RedactedManifest
    unpacked: Path
    texts: tuple[str, ...]
    keys: tuple[str, ...]


def _sentence(rng: random.Random, words: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return " ".join(
        "".join(rng.choices(letters, k=rng.randint(3, 9))) for _ in range(words)
    )


def _papers(rng: random.Random) -> list[dict[str, str]]:
    papers = [
        {
            "title": f"{_sentence(rng, 6)} ({2000 + number})",
            "text": f'{_sentence(rng, 60)} "quoted" \u03b2-{_sentence(rng, 8)}.',
            "label": rng.choice(["include", "exclude"]),
        }
        for number in range(12)
    ]
    papers[3]["text"] = f"unreadable {papers[3]['text']}"
    papers[4]["text"] = ""
    return papers


async def _more_texts(folder: RunFolder, rng: random.Random) -> list[str]:
    """Record texts in events that the run of a toy has none of; return them."""
    texts = [_sentence(rng, 7) for _ in range(9)]
    request = json.dumps({"model": "baseline/lexical", "messages": []}).encode()
    clock = FakeClock()
    async with await SqliteLog.open(folder.log, clock=clock, owner="x:1") as log:
        await log.append(
            RunPaused(by=AUTHOR, paused=True),
            ParameterRefused(
                endpoint=f"https://{texts[0].replace(' ', '.')}",
                model="baseline/lexical",
                name="temperature",
                words=texts[1],
                instead=texts[2],
            ),
            CommandAccepted(
                command="c1",
                kind="limits",
                author=AUTHOR,
                payload=json.dumps({"note": texts[3]}),
            ),
            CommandRejected(command="c2", kind="x", author=AUTHOR, reason=texts[4]),
            TasksReopened(tasks=[5], by=AUTHOR),
            Entry(
                event=AttemptStarted(
                    task=5,
                    attempt=2,
                    request_sha256=hashlib.sha256(request).hexdigest(),
                ),
                payload=request,
            ),
            Entry(
                event=AttemptFailed(
                    task=5,
                    attempt=2,
                    error="BadRequest",
                    latency_ms=1,
                    message=texts[5],
                ),
                payload=json.dumps({"error": {"message": texts[6]}}).encode(),
            ),
            TaskFailed(task=5, attempt=2, error="BadRequest", fault=texts[7]),
        )
    return texts


async def _label(folder: RunFolder, papers: list[dict[str, str]]) -> list[str]:
    writer = await LabelWriter.open(
        folder.labels,
        author=AUTHOR,
        clock=FakeClock(),
        owner="x:1",
        siftlog_version="0",
    )
    reason, value = papers[0]["text"][40:120], papers[1]["text"][10:60]
    await writer.record(papers[0]["title"], "include", reason=reason)
    await writer.record(papers[1]["title"], value, field="free text")
    await writer.close()
    return [reason, value]


@contextmanager
def redacted_run(cwd: Path) -> Iterator[Redacted]:
    """Make a run of `quoting` in *cwd*, and its bundle; the job stays installed."""
    environment = plugged(cwd / "plugins", quoting="tests.runner.bundle.quoting:job")
    rng = random.Random(5)
    papers = _papers(rng)
    lines = "".join(json.dumps(paper, ensure_ascii=False) + "\n" for paper in papers)
    (cwd / "papers.jsonl").write_text(lines)
    question = _sentence(rng, 9)
    run = ("run", "quoting", "--papers=papers.jsonl", f"--question={question}")
    siftlog(*run, "--run-id=r", "--no-report", cwd=cwd, env=environment)
    folder = RunFolder(cwd / "runs/r")
    texts = [*asyncio.run(_more_texts(folder, rng)), question, PROMPT, AUTHOR]
    texts += asyncio.run(_label(folder, papers))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(cwd / "plugins")
        patch.chdir(cwd)
        for name, value in environment.items():
            patch.setenv(name, value)
        bundle, secret = redact(folder)
        with ZipFile(bundle.path) as opened:
            opened.extractall(cwd / "unpacked")
        assert isinstance(bundle.manifest, RedactedManifest)
        yield Redacted(
            folder=folder,
            path=bundle.path,
            secret=secret,
            manifest=bundle.manifest,
            unpacked=cwd / "unpacked",
            texts=(
                *texts,
                *(paper["title"] for paper in papers),
                *(paper["text"] for paper in papers if paper["text"]),
            ),
            keys=tuple(paper["title"] for paper in papers),
        )


def redact(
    folder: RunFolder, out: Path | None = None, secret: Path | None = None
) -> tuple[Bundle, Path]:
    """Write a redacted bundle; return it and its secret."""
    return make_redacted_bundle(
        folder, None, out, secret, environ={}, progress=ignore_progress
    )
