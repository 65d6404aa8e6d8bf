from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.paper_investigation.recorded import Recorded


@pytest.fixture(scope="session")
def recorded(realdata: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Every recorded run is imported once, whichever module asks first."""
    return Recorded(tmp_path_factory.mktemp("recorded"), realdata)
