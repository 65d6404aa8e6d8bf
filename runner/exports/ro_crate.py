"""Writes a Workflow Run RO-Crate 0.5 around a bundle.

The crate holds the bundle, which `siftlog verify` proves, the run's configuration as
the main workflow, and the scorecard as its result. The metadata describe the settings
and inputs of the run without copying the inputs, which are in the bundle.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from runner.bundle.archive import pieces, plain_member
from runner.bundle.manifest import SCORECARD
from runner.bundle.pack import make_bundle
from runner.errors import UsageError
from runner.exports.source import ExportSource
from store.clock import iso_time

METADATA: Final = "ro-crate-metadata.json"

RO_CRATE: Final = "https://w3id.org/ro/crate/1.1"
WORKFLOW_RO_CRATE: Final = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES: Final = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    WORKFLOW_RO_CRATE: ("Workflow RO-Crate", "1.0"),
}
"""Profiles of the crate: name and version."""

CONTEXT: Final = [
    f"{RO_CRATE}/context",
    {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
]

LANGUAGE: Final = "#siftlog"
ACTION: Final = "#run"
LICENSE: Final = "#license"

_ENDS: Final = {
    "run_finished": "CompletedActionStatus",
    "run_cancelled": "FailedActionStatus",
}
"""Status of the action by the last event that ended work; otherwise it is active."""

Entity = dict[str, Any]


def write(source: ExportSource, folder: Path) -> Iterator[Path]:
    """Write the crate into *folder*; yield its metadata file.

    Raises:
        UsageError: the run has no scoring, or prompts were to be left out.
        DatasetError: an input is missing or was changed since the scoring.
        RunnerError: a file contains a key, or the scorecard cannot be recomputed.
    """
    if not source.with_prompts:
        raise UsageError(
            "A bundle holds the prompts of its run: leave out --no-prompts, or export "
            "another form."
        )
    run_id = source.folder.run_id
    number = None if source.scoring is None else source.scoring.number
    bundle = make_bundle(
        source.folder,
        number,
        folder / f"{run_id}.siftlog.zip",
        report=False,
        environ=source.environ,
        progress=source.progress,
    )
    workflow = _workflow(source, folder)
    card = folder / SCORECARD
    scoring_folder = source.folder.scores / str(bundle.manifest.scoring)
    shutil.copyfile(scoring_folder / SCORECARD, card)
    graph = _graph(source, workflow, bundle.path, card)
    path = folder / METADATA
    text = json.dumps(
        {"@context": CONTEXT, "@graph": graph}, indent=1, ensure_ascii=False
    )
    path.write_text(f"{text}\n", "utf-8")
    yield path


def write_file(source: ExportSource, path: Path) -> None:
    """Write the crate as a zip archive; raises as `write` does."""
    with TemporaryDirectory(dir=path.parent) as draft:
        folder = Path(draft)
        list(write(source, folder))
        with ZipFile(path, "w") as archive:
            for part in sorted(folder.iterdir()):
                # the bundle is packed already
                method = ZIP_STORED if part.suffix == ".zip" else ZIP_DEFLATED
                member = plain_member(part.name, method)
                member.file_size = part.stat().st_size
                with part.open("rb") as content, archive.open(member, "w") as file:
                    shutil.copyfileobj(content, file)


def _workflow(source: ExportSource, folder: Path) -> Path:
    """Write what defines the run: its configuration, or the job's settings alone."""
    if source.folder.config.is_file():
        path = folder / source.folder.config.name
        shutil.copyfile(source.folder.config, path)
    else:
        path = folder / "settings.json"
        path.write_text(f"{source.first.settings}\n", "utf-8")
    return path


