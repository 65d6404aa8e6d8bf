"""A file of one JSON object, as all files of the job have it: indented by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from runner.scorecard import Artifact


def json_file(name: str, value: Mapping[str, Any]) -> Artifact:
    """The file; its keys stay in their order."""
    content = msgspec.json.format(msgspec.json.encode(value), indent=1)
    return Artifact(name=name, text=content.decode() + "\n")
