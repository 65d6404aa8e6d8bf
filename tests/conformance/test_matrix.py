"""Every promise in every dialect: three of them here, all in `make prove`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.simulate.dialects import DIALECTS
from tests.conformance.promises import PROMISES, Case

FIXED = ("openai-reasoning", "xai", "vllm")
"""Parameters refused, reasoning beside completion, an older server without schemas."""

PROVE = "SIFTLOG_PROVE" in os.environ


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(DIALECTS) if PROVE else FIXED)
def test_every_promise_holds_in_the_dialect(name: str, tmp_path: Path) -> None:
    case = Case(name, tmp_path)
    broken = []
    for title, promise in PROMISES.items():
        try:
            promise(case)
        except AssertionError as error:
            broken.append(f"{title}: {error}")
    assert not broken, "\n".join(broken)
