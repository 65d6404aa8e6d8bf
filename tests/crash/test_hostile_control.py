"""A `control.jsonl` that holds anything at all: passed over, and the rest obeyed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from store.control import Command, send_command
from store.runs import RunFolder
from tests.corpus import write_corpus
from tests.processes import siftlog, simulated, start

GARBAGE = b"\n".join(
    (
        bytes(range(256)) * 50,
        b"\n" * 100_000,
        b'17\n"drain"\n[]\n{}\nnull\n{"id":1}',
        b"[" * 100_000,  # deeper than anybody nests
        b'{"id":"' + b"x" * 2_000_000,
        b'{"id":"x","author":"a","host"',
    )
)
TITLE = "\x1b]0;owned\x07\u202e"


def _command(kind: str, **payload: str) -> Command:
    return Command(
        id=f"{kind}-1",
        author=f"some{TITLE}body",
        host="elsewhere",
        at_us=0,
        kind=kind,
        payload=payload,
    )


def test_garbage_is_passed_over_and_what_comes_after_it_is_obeyed(
    tmp_path: Path,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 40)
    folder = RunFolder(tmp_path / "runs" / "r")
    folder.path.mkdir(parents=True)
    folder.control.write_bytes(GARBAGE)
    with simulated("--latency-ms", 300, cwd=tmp_path) as url:
        process = start(
            *("run", "paper-investigation", *corpus, "--run-id=r", "--model=x"),
            *(f"--base-url={url}", "--concurrency=4"),
            cwd=tmp_path,
        )
        while not folder.is_alive():
            assert process.poll() is None
        send_command(folder, _command(f"dance{TITLE}"))
        send_command(folder, _command("retry", filter=f"state:{TITLE}"))
        with folder.control.open("ab") as file:
            file.write(GARBAGE)
        time.sleep(0.6)
        send_command(folder, _command("drain"))
        assert process.wait(30) == 5
    listed = siftlog("events", "r", "--json", cwd=tmp_path).stdout
    events = [json.loads(line) for line in listed.splitlines()]
    kinds = {"command_rejected", "command_applied"}
    said = {e["facts"]["command"]: e["event"] for e in events if e["event"] in kinds}
    assert said == {
        f"dance{TITLE}-1": "command_rejected",
        "retry-1": "command_rejected",
        "drain-1": "command_applied",
    }
    shown = [
        (tmp_path / "err.txt").read_text(),
        siftlog("events", "r", cwd=tmp_path).stdout,
        siftlog("status", "r", cwd=tmp_path).stdout,
    ]
    assert not [text for text in shown if "\x1b" in text or "\u202e" in text]
    assert "Traceback" not in shown[0]


def test_what_was_asked_is_carried_out_though_it_was_written_in_pieces(
    tmp_path: Path,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 40)
    folder = RunFolder(tmp_path / "runs" / "r")
    aside = RunFolder(tmp_path)
    send_command(aside, _command("drain"))
    whole = aside.control.read_bytes()
    with simulated("--latency-ms", 300, cwd=tmp_path) as url:
        process = start(
            *("run", "paper-investigation", *corpus, "--run-id=r", "--model=x"),
            *(f"--base-url={url}", "--concurrency=4"),
            cwd=tmp_path,
        )
        while not folder.is_alive():
            assert process.poll() is None
        with folder.control.open("ab", buffering=0) as file:
            file.write(whole[:40])
            os.fsync(file.fileno())
            time.sleep(0.7)
            assert process.poll() is None
            file.write(whole[40:])
        assert process.wait(30) == 5
