from __future__ import annotations

import os

import pytest


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key or address of the machine's, and none left behind."""
    kept = {n: v for n, v in os.environ.items() if "_API_" not in n}
    monkeypatch.setattr(os, "environ", kept)
