"""The hash of a job's code covers what it shares with other jobs, and nothing else."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from runner import fingerprint
from runner.fingerprint import (
    COMPUTING,
    code_fingerprint,
    code_hash,
    input_hashes,
)
from runner.installed import version
from runner.job import InputFile, Job
from runner.registry import load_job

ROOT = Path(__file__).resolve().parents[2]

FILES = {
    "house/__init__.py": "",
    "house/survey/__init__.py": "",
    "house/survey/job.py": (
        "from house import shared\nfrom house.rules import strict\n\n\n"
        "class Survey:\n    def score(self):\n        import house.late\n"
    ),
    "house/shared.py": "",
    "house/rules/__init__.py": "from house.rules import deep\n\nstrict = 1\n",
    "house/rules/deep.py": "",
    "house/late.py": "import json\n",
    "house/other/__init__.py": "",
    "house/other/job.py": "",
    "neighbour.py": "",
    "house/trials/__init__.py": "import house.shared\n\n\nclass Trials:\n    pass\n",
    "alone.py": "class Alone:\n    pass\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [n for n in sys.modules if n.split(".")[0] in {"house", "alone"}]:
        del sys.modules[name]


def _job() -> Job:
    return cast("Job", importlib.import_module("house.survey.job").Survey())


@pytest.mark.parametrize(
    "changed",
    ["survey/job.py", "shared.py", "rules/__init__.py", "rules/deep.py", "late.py"],
)
def test_what_the_job_imports_of_its_house_counts(folder: Path, changed: str) -> None:
    before = code_hash(_job())
    with (folder / "house" / changed).open("a") as file:
        file.write("# another rule\n")
    assert code_hash(_job()) != before


@pytest.mark.parametrize("changed", ["house/other/job.py", "neighbour.py"])
def test_what_it_does_not_import_is_left_out(folder: Path, changed: str) -> None:
    before = code_hash(_job())
    (folder / changed).write_text("# changed\n")
    assert code_hash(_job()) == before


def test_a_job_in_the_face_of_its_package_counts_what_it_imports(folder: Path) -> None:
    job = cast("Job", importlib.import_module("house.trials").Trials())
    before = code_hash(job)
    (folder / "house/other/job.py").write_text("# changed\n")
    assert code_hash(job) == before
    (folder / "house/shared.py").write_text("# changed\n")
    assert code_hash(job) != before


def test_a_job_that_is_one_module_is_its_file_alone(folder: Path) -> None:
    job = cast("Job", importlib.import_module("alone").Alone())
    before = code_hash(job)
    (folder / "neighbour.py").write_text("# changed\n")
    (folder / "house/shared.py").write_text("# changed\n")
    assert code_hash(job) == before
    with (folder / "alone.py").open("a") as file:
        file.write("# changed\n")
    assert code_hash(job) != before


def test_the_place_of_the_house_does_not_matter(folder: Path) -> None:
    before = code_hash(_job())
    for name in [n for n in sys.modules if n.split(".")[0] == "house"]:
        del sys.modules[name]
    (folder / "moved").mkdir()
    (folder / "house").rename(folder / "moved" / "house")
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder / "moved"))
    try:
        assert code_hash(_job()) == before
    finally:
        sys.path.remove(str(folder / "moved"))


def test_an_input_counts_by_its_bytes_unless_its_job_knows_better(
    tmp_path: Path,
) -> None:
    path = tmp_path / "papers.db"
    path.write_bytes(b"papers")
    known = InputFile(setting="database", path=path, sha256="of the papers")
    plain = InputFile(setting="truth", path=path)
    assert [each.sha256 for each in input_hashes([known, plain])] == [
        "of the papers",
        hashlib.sha256(b"papers").hexdigest(),
    ]


def test_the_prompts_that_a_package_ships_count_like_its_code(folder: Path) -> None:
    before = code_hash(_job())
    (folder / "house/survey/prompts.toml").write_text("system = ''")
    assert code_hash(_job()) != before


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ("survey/job.py", "job"),
        ("rules/deep.py", "job"),  # all of another author's package is the job's
    ],
)
def test_each_file_counts_in_one_class(folder: Path, changed: str, cause: str) -> None:
    before = code_fingerprint(_job())
    with (folder / "house" / changed).open("a") as file:
        file.write("# another rule\n")
    after = code_fingerprint(_job())
    classes = ("job", "kit", "metrics", "engine")
    assert [c for c in classes if getattr(before, c) != getattr(after, c)] == [cause]


@pytest.mark.parametrize(
    "line",
    [
        "from jobs.kit import grouping",
        "# score = Deferred('jobs.kit.question_results:score')",
    ],
    ids=["imported", "imported late"],
)
def test_a_job_of_one_file_has_the_kit_that_it_imports(folder: Path, line: str) -> None:
    def kit() -> str:
        module = importlib.import_module("alone")
        return code_fingerprint(cast("Job", module.Alone())).kit

    before = kit()
    with (folder / "alone.py").open("a") as file:
        file.write(f"{line}\n")
    assert kit() != before


@pytest.mark.parametrize("file", ["stage_declaration.py", "stage_scores.py"])
def test_what_carries_out_added_stages_is_of_the_kit(
    monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    read, job = fingerprint._code_file_hash, load_job("screening")
    before = code_fingerprint(job)

    def changed(path: str, state: tuple[int, int]) -> str:
        return "" if path.endswith(f"jobs/kit/{file}") else read(path, state)

    monkeypatch.setattr(fingerprint, "_code_file_hash", changed)
    after = code_fingerprint(job)
    assert before.kit != after.kit
    assert (before.job, before.engine) == (after.job, after.engine)


def test_shipped_jobs_share_the_kit_and_metrics() -> None:
    papers, screening = map(load_job, ("paper-investigation", "screening"))
    one, other = code_fingerprint(papers), code_fingerprint(screening)
    assert one.job != other.job
    assert (one.engine, one.dependencies) == (other.engine, other.dependencies)
    assert one.dependencies["numpy"] == version("numpy")
    assert one == code_fingerprint(papers)


def test_every_package_that_computes_is_a_dependency() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = metadata["optional-dependencies"].values()
    wanted = [*metadata["dependencies"], *(line for lines in extras for line in lines)]
    names = {re.split(r"[^\w-]", line)[0] for line in wanted}
    assert names >= set(COMPUTING)
