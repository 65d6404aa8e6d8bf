from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.property_extraction.real_predictions import RealPredictions


@pytest.fixture(scope="session")
def real(realdata: Path, tmp_path_factory: pytest.TempPathFactory) -> RealPredictions:
    """Every file is imported once, whichever module asks first."""
    runs = tmp_path_factory.mktemp("real-predictions")
    return RealPredictions(runs=runs, folder=realdata / "sci_llm")
