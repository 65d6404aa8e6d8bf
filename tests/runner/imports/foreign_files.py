"""Writes files of other tools, small ones, field by field."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import zstandard

ZSTANDARD = 93


def sample(number: int, epoch: int = 1, **more: Any) -> dict[str, Any]:
    """A sample of an inspect log, with the fields that inspect writes."""
    text = f"It is {number}"
    reply = {"id": f"m{number}", "content": text, "source": "generate"}
    reply |= {"role": "assistant", "model": "mock/a"}
    return {
        "id": f"q{number}",
        "epoch": epoch,
        "input": f"Say {number}",
        "target": str(number),
        "messages": [
            {"id": "s", "content": "Be brief.", "role": "system"},
            {"id": "u", "content": f"Say {number}", "role": "user"},
            reply,
        ],
        "output": {
            "model": "mock/a-2026",
            "choices": [{"message": reply, "stop_reason": "stop"}],
            "completion": text,
            "usage": {
                "input_tokens": 10 + number,
                "output_tokens": 3,
                "total_tokens": 15 + number,
                "input_tokens_cache_read": 2,
            },
            "time": 0.25,
        },
        "scores": {"includes": {"value": "C"}, "length": {"value": 7}},
        "metadata": {"pmid": 100 + number},
        "events": [{"event": "span_begin", "text": 'a "quoted" ] }'}],
        "completed_at": "2026-01-31T09:30:00+00:00",
        "attachments": {},
        **more,
    }


def header(model: str = "mock/a") -> dict[str, Any]:
    """The header of an inspect log."""
    of_eval = {"task": "says", "model": model, "created": "2026-01-31T09:00:00+00:00"}
    return {"version": 2, "status": "success", "eval": of_eval}


def json_log(path: Path, *samples: Mapping[str, Any], **more: Any) -> Path:
    """Write a log of inspect as JSON."""
    log = {**header(), "results": {"scores": []}, **more, "samples": list(samples)}
    path.write_text(json.dumps(log, indent=2), "utf-8")
    return path


def eval_log(path: Path, *samples: Mapping[str, Any], method: int = ZSTANDARD) -> Path:
    """Write a log of inspect as an archive; its header comes last, as inspect's."""
    names = [f"samples/{s['id']}_epoch_{s['epoch']}.json" for s in samples]
    members = {"_journal/start.json": header()}
    members |= dict(zip(names, samples, strict=True)) | {"header.json": header()}
    path.write_bytes(
        archive({n: json.dumps(m).encode() for n, m in members.items()}, method)
    )
    return path


def archive(members: Mapping[str, bytes], method: int = ZSTANDARD) -> bytes:
    """A zip archive; zipfile writes no zstandard before Python 3.14."""
    body, directory = b"", b""
    for name, content in members.items():
        packed = _packed(content, method)
        head = struct.pack(
            "<HHHHHIIIHH",
            *(20, 0, method, 0, 0x21, zlib.crc32(content), len(packed), len(content)),
            *(len(name), 0),
        )
        tail = struct.pack("<HHHII", 0, 0, 0, 0, len(body))
        directory += b"PK\1\2" + b"\x14\0" + head + tail + name.encode()
        body += b"PK\3\4" + head + name.encode() + packed
    end = struct.pack(
        "<4xHHIIH", len(members), len(members), len(directory), len(body), 0
    )
    return body + directory + b"PK\5\6" + end


def _packed(content: bytes, method: int) -> bytes:
    if method == ZSTANDARD:
        # two frames, as inspect begins a new one in large members
        half = len(content) // 2
        pack = zstandard.ZstdCompressor().compress
        return pack(content[:half]) + pack(content[half:])
    if method:
        deflate = zlib.compressobj(wbits=-15)
        return deflate.compress(content) + deflate.flush()
    return content


def lines(path: Path, *objects: Mapping[str, Any]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(f"{json.dumps(each)}\n" for each in objects), "utf-8")
    return path
