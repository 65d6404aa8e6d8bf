"""Jobs and verbs of the tests', installed for the processes that they start alone."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def plugged(
    folder: Path, *, group: str = "siftlog.jobs", **jobs: str
) -> dict[str, str]:
    """The environment in which *jobs* are installed: name to "module:attribute".

    Of another *group* of entry points, such as `siftlog.commands`, they are no jobs.

    What pip leaves of a package is a folder of metadata beside it; here that folder
    stands alone, and the modules are found because the tests are on the path too.
    """
    metadata = folder / "plugged-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: plugged\nVersion: 1\n"
    )
    points = "".join(f"{name} = {target}\n" for name, target in jobs.items())
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{points}")
    path = [str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, path))}
