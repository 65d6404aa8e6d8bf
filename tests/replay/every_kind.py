"""One event of every kind, as it stands in the golden logs. Never change an old one."""

from __future__ import annotations

from itertools import chain

from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    BatchCancelled,
    BatchCreated,
    BatchEnded,
    BatchItem,
    BatchPolled,
    BatchPrepared,
    Blob,
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    Entry,
    Input,
    LimitObserved,
    ParameterRefused,
    RunCancelled,
    RunDrained,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    ScoringRecorded,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
    TasksPlanned,
    TasksReopened,
    batch_bytes,
)
from store.labels.events import (
    Adjudicated,
    ItemDrawn,
    LabelRecorded,
    LabelsStarted,
    LabelWithdrawn,
    ScreeningPlanned,
    ScreeningStopped,
)
from store.lineage import StageAdded
from store.results import ComparisonDecided, StoppingRule
from store.task import PlannedTask, manifest_bytes

PART = Blob(
    sha256=bytes.fromhex(
        "513e343b12a69655a0079953f5341dc8a86af4fb2c07dcbe26a145b0d9af9e50"
    ),
    data=b"a message part",
)

PLAN = [
    PlannedTask(stage="ask", key="one", model="m", replicate=1, root=1),
    PlannedTask(stage="ask", key="two", model="m", replicate=1, root=2, group="g"),
    PlannedTask(stage="judge", key="one", model="n", replicate=2, root=1, context="{}"),
    PlannedTask(stage="ask", key="four", model="m", replicate=1, root=4, skip="empty"),
    PlannedTask(stage="ask", key="five", model="m", replicate=1, root=5),
]

FIRST: list[Entry] = [
    Entry(
        event=RunStarted(
            run_id="golden",
            job="sample-job",
            job_version="1",
            code_sha256="0" * 64,
            settings='{"profile":"siftlog"}',
            models={"subject": ["m"], "judge": ["n"]},
            replicates=2,
            inputs=[Input(setting="items", path="items.jsonl", sha256="1" * 64)],
            siftlog_version="0.1.0",
            imported=False,
        )
    ),
    Entry(
        event=TasksPlanned(first=1, count=5, consumed=4, exhausted=True),
        payload=manifest_bytes(PLAN),
    ),
    Entry(
        event=LimitObserved(
            model="m",
            concurrency=8,
            in_flight=2,
            rpm=60.0,
            tpm=9000.0,
            paused_until_us=1_767_225_700_000_000,
        )
    ),
    Entry(
        event=AttemptStarted(task=1, attempt=1, request_sha256="5" * 64),
        payload=b'{"messages":[]}',
        blobs=(PART,),
    ),
    Entry(
        event=AttemptFailed(
            task=1,
            attempt=1,
            error="RateLimited",
            latency_ms=12.5,
            message="slow down",
            status=429,
            retry_after_s=2.0,
            retry_in_s=2.25,
        ),
        payload=b'{"error":"slow down"}',
    ),
    Entry(event=AttemptStarted(task=1, attempt=2, request_sha256="5" * 64)),
    Entry(
        event=AttemptAnswered(
            task=1,
            attempt=2,
            form="chat",
            status=200,
            latency_ms=812.25,
            finish_reason="stop",
            tokens_in=120,
            tokens_out=40,
            tokens_cached=64,
            cost_usd=0.000123,
            cached=False,
            headers={"x-request-id": "abc"},
            reask=None,
        ),
        payload=b'{"choices":[{"message":{"content":"yes"}}]}' * 20,
    ),
    Entry(event=TaskCompleted(task=1, attempt=2, unparsed="no_list")),
    Entry(event=AttemptStarted(task=2, attempt=1, request_sha256="6" * 64)),
    Entry(event=AttemptsAbandoned(attempts=[(2, 1)], hold=True)),
    Entry(event=TaskSkipped(task=2, reason="cancelled")),
    Entry(event=AttemptStarted(task=3, attempt=1, request_sha256="7" * 64)),
    Entry(
        event=AttemptFailed(
            task=3, attempt=1, error="Timeout", latency_ms=60_000.0, message="no byte"
        )
    ),
    Entry(event=TaskFailed(task=3, attempt=1, error="Timeout")),
    Entry(event=RunPaused(by="someone", paused=True, stage="judge")),
    Entry(
        event=CommandAccepted(
            command="c1", kind="retry", author="someone", payload="{}"
        )
    ),
    Entry(event=TasksReopened(tasks=[3], by="someone")),
    Entry(event=CommandApplied(command="c1", effect="1 task reopened")),
    Entry(
        event=CommandRejected(
            command="c2", kind="pause", author="someone", reason="this cannot pause"
        )
    ),
    Entry(event=RunDrained(by="operator", why="drained on request", open=2)),
    Entry(event=RunResumed(code_sha256="8" * 64, settings="{}", unknown=1)),
    Entry(event=RunCancelled(by="someone")),
    Entry(event=RunFinished(completed=1, failed=0, skipped=2)),
    Entry(
        event=ScoringRecorded(
            number=1,
            job_version="1",
            code_sha256="9" * 64,
            settings="{}",
            inputs=[],
            seq=23,
            digest="a" * 64,
        )
    ),
]

