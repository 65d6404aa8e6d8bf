"""What `docs/log-format.md` says of stored requests holds for a real log."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from runner.clients.wire_shared import skeleton
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    Message,
    Request,
    RerankRequest,
    TextPart,
)
from store.encoding import unpack
from tests.processes import siftlog

DOCS = Path(__file__).parents[3] / "docs" / "log-format.md"


def _documented(kind: str) -> list[str]:
    row = next(r for r in DOCS.read_text().splitlines() if r.startswith(f"| {kind} |"))
    return re.findall(r"`(\w+)`", row.split("|")[2])


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        (
            "chat",
            ChatRequest(
                messages=(Message(role="user", parts=(TextPart(text="a"),)),),
                max_tokens=9,
            ),
        ),
        ("`embed`", EmbedRequest(texts=("a",))),
        ("`rerank`", RerankRequest(query="a", documents=("b",))),
    ],
)
def test_skeletons_have_the_keys_that_are_documented(
    kind: str, request_: Request
) -> None:
    made = skeleton(request_, "m")
    assert list(json.loads(made.body)) == _documented(kind)
    assert b"a" in {blob.data for blob in made.blobs}


def test_a_real_log_holds_requests_and_attempts_as_documented(tmp_path: Path) -> None:
    siftlog("run", "paper-investigation", "--run-id=r", "--no-score", cwd=tmp_path)
    query = (
        "SELECT kind.name, event.facts, event.enc, event.blen, body.data FROM event "
        "JOIN kind ON kind.id = event.kind JOIN body USING (seq) "
        "WHERE kind.name LIKE 'attempt_%' ORDER BY seq"
    )
    path = tmp_path / "runs" / "r" / "log.db"
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as log:
        rows = log.execute(query).fetchall()
        blobs = {
            sha256.hex(): unpack(enc, data, size)
            for sha256, enc, size, data in log.execute(
                "SELECT sha256, enc, size, data FROM blob"
            )
        }
    asked = [row for row in rows if row[0] == "attempt_started"]
    assert len(asked) == len(rows) / 2 > 10
    for _, facts, enc, size, data in asked:
        body = unpack(enc, data, size)
        assert json.loads(facts)["request_sha256"] == hashlib.sha256(body).hexdigest()
        made = json.loads(body)
        assert list(made) == _documented("chat")
        for message in made["messages"]:
            assert set(message) == {"role", "parts"}
            for part in message["parts"]:
                assert hashlib.sha256(blobs[part]).hexdigest() == part
                assert blobs[part].decode()
