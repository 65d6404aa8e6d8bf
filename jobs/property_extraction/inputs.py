"""Loads the inputs that settings name, and validates them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from jobs.kit.inputs.column_map import ColumnMap, column_map, pairs_within
from jobs.kit.inputs.hub import table_file
from jobs.kit.inputs.rows import InputFindings
from jobs.kit.inputs.sampling import draw_sample, report_sample
from jobs.property_extraction.aliases.alias_set import AliasSet
from jobs.property_extraction.curated_files import TRUTH_FIELDS as CURATED
from jobs.property_extraction.curated_files import (
    RubricFile,
    TruthFile,
    read_clusters,
    read_rubric,
    read_space_groups,
    read_truth,
    read_unit_table,
)
from jobs.property_extraction.data import PropertyDataset, canonical_names
from jobs.property_extraction.input_table import NA, open_table
from jobs.property_extraction.name_pairs import VERDICT_FIELDS as VERDICTS
from jobs.property_extraction.name_pairs import (
    read_candidates,
    read_verdicts,
    with_examples,
)
from jobs.property_extraction.papers import PaperLibrary, read_papers
from jobs.property_extraction.prediction_files import PREDICTION_FIELDS as PREDICTED
from jobs.property_extraction.prediction_files import prediction_files, read_predictions
from jobs.property_extraction.prompts import WORDING
from jobs.property_extraction.rows import TruthRow
from jobs.property_extraction.settings import DATA, Mode, PropertySettings
from jobs.property_extraction.tasks import NameQuestion, name_questions
from jobs.property_extraction.values.comparison import ComparisonKind, Property, Rubric
from jobs.property_extraction.values.unit_reader import UnitTableRow
from runner.errors import UsageError
from runner.fingerprint import input_hashes
from runner.job import InputFile

MAPPED_FIELDS = tuple(dict.fromkeys((*PREDICTED, *CURATED, *VERDICTS)))
"""Fields to which a column of predictions, curated values or verdicts may be mapped."""


def mapped(settings: PropertySettings, paths: Iterable[Path]) -> ColumnMap:
    """Return the fields by the columns of all *paths* that `--map` renames.

    Raises:
        UsageError: a pair names an unknown field, or a column that no file has.
    """
    if not settings.map:
        return {}
    columns = [name for path in paths for name in open_table(path).names]
    return column_map(settings.map, MAPPED_FIELDS, columns)


def mapped_in(settings: PropertySettings, path: Path) -> ColumnMap:
    """Return the fields by the columns of one file that `--map` renames.

    The other pairs are about other files; the import has checked them.
    """
    if not settings.map:
        return {}
    columns = open_table(path).names
    pairs = pairs_within(settings.map, MAPPED_FIELDS, columns)
    return column_map(pairs, MAPPED_FIELDS, columns)


def load_truth(settings: PropertySettings, findings: InputFindings) -> TruthFile:
    """Return the curated values; raise `DatasetError` if a row is invalid."""
    if settings.truth is None:
        return TruthFile(rows=(), blank=0)
    path = table_file(settings.truth)
    return read_truth(path, findings, NA[settings.na], mapped_in(settings, path))


def load_rubric(settings: PropertySettings, findings: InputFindings) -> RubricFile:
    """Return the rubric of properties; raise `DatasetError` if a row is invalid."""
    if settings.rubric is None:
        return RubricFile(rubric=Rubric())
    is_lenient = settings.unknown_rubric == "exact"
    return read_rubric(settings.rubric, findings, is_unknown_exact=is_lenient)


def load_unit_table(settings: PropertySettings) -> tuple[UnitTableRow, ...]:
    """Return further units; raise `DatasetError` if a row is invalid."""
    return () if settings.unit_table is None else read_unit_table(settings.unit_table)


SAMPLE = WORDING.file.with_name("sample")

RULES = ("truth", "rubric", "clusters", "space_groups", "unit_table", "aliases")
"""Inputs by which rows are scored."""

READ = ("papers", *RULES)
"""All inputs of a run that extracts."""

_SAMPLED = {"truth": SAMPLE / "truth.csv", "rubric": SAMPLE / "rubric.csv"}

SAMPLES: Mapping[Mode, Mapping[str, object]] = {
    "extract": {
        **_SAMPLED,
        "papers": SAMPLE / "papers",
        "clusters": SAMPLE / "clusters.json",
        "unit_table": SAMPLE / "units.csv",
        # scoring reads none of these; `prepare` builds alias sets from them
        "candidates": SAMPLE / "candidates.csv",
        "verdicts": tuple(
            SAMPLE / "verdicts" / f"alias_verification_all__sample--{model}.csv"
            for model in ("teasel-70b", "yarrow-8b")
        ),
        "review": SAMPLE / "review.csv",
    },
    # none of these pairs is verified yet
    "verify": {**_SAMPLED, "candidates": SAMPLE / "candidates.csv"},
}
"""Default inputs of each mode if none are named."""

VERIFIED = ("candidates", "truth", "rubric", "preds", "verdicts")
"""Inputs that affect a verification of names."""


def with_sample(settings: PropertySettings) -> PropertySettings:
    """Return settings for the shipped sample if no input is named, else *settings*."""
    if any(getattr(settings, name) for name in DATA):
        return settings
    return settings.model_copy(update=SAMPLES[settings.mode])


def require(settings: PropertySettings) -> None:
    """Raise for settings that a run cannot start from.

    Raises:
        UsageError: the papers, or the properties of the prompt, are not named; or the
            candidates of a verification are not.
    """
    if settings.mode == "verify":
        _require_candidates(settings)
        return
    lists_rubric = settings.properties == "rubric" or (
        settings.names == "listed" and settings.properties == "all"
    )
    if lists_rubric and settings.rubric is None:
        raise UsageError("Name the rubric that lists the properties: --rubric FILE.")
    if settings.papers is None:
        raise UsageError(
            "Name the papers, --papers DIR or FILE.jsonl, or no input at all to run on "
            "the shipped sample."
        )
    if settings.properties == "truth" and settings.truth is None:
        raise UsageError(
            "Name the curated values whose properties the prompt lists: --truth FILE "
            "(or list those of a rubric: --properties rubric --rubric FILE)."
        )


def _require_candidates(settings: PropertySettings) -> None:
    if settings.candidates is None:
        raise UsageError(
            "Name the pairs to verify, --candidates FILE, such as "
            "alias_candidates_review.csv of a scoring; or import verdicts on them, "
            "--verdicts FILE."
        )


def inputs(settings: PropertySettings) -> tuple[InputFile, ...]:
    """Return the files and folders that `load` reads under these settings."""
    return tuple(
        input_file
        for name in (*(VERIFIED if settings.mode == "verify" else READ), "prompts")
        for input_file in _files(name, getattr(settings, name))
    )


def _files(name: str, value: Path | tuple[Path, ...] | None) -> Iterator[InputFile]:
    """Yield the files of a setting; of several, each has a separate name."""
    paths = value if isinstance(value, tuple) else (value,)
    for number, path in enumerate(paths, start=1):
        if path is not None:
            setting = name if number == 1 else f"{name}.{number}"
            yield InputFile(
                setting=setting, path=table_file(path) if name == "truth" else path
            )


def load(settings: PropertySettings) -> PropertyDataset:
    """Read and validate the named inputs.

    Raises:
        DatasetError: an input is invalid.
        UsageError: names are verified, and no candidates are named.
    """
    findings = InputFindings()
    if settings.mode == "verify":
        return _verifying(settings, findings)
    truth = load_truth(settings, findings)
    rubric = _rubric(settings, findings)
    if truth.blank:
        findings.add(
            "gt_blank",
            "info",
            truth_name(settings),
            "Rows have no value and are left out.",
            n=truth.blank,
        )
    papers = PaperLibrary() if settings.papers is None else read_papers(settings.papers)
    if settings.paper_set == "truth":
        papers = papers.only(truth.papers)
    sampled = _sample(papers, truth.rows, rubric, settings.limit, findings)
    return PropertyDataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts),
        papers=papers.only(sampled),
        truth=tuple(row for row in truth.rows if row.refno in sampled),
        truth_blank=truth.blank,
        truth_papers=truth.papers,
        truth_names=frozenset(row.name for row in truth.rows),
        rubric=rubric,
        clusters={} if settings.clusters is None else read_clusters(settings.clusters),
        space_groups=None
        if settings.space_groups is None
        else read_space_groups(settings.space_groups),
        unit_table=load_unit_table(settings),
        aliases=_aliases(settings, canonical_names(truth.rows, rubric)),
        rules=tuple(
            input_hashes([file for file in inputs(settings) if file.setting in RULES])
        ),
        findings=findings.findings(),
    )


def _sample(
    papers: PaperLibrary,
    truth: Iterable[TruthRow],
    rubric: Rubric,
    limit: int,
    findings: InputFindings,
) -> frozenset[str]:
    """Return the papers of a run; samples retain the shares of property kinds."""
    kinds: dict[str, set[str]] = {}
    for row in truth:
        kinds.setdefault(row.refno, set()).add(rubric.kind(row.name))
    every = sorted({*papers, *kinds})
    sampled = draw_sample(
        every,
        limit,
        key=lambda refno: refno,
        strata=(lambda refno: (refno in papers, tuple(sorted(kinds.get(refno, ())))),),
    )
    report_sample(findings, sampled, every, "paper", "set of kinds of properties")
    return frozenset(sampled)


def _aliases(settings: PropertySettings, canonical: frozenset[str]) -> AliasSet:
    if settings.aliases is None:
        return AliasSet()
    # imports numerical libraries, which must not delay a run's first call
    from jobs.property_extraction.aliases.files import (  # noqa: PLC0415 - see above
        acting_aliases,
    )

    return acting_aliases(
        settings.aliases,
        canonical=canonical,
        accept_drafts=settings.accept_drafts,
        name_match=settings.name_match,
        clash=settings.clash,
        same_name=settings.same_name,
    )


def _verifying(settings: PropertySettings, findings: InputFindings) -> PropertyDataset:
    """Return the inputs of a verification; they contain no values of the truth."""
    missing = NA[settings.na]
    predicted = chain.from_iterable(
        read_predictions(path, missing, mapped_in(settings, path))
        for path in prediction_files(settings.preds)
    )
    questions = (
        _judged(settings)
        if settings.candidates is None
        else name_questions(
            with_examples(read_candidates(settings.candidates), predicted),
            settings.verify,
            _verified(settings),
        )
    )
    every = tuple(questions)
    sampled = draw_sample(every, settings.limit, key=lambda question: question.key)
    report_sample(findings, sampled, every, "pair")
    return PropertyDataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts),
        questions={question.key: question for question in sampled},
        rubric=_described(settings, findings),
        findings=findings.findings(),
    )


def _described(settings: PropertySettings, findings: InputFindings) -> Rubric:
    """Return the rubric, with the truth's definitions of names that it lacks."""
    rubric = _rubric(settings, findings)
    defined = {
        row.name: Property(
            name=row.name, kind=ComparisonKind.EXACT, definition=row.definition
        )
        for row in load_truth(settings, findings).rows
        if row.definition
    }
    return Rubric(properties={**defined, **rubric.properties})


