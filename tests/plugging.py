"""A job of the tests', installed for the processes that they start and no others."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def plugged(folder: Path, name: str, target: str) -> dict[str, str]:
    """The environment in which the job *target* ("module:attribute") has a *name*.

    What pip leaves of a package is a folder of metadata beside it; here that folder
    stands alone, and *target* is found because the tests are on the path too.
    """
    metadata = folder / f"{name}-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"
    )
    (metadata / "entry_points.txt").write_text(f"[siftlog.jobs]\n{name} = {target}\n")
    path = [str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, path))}