def _graph(
    source: ExportSource, workflow: Path, bundle: Path, card: Path
) -> list[Entity]:
    first = source.first
    settings = [
        _value(f"#setting-{quote(name, safe='')}", name, value)
        for name, value in source.settings().items()
        if value is not None
    ]
    models = [
        _value(f"#model-{quote(role, safe='')}", f"model: {role}", models)
        for role, models in first.models.items()
    ]
    inputs: list[Entity] = [
        {
            "@id": f"#input-{number}",
            "@type": "CreativeWork",
            "name": f"{read.setting}: {Path(read.path).name}",
            "description": f"An input of the run, inside {bundle.name}.",
            "sha256": read.sha256,
        }
        for number, read in enumerate(first.inputs, 1)
    ]
    files = [
        _file(
            workflow,
            f"Configuration of run {first.run_id}",
            "application/json" if workflow.suffix == ".json" else "application/toml",
            extra={
                "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
                "programmingLanguage": {"@id": LANGUAGE},
                "version": first.job_version,
            },
        ),
        _file(bundle, "The run with all that its numbers need", "application/zip"),
        _file(card, f"Metrics of job {first.job}", "application/json"),
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Run {first.run_id} of siftlog job {first.job}",
        "description": (
            f"Answers of language models in job {first.job}, their metrics, and a "
            "bundle from which siftlog computes the metrics again."
        ),
        "datePublished": iso_time(source.ended_us),
        "license": {"@id": LICENSE},
        "conformsTo": _references(PROFILES),
        "hasPart": _references([file["@id"] for file in files]),
        "mainEntity": {"@id": workflow.name},
        "mentions": {"@id": ACTION},
    }
    return [
        {
            "@id": METADATA,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": _references([RO_CRATE, WORKFLOW_RO_CRATE]),
        },
        root,
        *(
            {"@id": url, "@type": "CreativeWork", "name": name, "version": number}
            for url, (name, number) in PROFILES.items()
        ),
        {
            "@id": LICENSE,
            "@type": "CreativeWork",
            "name": "No license stated",
            "description": "Papers, prompts and replies have licenses of their own; "
            "state one before you publish the crate.",
        },
        {
            "@id": LANGUAGE,
            "@type": ["ComputerLanguage", "SoftwareApplication"],
            "name": "siftlog",
            "softwareVersion": first.siftlog_version,
            "description": "Runs jobs of language models over scientific papers.",
        },
        _action(source, workflow, [*settings, *models, *inputs], files[1:]),
        *files,
        *settings,
        *models,
        *inputs,
    ]


def _action(
    source: ExportSource,
    workflow: Path,
    objects: Sequence[Entity],
    results: Sequence[Entity],
) -> Entity:
    tasks = source.status.tasks
    return {
        "@id": ACTION,
        "@type": "CreateAction",
        "name": f"Run {source.first.run_id}",
        "description": (
            f"{tasks.completed} tasks completed, {tasks.failed} failed, "
            f"{tasks.skipped} skipped, {tasks.open} open."
        ),
        "startTime": iso_time(source.status.created_us),
        "endTime": iso_time(source.ended_us),
        "actionStatus": "http://schema.org/"
        + _ENDS.get(source.status.signs.phase, "ActiveActionStatus"),
        "instrument": {"@id": workflow.name},
        "object": _references([entity["@id"] for entity in objects]),
        "result": _references([entity["@id"] for entity in results]),
    }


def _file(
    path: Path, name: str, media_type: str, *, extra: Mapping[str, Any] | None = None
) -> Entity:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for piece in pieces(file):
            digest.update(piece)
    return {
        "@id": quote(path.name),
        "@type": "File",
        "name": name,
        "encodingFormat": media_type,
        "contentSize": str(path.stat().st_size),
        "sha256": digest.hexdigest(),
        **(extra or {}),
    }


def _value(entity_id: str, name: str, value: object) -> Entity:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"@id": entity_id, "@type": "PropertyValue", "name": name, "value": text}


def _references(ids: Sequence[str] | Mapping[str, Any]) -> list[Entity]:
    return [{"@id": entity_id} for entity_id in ids]
