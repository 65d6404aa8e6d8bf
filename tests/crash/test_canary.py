"""A key goes through every error path and is found nowhere afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.runs import RunFolder
from store.views import events, open_reader, payload
from tests.corpus import write_corpus
from tests.processes import siftlog
from tests.refusing import serve

CANARY = "sk-canary-7f3a9c51e8"


DIRECT = ("--model=openai/x", "--base-url={url}", "--api-key-env=MY_KEY")
THROUGH_LITELLM = ("--model=nvidia_nim/x",)


@pytest.mark.parametrize("words", [DIRECT, THROUGH_LITELLM], ids=["direct", "litellm"])
@pytest.mark.parametrize("statuses", [(401,), (500, 429, 400), (200,), (403, 503)])
def test_no_file_event_or_message_holds_the_key(
    words: tuple[str, ...], statuses: tuple[int, ...], tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 4)
    with serve(*statuses) as url:
        (tmp_path / ".env").write_text(
            f"MY_KEY={CANARY}\nNVIDIA_NIM_API_KEY={CANARY}\nNVIDIA_NIM_API_BASE={url}\n"
        )
        done = siftlog(
            *("run", "paper-investigation", *corpus, "--run-id=r"),
            *(word.format(url=url) for word in words),
            *("--deadline-s=1", "--json"),
            cwd=tmp_path,
            check=False,
        )
    assert done.returncode in {1, 3, 5}, done.stderr
    said = [done.stdout, done.stderr]
    said.append(siftlog("status", "r", cwd=tmp_path).stdout)
    said.append(siftlog("events", "r", "--json", cwd=tmp_path).stdout)
    siftlog("export", "r", cwd=tmp_path)
    assert not [text for text in said if CANARY in text]
    folder = tmp_path / "runs" / "r"
    for path in folder.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes(), path
    with open_reader(RunFolder(folder).log) as reader:
        bodies = [
            payload(reader, recorded.seq) or b""
            for recorded in events(reader, limit=100_000)
        ]
    assert not [body for body in bodies if CANARY.encode() in body]
    # what the endpoint echoed is there, with the key blotted out
    assert [body for body in bodies if b"Bearer ***" in body]
