"""Logs of inspect_ai, archives and JSON: what is read, and how damage ends."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED

import pytest

from runner.errors import DatasetError
from runner.imports.forms import read_files, recognised
from runner.imports.records import ForeignReply
from runner.messages import Message, TextPart, Usage
from store.served_by import ServedBy
from tests.runner.imports.foreign_files import (
    ZSTANDARD,
    archive,
    eval_log,
    header,
    json_log,
    sample,
)


def read(path: Path) -> list[ForeignReply]:
    return [reply for _, reply in read_files([path])]


def message(role: str, text: str) -> Message:
    return Message(role=role, parts=(TextPart(text=text),))  # type: ignore[arg-type]


def test_a_sample_is_read_with_all_that_a_record_holds(tmp_path: Path) -> None:
    (reply,) = read(eval_log(tmp_path / "a.eval", sample(4, epoch=2)))
    assert reply == ForeignReply(
        item="q4",
        model="mock/a",
        messages=(message("system", "Be brief."), message("user", "Say 4")),
        text="It is 4",
        epoch=2,
        usage=Usage(tokens_in=16, tokens_out=3, tokens_cached=2),
        served=ServedBy(model="mock/a-2026"),
        created_s=1769851800,
        latency_ms=250.0,
        target="4",
        scores={"includes": 1.0, "length": 7.0},
        fields={"task": "says", "metadata.pmid": "104"},
        dropped=("explanations of scores",),
    )


@pytest.mark.parametrize("method", [ZSTANDARD, ZIP_DEFLATED, ZIP_STORED])
def test_both_forms_and_all_compressions_have_the_same_replies(
    tmp_path: Path, method: int
) -> None:
    samples = [sample(number, epoch) for epoch in (1, 2) for number in range(3)]
    of_json = json_log(tmp_path / "a.json", *samples)
    of_eval = eval_log(tmp_path / "a.eval", *samples, method=method)
    assert recognised(of_json) == "inspect-json"
    assert recognised(of_eval) == "inspect"
    assert read(of_json) == read(of_eval)
    assert len(read(of_json)) == 6


def test_a_log_that_was_killed_has_its_samples(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    members = {"_journal/start.json": header(), "samples/q1_epoch_1.json": sample(1)}
    path.write_bytes(archive({n: json.dumps(m).encode() for n, m in members.items()}))
    assert [reply.text for reply in read(path)] == ["It is 1"]


def test_a_failed_sample_is_a_reply_without_text(tmp_path: Path) -> None:
    failed = sample(1, error={"message": "ConnectionError('x')"}, output={})
    (reply,) = read(json_log(tmp_path / "a.json", failed))
    assert (reply.text, reply.error) == (None, "ConnectionError")


def test_what_a_record_cannot_hold_is_named(tmp_path: Path) -> None:
    full = sample(1, target=["1", "one"], limit={"type": "time"})
    call = {"id": "c", "function": "look", "arguments": {}}
    full["messages"].insert(2, {"role": "assistant", "tool_calls": [call]})
    full["messages"].insert(3, {"role": "tool", "content": "seen"})
    full["scores"]["words"] = {"value": "good"}
    parts = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "1"}]
    full["output"]["choices"][0]["message"]["content"] = parts
    full["model_usage"] = {"mock/a": {"input_tokens": 99, "output_tokens": 9}}
    (reply,) = read(json_log(tmp_path / "a.json", full))
    assert reply.text == "1"
    assert set(reply.dropped) == {
        *("messages of role tool", "tool calls", "content of type reasoning"),
        *("further right answers of a sample", "scores that are no number"),
        *("explanations of scores", "limits that ended a sample"),
        "usage of earlier calls of a sample",
    }


def test_attached_texts_and_nan_are_read(tmp_path: Path) -> None:
    path = "attachment://0a1b"
    full = sample(1, attachments={"0a1b": "A long text"})
    full["messages"][1]["content"] = path
    full["scores"] = {"f1": {"value": float("nan")}, "letter": {"value": "P"}}
    (reply,) = read(json_log(tmp_path / "a.json", full))
    assert reply.messages[1].text == "A long text"
    assert reply.scores == {"letter": 0.5}
    assert "scores that are no number" in reply.dropped


def test_an_archive_that_is_cut_or_flipped_is_refused_in_one_sentence(
    tmp_path: Path,
) -> None:
    path = eval_log(tmp_path / "a.eval", sample(1), sample(2))
    whole, expected = path.read_bytes(), read(path)
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises(DatasetError, match=r"^a\.eval[:,] .*\)\.$"):
            read(path)
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            replies = read(path)
        except DatasetError as error:
            assert str(error).startswith("a.eval")  # noqa: PT017 - either may be
        else:
            # a name or a time of the directory, which no content depends on
            assert all(reply in expected for reply in replies)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"epoch": "two"}, r"line 13: expected 'int', got 'str' - at '\$\.epoch'"),
        ({"output": 7}, r"line 13: expected 'object', got 'int' - at '\$\.output'"),
    ],
)
def test_a_sample_of_another_shape_is_named_by_its_line(
    tmp_path: Path, change: dict[str, object], sentence: str
) -> None:
    path = json_log(tmp_path / "a.json", {**sample(1), **change})
    with pytest.raises(DatasetError, match=rf"^a\.json {sentence} \(export"):
        read(path)


def test_a_log_is_read_in_flat_memory(tmp_path: Path) -> None:
    padded = sample(1, store={"text": "x" * 20_000})
    path = json_log(tmp_path / "a.json", *[padded] * 400)
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_files([path]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 400
    assert path.stat().st_size > 8_000_000
    assert peak < 1_500_000


def test_a_compressed_log_is_read_and_a_damaged_one_refused(tmp_path: Path) -> None:
    plain = json_log(tmp_path / "a.json", sample(1))
    packed = tmp_path / "b.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(packed) == [replace(each) for each in read(plain)]
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(DatasetError, match=r"b\.json\.gz: the compressed file is"):
        read(packed)
