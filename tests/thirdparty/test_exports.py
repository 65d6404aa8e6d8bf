"""What `siftlog export --to` writes, read by the programs that it is written for."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest

from store.database import open_reader
from store.read.status import run_started
from tests.browsers import browsing, needs_browser
from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.processes import simulated
from tests.thirdparty.judges import (
    ENVIRONMENT,
    require_judges,
    run_there,
    schema,
)
from tests.thirdparty.servers import fetch_json, free_port, served

JOB = "paper-investigation"

pytestmark = [
    pytest.mark.timeout(900),  # the environment may have to be made
    pytest.mark.xdist_group("judges"),
]


@pytest.fixture(scope="module")
def cwd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a run `r` of two models and two replicates, with failures."""
    require_judges()
    cwd = tmp_path_factory.mktemp("exports")
    corpus = write_corpus(cwd / "corpus", 3)
    faults = ("--rate-refuse=0.2", "--seed=3", "--dialect=azure")
    key = {"K_API_KEY": "sk-0123456789abcdef0123"}
    with simulated("--job", JOB, *faults, cwd=cwd) as url:
        models = ("--model=m/1", "--model=m/2", f"--base-url={url}", "--price=1,2,0.5")
        models += ("--api-key-env=K_API_KEY",)
        words = (*models, "--run-id=r", "--replicates=2", "--no-report")
        done = siftlog("run", JOB, *corpus, *words, cwd=cwd, env=key, check=False)
    assert done.returncode == 3, done.stderr  # some tasks fail
    siftlog("export", "r", "answers", "tasks", "scores", cwd=cwd)
    return cwd