STOPPING = StoppingRule(metric="accuracy", margin=0.05, alpha=0.1)

ENTRIES: dict[str, list[Entry]] = {
    "log-1": FIRST,
    "log-1-decided": [
        *FIRST,
        Entry(
            event=ComparisonDecided(
                stopping=STOPPING,
                a="m",
                b="n",
                verdict="close",
                clusters=400,
                cluster="paper",
                difference=0.0125,
                lo=-0.03125,
                hi=0.046875,
                seq=24,
            )
        ),
    ],
    "log-1-batches": [
        *FIRST,
        Entry(
            event=BatchPrepared(batch="k-1", model="m", form="openai", requests=2),
            payload=batch_bytes(
                [BatchItem(1, 1, "k-1-1-a"), BatchItem(5, 1, "k-1-5-b")]
            ),
        ),
        Entry(event=BatchCreated(batch="k-1", id="batch_1", file="file_1", found=True)),
        Entry(
            event=BatchPolled(batch="k-1", status="in_progress", done=1, failed=0),
        ),
        Entry(event=BatchCancelled(batch="k-1", by="someone")),
        Entry(
            event=BatchEnded(
                batch="k-1",
                outcome="expired",
                requests=2,
                done=1,
                failed=0,
                why="there was no time",
            )
        ),
    ],
    "log-1-parameters": [
        *FIRST,
        Entry(
            event=ParameterRefused(
                endpoint="https://host/v1",
                model="m",
                name="max_tokens",
                words="use max_completion_tokens instead",
                instead="max_completion_tokens",
            )
        ),
    ],
    "log-1-labels": [
        *FIRST,
        Entry(event=LabelsStarted(author="ann", siftlog_version="1.0")),
        Entry(
            event=ItemDrawn(
                author="ann",
                item="one",
                field="dose",
                design="stratified",
                probability=0.25,
                stratum="exclude",
                seed=7,
                position=1,
                expected=2.0,
                population=8,
                population_sha256="e" * 64,
                score=0.5,
                run="golden",
            )
        ),
        Entry(
            event=LabelRecorded(
                author="ann",
                item="one",
                field="dose",
                value="5 mg",
                reason="table 2",
                visible=["title", "text", "reply:m"],
                run="golden",
                run_task=1,
                text_sha256="f" * 64,
                draw="ab:26",
                probability=0.25,
                seconds=12.5,
                source="labels.csv",
            )
        ),
        Entry(event=LabelWithdrawn(author="ann", label="ab:27", reason="undone")),
        Entry(
            event=Adjudicated(
                author="bo",
                item="one",
                field="dose",
                value="5 mg",
                reason="both read table 2",
                considered=["ab:27", "cd:2"],
                text_sha256="f" * 64,
                run="golden",
            )
        ),
    ],
    "log-1-screening": [
        *FIRST,
        Entry(
            event=ScreeningPlanned(
                author="ann",
                run="golden",
                question="does it help?",
                target=0.95,
                alpha=0.05,
                seed=7,
                records=5,
                population_sha256="a" * 64,
                library=["b" * 64],
                order="model",
                order_sha256="c" * 64,
                models=["m"],
                run_seq=25,
                run_head="d" * 64,
                scoring=1,
                scoring_digest="e" * 64,
            )
        ),
        Entry(
            event=ScreeningStopped(
                author="ann",
                run="golden",
                number=1,
                certificate_sha256="f" * 64,
                recall=0.96,
                relevant=2,
                read=4,
            )
        ),
    ],
    "log-1-stage": [
        *FIRST,
        Entry(
            event=StageAdded(
                stage="support",
                model="j",
                form="toml",
                file="/data/support.toml",
                sha256="b" * 64,
                code_sha256="c" * 64,
                siftlog_version="0.1.0",
                budget_usd=0.5,
            ),
            payload=b'name = "support"\n',
        ),
    ],
}
"""By golden log: a kind that comes later gets a log of its own, with all before it."""


def all_entries() -> list[Entry]:
    """What the log of a release holds; a later kind adds to the end of it."""
    later = (entries[len(FIRST) :] for entries in ENTRIES.values())
    return [*FIRST, *chain.from_iterable(later)]
