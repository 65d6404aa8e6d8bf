"""The command jobs lists the settings that people set, and with --all every one."""

from __future__ import annotations

import json

import pytest

from runner.cli.main import exit_code
from runner.registry import job_names, load_job


@pytest.mark.parametrize("name", job_names())
def test_everyday_settings_are_settings(name: str) -> None:
    job = load_job(name)
    settings = list(job.Settings.model_fields)
    assert sorted(set(job.everyday)) == sorted(job.everyday)
    assert set(job.everyday) <= set(settings)
    assert 0 < len(job.everyday) <= 14


def test_a_job_is_listed_by_its_everyday_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = load_job("screening")
    assert exit_code(["jobs", "screening"]) == 0
    *lines, tail = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == set(job.everyday)
    further = len(job.Settings.model_fields) - len(job.everyday)
    assert tail == f"{further} more settings: siftlog jobs screening --all"


@pytest.mark.parametrize("words", [["--all"], ["--json"], ["--all", "--json"]])
def test_every_setting_is_listed_with_all_or_as_json(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    job = load_job("screening")
    assert exit_code(["jobs", "screening", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    if "--json" in words:
        rows = [json.loads(line) for line in lines]
        everyday = {row["setting"] for row in rows if row["everyday"]}
        assert everyday == set(job.everyday)
        names = [row["setting"] for row in rows]
    else:
        names = [line.split()[0] for line in lines]
    assert names == list(job.Settings.model_fields)


def test_all_lists_what_each_profile_sets(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["jobs", "evidence-retrieval", "--all"]) == 0
    (line,) = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("tpr_rule ")
    ]
    assert line.endswith("[default: last]  [published-cv: nearest]")


@pytest.mark.parametrize("name", job_names())
def test_profiles_bundle_settings_of_the_job(name: str) -> None:
    job = load_job(name)
    for profile, values in job.profiles.items():
        settings = job.Settings.model_validate({"profile": profile})
        assert dict(settings).items() >= dict(values).items()