def _judged(settings: PropertySettings) -> Iterator[NameQuestion]:
    """Yield the pairs of imported verdicts, as single questions.

    Raises:
        UsageError: no verdicts are named either.
    """
    if not settings.verdicts:
        _require_candidates(settings)
    pairs = {
        pair.names: pair for path in settings.verdicts for pair in read_candidates(path)
    }
    return name_questions(pairs.values(), "pair")


def _verified(settings: PropertySettings) -> frozenset[tuple[str, str]]:
    """Return the pairs that have a verdict already."""
    verdicts = chain.from_iterable(
        read_verdicts(path, mapped_in(settings, path)) for path in settings.verdicts
    )
    return frozenset(
        verdict.names for verdict in verdicts if verdict.is_match is not None
    )


def _rubric(settings: PropertySettings, findings: InputFindings) -> Rubric:
    """Return the rubric; add findings for its unusable rows."""
    rubric_file = load_rubric(settings, findings)
    for code, message, n in (
        (
            "rubric_dropped",
            "Rows have no name or no rubric and are left out.",
            rubric_file.dropped,
        ),
        (
            "rubric_conditions",
            "Rows describe conditions, not properties, and are left out.",
            rubric_file.conditions,
        ),
    ):
        if n and settings.rubric is not None:
            findings.add(code, "info", settings.rubric.name, message, n=n)
    return rubric_file.rubric


def truth_name(settings: PropertySettings) -> str:
    """Return the name of the file of curated values in findings."""
    return "truth" if settings.truth is None else settings.truth.name
