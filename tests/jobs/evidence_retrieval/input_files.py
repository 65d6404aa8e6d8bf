"""Small input files for tests: two posts, three criteria, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jobs.evidence_retrieval.settings import EvidenceSettings

POSTS = "post_id,text\np1,One cat. Two dogs.\np2,Three\n"
CRITERIA = "criterion_id,text\nA.1,cats\nA.2,dogs\n"


def files(folder: Path, **contents: str) -> EvidenceSettings:
    """Settings that name a file for each of *contents*, by setting."""
    ends = {"sentences": "jsonl", "pipeline": "toml"}
    paths: dict[str, Path] = {}
    for name, text in contents.items():
        end = "json" if text.startswith("{") else "csv"
        paths[name] = folder / f"{name}.{ends.get(name, end)}"
        paths[name].write_text(text, encoding="utf-8")
    return EvidenceSettings.model_validate(paths)


def sentences(rows: Iterable[tuple[str, int, str, str]]) -> str:
    """Pools as JSONL, from post, sid, uid and text."""
    keys = ("post_id", "sid", "sent_uid", "text")
    objects: Iterable[dict[str, Any]] = (dict(zip(keys, r, strict=True)) for r in rows)
    return "".join(json.dumps(each) + "\n" for each in objects)
