"""The second reading shares nothing with the first: the standard library alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

PACKAGE = "jobs.evidence_retrieval.verification"
FOLDER = ROOT.joinpath(*PACKAGE.split("."))

ALONE = """
import sys, types
# the package above is that of a whole job: it is stood in for by its folder
for name in ("jobs", "jobs.evidence_retrieval"):
    module = types.ModuleType(name)
    module.__path__ = [str(sys.argv[1]) + "/" + name.replace(".", "/")]
    sys.modules[name] = module
from jobs.evidence_retrieval.verification.verify import verify
found = verify([{"post_id": "p", "criterion_id": "A", "gold_ids": "a",
                 "retriever_topk": "b|a"}], {"retriever": {"mrr@5": 0.5}})
assert not found.failures, found
print("\\n".join(sorted(sys.modules)))
"""


def test_verifying_loads_the_standard_library_and_nothing_of_ours() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ALONE, str(ROOT)],
        capture_output=True,
        text=True,
        check=True,
    )
    known = sys.stdlib_module_names
    own = (PACKAGE, "jobs", "jobs.evidence_retrieval")
    strange = {
        name
        for name in done.stdout.split()
        if name.partition(".")[0] not in {*known, "__main__"}
        and name not in own
        and not name.startswith(f"{PACKAGE}.")
    }
    assert strange == set()


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_its_source_names_no_other_module_anywhere() -> None:
    """Not even in a function that no test calls."""
    sources = sorted(FOLDER.glob("*.py"))
    names = {name for path in sources for name in imported(path)}
    ours = {name for name in names if name.startswith(PACKAGE)}
    assert ours
    assert {name.partition(".")[0] for name in names - ours} <= sys.stdlib_module_names
