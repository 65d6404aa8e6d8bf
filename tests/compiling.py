"""Compiles the test modules as pytest imports them: `python -m tests.compiling`.

The workers of a session begin together and find no bytecode in a fresh clone, so each
would compile all test modules: 10 s of processor time apiece.
"""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from types import SimpleNamespace

# pytest offers no other way; constraints.txt has its version
from _pytest.assertion.rewrite import (
    PYC_TAIL,
    _read_pyc,
    _rewrite_test,
    _write_pyc,
    get_cache_dir,
)

TESTS = Path(__file__).resolve().parent
SILENT = SimpleNamespace(trace=lambda _: None)


def compile_test(path: Path) -> None:
    """Write a module's bytecode where pytest looks for it, unless it is there."""
    folder = get_cache_dir(path)
    target = folder / f"{path.stem}{PYC_TAIL}"
    if _read_pyc(path, target) is None:
        folder.mkdir(exist_ok=True)
        stat, code = _rewrite_test(path, None)
        _write_pyc(SILENT, code, stat, target)


def main() -> None:
    """Compile all modules that pytest rewrites, on all processors."""
    paths = [*TESTS.rglob("test_*.py"), *TESTS.rglob("conftest.py")]
    with multiprocessing.Pool() as pool:
        pool.map(compile_test, paths, chunksize=8)


if __name__ == "__main__":
    main()
