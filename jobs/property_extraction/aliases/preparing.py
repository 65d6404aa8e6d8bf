"""`siftlog prepare property-extraction aliases`: writes a new alias set as a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from jobs.kit.inputs.recorded_run import InputRun, find_run, open_run, scoring_of
from jobs.kit.inputs.rows import InputFindings
from jobs.kit.text_format import plural
from jobs.property_extraction.aliases.alias_set import AliasOrigin, AliasSet
from jobs.property_extraction.aliases.building import (
    AliasEvidence,
    BuiltAliasSet,
    build_alias_set,
)
from jobs.property_extraction.aliases.candidates import first_targets
from jobs.property_extraction.aliases.files import (
    read_aliases,
    reviewed_aliases,
    set_csv,
    set_json,
)
from jobs.property_extraction.data import canonical_names
from jobs.property_extraction.inputs import load_rubric, load_truth
from jobs.property_extraction.name_pairs import (
    NamePair,
    NameVerdict,
    majority,
    read_candidates,
    read_verdicts,
)
from jobs.property_extraction.name_verification import verdicts_of
from jobs.property_extraction.settings import PropertySettings
from runner.errors import DatasetError, UsageError
from runner.fingerprint import input_hashes


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedVerdicts:
    """All verdicts, and the ids of the runs that some of them come from."""

    verdicts: tuple[NameVerdict, ...]
    runs: tuple[str, ...]


def collect_verdicts(sources: Iterable[Path]) -> CollectedVerdicts:
    """Read verdicts from CSV files, and from runs by folder, id or its beginning.

    Raises:
        UsageError: a source is neither, or a run of another kind.
        DatasetError: a file is invalid.
    """
    verdicts: list[NameVerdict] = []
    runs: list[str] = []
    for path in sources:
        if path.is_file() or path.suffix == ".csv":
            verdicts += read_verdicts(path)
        else:
            run_id, run_verdicts = _verdicts(path)
            verdicts += run_verdicts
            runs.append(run_id)
    return CollectedVerdicts(verdicts=tuple(verdicts), runs=tuple(runs))


def _verdicts(path: Path) -> tuple[str, tuple[NameVerdict, ...]]:
    """Return a run's id and its verdicts."""
    try:
        folder = find_run(path)
    except UsageError as error:
        raise UsageError(
            f"--verdicts {path.name}: neither a CSV file nor a run; {error}."
        ) from error
    with open_run(folder) as run:
        if getattr(run.settings, "mode", None) != "verify":
            raise UsageError(
                f"Run {run.run_id} verifies no names: name one that was made with "
                "siftlog run property-extraction --mode verify."
            )
        _refuse_changes(run)
        dataset = run.job.load(run.settings)
        return run.run_id, tuple(verdicts_of(dataset, run.answers))


def _refuse_changes(run: InputRun) -> None:
    """Raise if the candidates changed: they define the pairs of the run's tasks."""
    before = {
        input_file.sha256
        for input_file in run.inputs
        if input_file.setting == "candidates"
    }
    for input_file in input_hashes(run.job.inputs(run.settings)):
        if input_file.setting == "candidates" and input_file.sha256 not in before:
            raise DatasetError(
                f"{input_file.path} is not the file that run {run.run_id} was started "
                "with (put that one back, or name alias_verification_all__MODEL.csv of "
                "a scoring of the run instead)."
            )


PRINTED_LINES = 20
"""Lines of the report to print; the file has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasFolderSummary:
    """A summary of a set, as text and JSON."""

    text: str
    json: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasFolder:
    """A set ready to be written; its inputs have been read and validated."""

    built: BuiltAliasSet

    def write(self, folder: Path) -> AliasFolderSummary:
        """Write the set as JSON and CSV, and a report of the steps."""
        alias_set, report = self.built.alias_set, self.built.report
        files = {
            f"aliases-{alias_set.id}.json": set_json(alias_set),
            f"aliases-{alias_set.id}.csv": set_csv(alias_set),
            "report.txt": "".join(f"{line}\n" for line in report),
        }
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8", newline="")
        return AliasFolderSummary(
            text="\n".join(_text(alias_set, report)),
            json={
                "id": alias_set.id,
                "parent": alias_set.parent,
                "created_from": asdict(alias_set.created_from),
                "counts": dict(alias_set.counts),
                "rules": dict(Counter(step.rule for step in self.built.steps)),
                "report": list(report),
                "files": list(files),
            },
        )


def prepare_aliases(settings: PropertySettings) -> AliasFolder:
    """Read all inputs and build the set; nothing is written yet.

    Raises:
        UsageError: no source of pairs is named, or none of canonical names.
        DatasetError: an input is invalid.
    """
    pairs = () if settings.candidates is None else read_candidates(settings.candidates)
    collected = collect_verdicts(settings.verdicts)
    review = (
        ()
        if settings.review is None
        else reviewed_aliases(settings.review, clash=settings.clash)
    )
    parent = (
        None if settings.parent is None else read_aliases(settings.parent).alias_set
    )
    if not (pairs or collected.verdicts or review or parent):
        raise UsageError(
            "Name what speaks of pairs of names: --candidates FILE of a scoring, with "
            "--verdicts RUN or FILE, or --review FILE, a CSV with a column status."
        )
    drafts = first_targets(pair.names for pair in pairs[: settings.top])
    built = build_alias_set(
        AliasEvidence(
            candidates=pairs,
            rulings=majority(collected.verdicts),
            review=review,
            parent=parent,
            drafts=drafts if settings.accept_drafts else {},
        ),
        canonical=_canonical(settings, pairs),
        clash=settings.clash,
        strict=settings.strict,
        created_from=_origin(settings, collected),
    )
    return AliasFolder(built=built)


def _canonical(
    settings: PropertySettings, pairs: tuple[NamePair, ...]
) -> frozenset[str]:
    """Return the names of truth and rubric, as far as files define them."""
    findings = InputFindings()
    truth = load_truth(settings, findings).rows
    names = canonical_names(truth, load_rubric(settings, findings).rubric)
    if not names and (not pairs or any(pair.canonical is None for pair in pairs)):
        raise UsageError(
            "Name --truth FILE or --rubric FILE, or alias_candidates.csv as the "
            "candidates: which names are right must be known, so that none is renamed."
        )
    right_names = (pair.pred_name for pair in pairs if pair.canonical)
    return names | {pair.gt_name for pair in pairs} | frozenset(right_names)


def _origin(settings: PropertySettings, collected: CollectedVerdicts) -> AliasOrigin:
    """Return the scoring that contains the candidates, if any, and the runs."""
    path = settings.candidates
    if path is not None and (origin := scoring_of(path)):
        return AliasOrigin(
            run=origin.run_id,
            scoring=origin.number,
            verification_runs=collected.runs,
        )
    return AliasOrigin(verification_runs=collected.runs)


def _text(alias_set: AliasSet, report: tuple[str, ...]) -> Iterator[str]:
    yield f"aliases {alias_set.id}   {alias_set.status_mix}"
    if alias_set.parent is not None:
        yield f"parent {alias_set.parent}"
    yield from report[:PRINTED_LINES]
    if len(report) > PRINTED_LINES:
        yield (
            f"... and {plural(len(report) - PRINTED_LINES, 'line')} more in report.txt"
        )
    run = alias_set.created_from.run or "RUN"
    drafts = " --accept-drafts" if any(e.is_draft for e in alias_set.entries) else ""
    yield f"next: siftlog score {run} --aliases DIR/aliases-{alias_set.id}.json{drafts}"