def _rows(cwd: Path, name: str) -> list[dict[str, Any]]:
    """A table of the run, written by siftlog itself."""
    lines = (cwd / "runs/r/exports" / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


READ_INSPECT = """
import json, sys
from pathlib import Path
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries
logs = []
for info in list_eval_logs(sys.argv[1]):
    log = read_eval_log(info)
    logs.append({
        "log": log.model_dump(mode="json", exclude={"samples"}),
        "samples": [sample.model_dump(mode="json") for sample in log.samples],
        "summaries": [
            summary.model_dump(mode="json")
            for summary in read_eval_log_sample_summaries(info)
        ],
    })
print(json.dumps(logs))
"""


def test_inspect_reads_the_same_samples_scores_and_usage(cwd: Path) -> None:
    siftlog("export", "r", "--to", "inspect", "logs", cwd=cwd)
    logs = {
        read["log"]["eval"]["model"]: read
        for read in run_there(READ_INSPECT, "logs", cwd=cwd)
    }
    answers = _rows(cwd, "answers")
    failed = [row for row in _rows(cwd, "tasks") if row["state"] == "failed"]
    assert failed
    verdicts = _rows(cwd, "scores/1/verdicts")
    for model, read in logs.items():
        samples = {s["metadata"]["siftlog_task"]: s for s in read["samples"]}
        replied = {row["task"]: row for row in answers if row["model"] == model}
        for task, row in replied.items():
            _compare_reply(samples.pop(task), row)
        assert samples.keys() == {r["task"] for r in failed if r["model"] == model}
        for sample in samples.values():
            assert sample["error"]["message"].startswith("ContentFiltered")
        scored = Counter(
            (sample["metadata"]["siftlog_task"], score["answer"], score["value"])
            for sample in read["samples"]
            for score in (sample["scores"] or {}).values()
        )
        values = {True: "C", False: "I"}
        assert scored == Counter(
            (v["task"], v["value"], values.get(v["correct"], v["value"]))
            for v in verdicts
            if v["model"] == model
        )
        _compare_header(read["log"], model, cwd, replied)
        assert {(s["id"], s["epoch"]) for s in read["summaries"]} == {
            (s["id"], s["epoch"]) for s in read["samples"]
        }
    assert sorted(logs) == ["m/1", "m/2"]


def _compare_reply(sample: dict[str, Any], row: dict[str, Any]) -> None:
    assert sample["id"] == f"{row['stage']}/{row['key']}"
    assert sample["epoch"] == row["replicate"]
    assert sample["error"] is None
    *sent, reply = sample["messages"]
    assert reply["content"] == sample["output"]["completion"] == row["reply"]
    assert [{"role": m["role"], "content": m["content"]} for m in sent] == json.loads(
        row["prompt"]
    )
    usage = sample["output"]["usage"]
    assert usage == sample["model_usage"][row["model"]]
    cached = usage["input_tokens_cache_read"] or 0
    assert usage["input_tokens"] + cached == row["tokens_in"]
    assert usage["output_tokens"] == row["tokens_out"]
    assert usage["total_cost"] == row["cost_usd"]


def _compare_header(
    log: dict[str, Any], model: str, cwd: Path, replied: dict[int, dict[str, Any]]
) -> None:
    assert log["status"] == "success"
    (score, *_) = log["results"]["scores"]
    card = json.loads((cwd / "runs/r/scores/1/scorecard.json").read_text())
    assert {path: metric["value"] for path, metric in score["metrics"].items()} == {
        path: metric["value"]
        for path, metric in card["models"][model]["metrics"].items()
        if metric["value"] is not None
    }
    usage = log["stats"]["model_usage"][model]
    assert usage["output_tokens"] == sum(row["tokens_out"] for row in replied.values())
    assert usage["total_tokens"] == usage["output_tokens"] + sum(
        row["tokens_in"] for row in replied.values()
    )
    cost = sum(row["cost_usd"] for row in replied.values())
    assert usage["total_cost"] == pytest.approx(cost, abs=1e-12)


VALIDATE_CRATE = """
import json, sys
from pathlib import Path
import requests, rocrate
from rdflib.plugins.shared.jsonld.context import Context
from rocrate.rocrate import ROCrate
from rocrate_validator import services
from rocrate_validator.models import Severity

# no network: the newer context in rocrate, which names one of the crate's terms anew
text = (Path(rocrate.__file__).parent / "data/ro-crate.jsonld").read_text()
text = text.replace("https://bioschemas.org/terms/", "https://bioschemas.org/")

def get(session, url, **more):
    assert url == "https://w3id.org/ro/crate/1.1/context", url
    response = requests.Response()
    response.status_code, response.url, response._content = 200, url, text.encode()
    response.headers["content-type"] = "application/ld+json"
    return response

requests.Session.get = get
Context._fetch_context = lambda self, source, base, seen: get(None, source).json()
issues = []
for profile in ("ro-crate-1.1", "workflow-run-crate-0.5"):
    result = services.validate(services.ValidationSettings(
        rocrate_uri=sys.argv[1], profile_identifier=profile, no_cache=True,
        requirement_severity=Severity.REQUIRED,
    ))
    issues += [issue.message for issue in result.get_issues()]
    assert result.passed() == (not issues)
crate = ROCrate(sys.argv[1])
action = crate.get("#run")
print(json.dumps({
    "issues": issues,
    "workflow": crate.mainEntity.id,
    "instrument": action["instrument"].id,
    "results": [entity.id for entity in action["result"]],
    "values": {e["name"]: e["value"] for e in crate.get_by_type("PropertyValue")},
    "inputs": [crate.get("#input-1")["sha256"], crate.get("#input-2")["sha256"]],
}))
"""


def test_a_crate_is_valid_and_its_bundle_is_proven(cwd: Path) -> None:
    siftlog("export", "r", "--to", "ro-crate", "crate", cwd=cwd)
    read = run_there(VALIDATE_CRATE, "crate", cwd=cwd)
    assert read["issues"] == []
    assert read["workflow"] == read["instrument"] == "run.toml"
    assert read["results"] == ["r.siftlog.zip", "scorecard.json"]
    assert read["values"]["model: subject"] == '["m/1", "m/2"]'
    with open_reader(cwd / "runs/r/log.db") as reader:
        first, second, *_ = run_started(reader).inputs
    assert read["inputs"] == [first.sha256, second.sha256]
    siftlog("verify", "crate/r.siftlog.zip", cwd=cwd)
    siftlog("export", "r", "--to", "ro-crate", "crate.zip", cwd=cwd)
    assert run_there(VALIDATE_CRATE, "crate.zip", cwd=cwd) == read


def test_datasets_loads_every_table_that_the_card_names(
    cwd: Path, tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets")
    siftlog("export", "r", "--to", "hugging-face", "hub", cwd=cwd)
    folder = str(cwd / "hub")
    names = datasets.get_dataset_config_names(folder)
    assert {f"{name}.parquet" for name in names} == {
        path.name for path in (cwd / "hub/data").iterdir()
    }
    loaded = {
        name: datasets.load_dataset(
            folder, name, split="train", cache_dir=str(tmp_path)
        ).to_list()
        for name in names
    }
    assert loaded["answers"] == _rows(cwd, "answers")
    assert loaded["tasks"] == _rows(cwd, "tasks")
    for name in ("metrics", "verdicts", "tables/questions"):
        assert loaded[name.replace("/", "-")] == _rows(cwd, f"scores/1/{name}")


WRITE_INSPECT = """
import json
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate, system_message

outputs = []
for i in range(12):
    output = ModelOutput.from_content("mockllm/model", f"answer {i % 4}")
    output.usage = ModelUsage(
        input_tokens=100 + i, output_tokens=5 + i, total_tokens=112 + 2 * i,
        input_tokens_cache_read=7,
    )
    outputs.append(output)
samples = [
    Sample(id=f"s{i}", input=f"Question {i}?", target=f"answer {i % 3}")
    for i in range(6)
]
task = Task(
    name="toy", dataset=samples, solver=[system_message("Be brief."), generate()],
    scorer=[match(), includes()], epochs=2,
)
model = get_model("mockllm/model", custom_outputs=outputs)
eval(task, model=model, log_dir="theirs", display="none", max_samples=1)
print(json.dumps(None))
"""

COMPARE_INSPECT = """
import json, sys
from pathlib import Path
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.scorer import value_to_float

number = value_to_float()
logs = []
for name in sys.argv[1:]:
    files = list_eval_logs(name) if Path(name).is_dir() else [name]
    (log,) = map(read_eval_log, files)
    logs.append({
        "model": log.eval.model,
        "usage": {k: v.model_dump() for k, v in log.stats.model_usage.items()},
        "samples": [
            {
                "id": sample.id,
                "epoch": sample.epoch,
                "target": sample.target,
                "messages": [(m.role, m.text) for m in sample.messages],
                "completion": sample.output.completion,
                "usage": sample.output.usage.model_dump(),
                "scores": {
                    name: number(score.value) for name, score in sample.scores.items()
                    if name in ("match", "includes")
                },
            }
            for sample in sorted(log.samples, key=lambda s: (s.epoch, s.id))
        ],
    })
print(json.dumps(logs))
"""


def test_a_log_of_inspect_is_equal_after_import_and_export(tmp_path: Path) -> None:
    require_judges()
    run_there(WRITE_INSPECT, cwd=tmp_path)
    log = next((tmp_path / "theirs").glob("*.eval"))
    siftlog("import", log, "--as", "imported", "--no-report", cwd=tmp_path)
    targets = ("ours", "ours.eval", "ours.json")
    for target in targets:
        siftlog("export", "imported", "--to", "inspect", target, cwd=tmp_path)
    theirs, *ours = run_there(COMPARE_INSPECT, "theirs", *targets, cwd=tmp_path)
    assert len(theirs["samples"]) == 12
    assert ours == [theirs] * 3


@contextmanager
def _viewing(cwd: Path, folder: str, home: Path) -> Iterator[str]:
    """`inspect view` of a folder; yield its address."""
    port = free_port()
    words = (ENVIRONMENT.home / "bin/inspect", "view", "start", "--log-dir", folder)
    words += ("--host", "127.0.0.1", "--port", port)
    env = {"XDG_DATA_HOME": str(home)}  # where it notes that it runs
    url = f"http://127.0.0.1:{port}"
    with served(words, cwd=cwd, url=url, env=env):
        yield url


def test_inspect_view_lists_the_logs_and_their_samples(
    cwd: Path, tmp_path: Path
) -> None:
    siftlog("export", "r", "--to", "inspect", "listed", cwd=cwd)
    tasks = _rows(cwd, "tasks")
    with _viewing(cwd, "listed", tmp_path) as url:
        files = fetch_json(f"{url}/api/logs")["files"]
        assert {Path(file["name"]).name for file in files} == {
            path.name for path in (cwd / "listed").iterdir()
        }
        for file in files:
            log = fetch_json(f"{url}/api/logs/{quote(file['name'], safe='')}")
            model = log["eval"]["model"]
            ended = {
                (f"{row['stage']}/{row['key']}", row["replicate"], row["state"])
                for row in tasks
                if row["model"] == model and row["state"] in {"completed", "failed"}
            }
            assert ended
            assert ended == {
                (s["id"], s["epoch"], "failed" if s.get("error") else "completed")
                for s in log["samples"]
            }


@pytest.mark.skipif("SIFTLOG_PROVE" not in os.environ, reason="SIFTLOG_PROVE=1")
@needs_browser
def test_inspect_view_shows_the_samples_in_a_browser(cwd: Path, tmp_path: Path) -> None:
    siftlog("export", "r", "--to", "inspect", "viewed", cwd=cwd)
    log = next((cwd / "viewed").iterdir())
    with _viewing(cwd, "viewed", tmp_path) as url:
        shown = asyncio.run(_shown(f"{url}/#/logs/{log.name}/samples", tmp_path))
    model = log.name.split("_")[1].removeprefix(f"{JOB}-").replace("-", "/")
    answers = [row for row in _rows(cwd, "answers") if row["model"] == model]
    assert f"{answers[0]['stage']}/{answers[0]['key']}" in shown
    count = sum(
        row["model"] == model and row["state"] in {"completed", "failed"}
        for row in _rows(cwd, "tasks")
    )
    assert f"{count} rows" in shown


async def _shown(url: str, tmp_path: Path) -> str:
    async with browsing(tmp_path) as (page,):
        await page.resize(1400, 900)
        await page.open(url)
        await page.until("document.body.innerText.includes(' rows')")
        return str(await page.look("document.body.innerText"))


READ_MLFLOW = """
import json, os, sys
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
from pathlib import Path
from mlflow.tracking import MlflowClient
client = MlflowClient(Path(sys.argv[1]).absolute().as_uri())
runs = []
for experiment in client.search_experiments(filter_string="name != 'Default'"):
    for run in client.search_runs([experiment.experiment_id]):
        files = {
            entry.path: Path(client.download_artifacts(run.info.run_id, entry.path))
            .read_text("utf-8").splitlines()
            for entry in client.list_artifacts(run.info.run_id)
        }
        runs.append({
            "experiment": experiment.name, **run.to_dictionary(), "artifacts": files,
        })
print(json.dumps(runs))
"""


def test_mlflow_reads_a_run_for_each_model(cwd: Path) -> None:
    siftlog("export", "r", "--to", "mlflow", "mlruns", cwd=cwd)
    runs = run_there(READ_MLFLOW, "mlruns", cwd=cwd)
    assert {run["data"]["params"]["model"] for run in runs} == {"m/1", "m/2"}
    for run in runs:
        model = run["data"]["params"]["model"]
        assert run["experiment"] == JOB
        assert run["info"]["status"] == "FINISHED"
        answers = [row for row in _rows(cwd, "answers") if row["model"] == model]
        assert [json.loads(x) for x in run["artifacts"]["answers.jsonl"]] == answers
        expected = {
            row["metric"].replace("~", "_"): row["value"]  # MLflow takes no ~
            for row in _rows(cwd, "scores/1/metrics")
            if row["model"] == model and row["value"] is not None
        }
        metrics = run["data"]["metrics"]
        assert expected.items() <= metrics.items()
        assert metrics.keys() - expected.keys() == {
            *("siftlog.replies", "siftlog.tokens_in", "siftlog.tokens_out"),
            "siftlog.cost_usd",
        }
        assert metrics["siftlog.tokens_out"] == sum(a["tokens_out"] for a in answers)


def test_the_schema_of_every_eval_ever_accepts_both_levels(cwd: Path) -> None:
    siftlog("export", "r", "--to", "every-eval-ever", "eee", cwd=cwd)
    verdicts = _rows(cwd, "scores/1/verdicts")
    aggregate = _validator("eval.schema.json")
    instance = _validator("instance_level_eval.schema.json")
    records = [json.loads(p.read_text()) for p in (cwd / "eee").rglob("*.json")]
    assert {record["model_info"]["id"] for record in records} == {"m/1", "m/2"}
    for record in records:
        aggregate.validate(record)
        model = record["model_info"]["id"]
        assert {
            result["evaluation_result_id"].partition("#")[2]: result["score_details"]
            for result in record["evaluation_results"]
        }.keys() == {
            row["metric"]
            for row in _rows(cwd, "scores/1/metrics")
            if row["model"] == model and row["value"] is not None
        }
        samples = record["detailed_evaluation_results"]
        content = (cwd / "eee" / samples["file_path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == samples["checksum"]
        lines = [json.loads(line) for line in content.splitlines()]
        assert len(lines) == samples["total_rows"]
        for line in lines:
            instance.validate(line)
            assert line["evaluation_id"] == record["evaluation_id"]
        assert Counter(
            (int(line["metadata"]["task"]), line["evaluation"]["is_correct"])
            for line in lines
        ) == Counter(
            (verdict["task"], verdict["correct"])
            for verdict in verdicts
            if verdict["model"] == model and verdict["correct"] is not None
        )


def test_the_schema_of_every_eval_ever_accepts_scores_of_another_tool(
    tmp_path: Path,
) -> None:
    require_judges()
    of_all = {"id": "q", "prompt": "Say 4", "model": "m/1"}
    rows = [
        {**of_all, "reply": "4", "target": "4", "scores": {"exact": 1, "length": 7}},
        {**of_all, "error": "Timeout", "scores": {"exact": 0}},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ("import", "rows.jsonl", "--as", "i", "--no-report")
    siftlog(*words, cwd=tmp_path, check=False)  # one call had failed
    siftlog("export", "i", "--to", "every-eval-ever", "eee", cwd=tmp_path)
    (samples,) = (tmp_path / "eee").rglob("*_samples.jsonl")
    lines = [json.loads(line) for line in samples.read_bytes().splitlines()]
    instance = _validator("instance_level_eval.schema.json")
    for line in lines:
        instance.validate(line)
    stated = [(line["evaluation_name"], *line["evaluation"].values()) for line in lines]
    assert stated == [
        ("replies", 1.0, True),
        ("exact", 1.0, True),
        ("length", 7.0, False),
        ("exact", 0.0, False),
    ]


def _validator(name: str) -> Any:
    published = schema(name)
    kind = jsonschema.validators.validator_for(published)
    kind.check_schema(published)
    return kind(published)
