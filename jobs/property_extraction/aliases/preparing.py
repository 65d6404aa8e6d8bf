"""`siftlog prepare property-extraction aliases`: a new alias set as a folder.

Everything that decides is named: candidates, verdicts (CSV files, or the runs that
asked for them), decisions of people, an earlier set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from jobs.inputs.rows import InputFindings
from jobs.property_extraction.aliases.alias_set import AliasSet, Origin
from jobs.property_extraction.aliases.building import Built, build
from jobs.property_extraction.aliases.deciding import Evidence
from jobs.property_extraction.aliases.file import read_aliases, set_csv, set_json
from jobs.property_extraction.aliases.given import reviewed_aliases
from jobs.property_extraction.aliases.verdicts import majority
from jobs.property_extraction.aliases.verified import Verified, verified
from jobs.property_extraction.dataset import canonical_names
from jobs.property_extraction.inputs.candidates import Pair, read_candidates
from jobs.property_extraction.inputs.named import named_rubric, named_truth
from jobs.property_extraction.mismatch.candidates import first_targets
from jobs.property_extraction.settings import Settings
from jobs.text import plural
from runner.errors import UsageError
from store.runs import RunFolder

SHOWN = 20
"""Lines of the report that are printed; the file has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What is said of a set."""

    text: str
    json: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasFolder:
    """A set that is about to be written; its inputs have been read and are whole."""

    built: Built

    def write(self, folder: Path) -> Made:
        """Write the set as JSON and CSV, and what was done to make it."""
        made, report = self.built.alias_set, self.built.report
        files = {
            f"aliases-{made.id}.json": set_json(made),
            f"aliases-{made.id}.csv": set_csv(made),
            "report.txt": "".join(f"{line}\n" for line in report),
        }
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8", newline="")
        return Made(
            text="\n".join(_text(made, report)),
            json={
                "id": made.id,
                "parent": made.parent,
                "created_from": asdict(made.created_from),
                "counts": dict(made.counts),
                "rules": dict(Counter(step.rule for step in self.built.steps)),
                "report": list(report),
                "files": list(files),
            },
        )


def prepared_aliases(settings: Settings) -> AliasFolder:
    """Read all inputs and build the set; nothing is written yet.

    Raises:
        UsageError: nothing is named that speaks of pairs, or nothing that says which
            names are right.
        DatasetError: an input is off.
    """
    pairs = () if settings.candidates is None else read_candidates(settings.candidates)
    said = verified(settings.verdicts)
    review = (
        ()
        if settings.review is None
        else reviewed_aliases(settings.review, clash=settings.clash)
    )
    parent = (
        None if settings.parent is None else read_aliases(settings.parent).alias_set
    )
    if not (pairs or said.verdicts or review or parent):
        raise UsageError(
            "Name what speaks of pairs of names: --candidates FILE of a scoring, with "
            "--verdicts RUN or FILE, or --review FILE, a CSV with a column status."
        )
    drafts = first_targets(_names(pairs[: settings.top]))
    built = build(
        Evidence(
            candidates=pairs,
            rulings=majority(said.verdicts),
            review=review,
            parent=parent,
            drafts=drafts if settings.accept_drafts else {},
        ),
        canonical=_canonical(settings, pairs),
        clash=settings.clash,
        strict=settings.strict,
        created_from=_origin(settings, said),
    )
    return AliasFolder(built=built)


def _names(pairs: tuple[Pair, ...]) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        yield pair.pred_name, pair.gt_name


def _canonical(settings: Settings, pairs: tuple[Pair, ...]) -> frozenset[str]:
    """Names of truth and rubric, as far as files say which they are."""
    noticed = InputFindings()
    truth = named_truth(settings, noticed).rows
    named = canonical_names(truth, named_rubric(settings, noticed).rubric)
    if not named and (not pairs or any(pair.canonical is None for pair in pairs)):
        raise UsageError(
            "Name --truth FILE or --rubric FILE, or alias_candidates.csv as the "
            "candidates: which names are right must be known, so that none is renamed."
        )
    told = (pair.pred_name for pair in pairs if pair.canonical)
    return named | {pair.gt_name for pair in pairs} | frozenset(told)


def _origin(settings: Settings, said: Verified) -> Origin:
    """The scoring that the candidates lie in, if they do, and what was asked."""
    path = settings.candidates
    for folder in () if path is None else path.parents:
        run = RunFolder(folder.parent.parent)
        if folder.parent == run.scores and folder.name.isdigit() and run.log.is_file():
            return Origin(
                run=run.run_id,
                scoring=int(folder.name),
                verification_runs=said.runs,
            )
    return Origin(verification_runs=said.runs)


def _text(made: AliasSet, report: tuple[str, ...]) -> Iterator[str]:
    yield f"aliases {made.id}   {made.status_mix}"
    if made.parent is not None:
        yield f"parent {made.parent}"
    yield from report[:SHOWN]
    if len(report) > SHOWN:
        yield f"... and {plural(len(report) - SHOWN, 'line')} more in report.txt"
    run = made.created_from.run or "RUN"
    drafts = " --accept-drafts" if any(e.is_draft for e in made.entries) else ""
    yield f"next: siftlog score {run} --aliases DIR/aliases-{made.id}.json{drafts}"
