"""Imports responses, predictions and results of other programs, in any format.

Missing answers become skipped tasks, so that they stay in the counts: otherwise, a file
that leaves out the papers on which a model failed would make the model look better.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import model_validator

from jobs.kit.importer import FileImporter, ImportFile, ImportForm
from jobs.kit.inputs.cells import BLANK, one_of
from jobs.kit.inputs.column_map import keys_of, rename_keys
from jobs.kit.inputs.files import JsonEntry
from jobs.kit.inputs.open_file import OpenFile
from jobs.kit.inputs.rows import InputFindings
from jobs.kit.text_format import plural
from jobs.paper_investigation.bench import (
    Written,
    read_bench,
    read_questions,
    written,
)
from jobs.paper_investigation.import_results import (
    ImportedFile,
    PipelineName,
    ReplyRow,
    read_extraction,
    read_investigation,
    read_mcq,
    read_study,
)
from jobs.paper_investigation.inputs import load
from jobs.paper_investigation.records import Mode, StoredPaper, encode
from jobs.paper_investigation.settings import InvestigationSettings
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer, TaskSpec

NOT_IN_FILE = "not_in_file"
"""Skip reason of a paper or question that no imported file answers."""

NO_TEXT = "no_paper_text"
"""Skip reason of a paper without a text, as in runs of the job."""

MOST_NAMED = 3
"""Number of papers that the import's note names."""


AnsweredKeys: TypeAlias = dict[tuple[str, int], dict[str, str]]
"""By model and replicate: papers, and separate questions, with the file that answers
them."""


def absent_answers(
    answered: AnsweredKeys,
    settings: InvestigationSettings,
    mode: Mode,
    *,
    in_full: bool,
) -> Iterator[ImportedAnswer]:
    """Yield a skipped task for each paper or question missing in a model's files.

    Args:
        answered: keys in the files.
        settings: settings of the run, with the bench and the questions.
        mode: mode of the files.
        in_full: whether tasks have their labels, as in files with labels; otherwise
            they are the tasks that a run of the job would plan.

    Raises:
        DatasetError: the bench is invalid.
    """
    if settings.mode == "questions" and not in_full:
        every = chain.from_iterable(load(settings).questions.values())
        keys = [f"{question.pmcid}/{question.key}" for question in every]
        yield from _skipped(answered, "question", dict.fromkeys(keys), set())
        return
    if settings.bench is None:
        return
    dataset = load(settings)
    contexts = {
        paper.pmcid: encode(
            StoredPaper(mode=mode, truth=paper.variants, title=paper.title)
        )
        if in_full
        else None
        for paper in dataset.bench
    }
    textless = (
        {pmcid for pmcid in contexts if pmcid not in dataset.papers}
        if settings.papers is not None
        else set[str]()
    )
    yield from _skipped(answered, "extract", contexts, textless)


def _skipped(
    answered: AnsweredKeys,
    stage: str,
    contexts: Mapping[str, str | None],
    textless: Container[str],
) -> Iterator[ImportedAnswer]:
    """Yield the missing tasks; *contexts* has the contexts of all tasks by key.

    No request about *textless* papers was possible; a run of the job skips them for
    that reason.
    """
    noun = "paper" if stage == "extract" else "question"
    for (model, replicate), keys in answered.items():
        unanswered = [key for key in contexts if key not in keys]
        missing = [key for key in unanswered if key not in textless]
        more = "" if len(missing) <= MOST_NAMED else ", ..."
        note = (
            f"{model}: the files lack {plural(len(missing), noun)} of "
            f"{len(contexts):,} ({', '.join(missing[:MOST_NAMED])}{more}); counted as "
            f"skipped, {NOT_IN_FILE}."
        )
        for key in unanswered:
            yield ImportedAnswer(
                spec=TaskSpec(
                    stage=stage,
                    key=key,
                    skip=NO_TEXT if key in textless else NOT_IN_FILE,
                    context=contexts[key],
                ),
                model=model,
                replicate=replicate,
                notes=(note,) if missing else (),
            )


PaperKey: TypeAlias = tuple[str, int, str]
"""Model, replicate and paper."""


class _FlatRow(ReplyRow):
    """A reply; a recorded one has its kind and ids in its stage and key."""

    kind: Annotated[Literal["extract", "question"], one_of(("extract", "question"))]
    source_pipeline: PipelineName | None = None
    question_id: Written = ""

    @model_validator(mode="before")
    @classmethod
    def _with_ids(cls, row: dict[str, Any]) -> dict[str, Any]:
        if "key" not in row or "kind" in row:
            return row
        stage, key = written(row.get("stage")), written(row["key"])
        for name, value in (("stage", stage), ("key", key)):
            if not value:
                raise ValueError(f"{name} {BLANK}")
        pmcid, _, question = key.partition("/")
        ids: dict[str, Any] = {"kind": stage, "pmcid": pmcid}
        if question:
            ids["source_pipeline"], _, ids["question_id"] = question.partition(":")
        return {**ids, **row}

    @property
    def question(self) -> str:
        """Key of the question that it answers."""
        for name, value in (
            ("source_pipeline", self.source_pipeline),
            ("question_id", self.question_id),
        ):
            if not value:
                raise self.error(f"{name} {BLANK}")
        return f"{self.source_pipeline}:{self.question_id}"


@dataclass(slots=True, kw_only=True)
class _Family:
    """Positions of the lines about one paper, without their fields."""

    extraction: JsonEntry | None = None
    questions: list[JsonEntry] = field(default_factory=list)


def read_flat(source: ImportedFile) -> Iterator[ImportedAnswer]:
    """Yield the replies to the tasks that a run would plan, by paper.

    A reply names its task by `kind` and ids, or by `stage` and `key` as recorded
    replies do. Bench and questions come from the data options. Lines may be in any
    order; only their positions are in memory, so a file may be large. In mode
    questions, each answer is separate.
    """
    families, unused = _families(source)
    note = (
        f"{source.name}: {plural(unused, 'extract line')} not used, because "
        "mode=questions scores questions alone."
    )
    notes = (note,) if unused else ()
    alone = source.settings.mode == "questions"
    file = OpenFile(source.file.path)

    def again(entry: JsonEntry) -> _FlatRow:
        fields = file.object_at(entry.start, entry.size)
        return _FlatRow.at(
            source.source, entry.line, rename_keys(fields, source.file.renamed)
        )

    for (_, _, pmcid), family in families.items():
        if family.extraction is not None:
            row = again(family.extraction)
            spec = TaskSpec(stage="extract", key=pmcid)
            yield source.answer(row, spec, row.response, row.failure)
        for entry in family.questions:
            row = again(entry)
            spec = TaskSpec(stage="question", key=f"{pmcid}/{row.question}")
            answer = source.answer(row, spec, row.response, row.failure)
            yield replace(answer, descends=not alone, notes=notes)
            notes = ()


def _families(source: ImportedFile) -> tuple[dict[PaperKey, _Family], int]:
    """Check every line and return them by paper, with the number of unused ones."""
    settings = source.settings
    papers, question_papers = _papers(settings), _question_papers(settings)
    families: dict[PaperKey, _Family] = {}
    unused = 0
    for entry in source.entries():
        row = _FlatRow.at(source.source, entry.line, entry.fields)
        model, replicate = source.identity(row)
        place = replace(entry, fields={})
        if row.kind == "question":
            pmcid = question_papers.get(row.question, "")
            if not pmcid:
                raise row.error(
                    f"question {row.question} is unknown (check --questions)"
                )
            family = families.setdefault((model, replicate, pmcid), _Family())
            family.questions.append(place)
            continue
        pmcid = source.paper_of(row, entry.fields)
        if settings.mode == "questions":
            unused += 1
            continue
        if pmcid not in papers:
            raise row.error(f"{pmcid} is not in the bench (check --bench)")
        family = families.setdefault((model, replicate, pmcid), _Family())
        if family.extraction is not None:
            raise row.error(
                f"{model} answers about {pmcid} on line {family.extraction.line} "
                "already (keep one of the two)"
            )
        family.extraction = place
    if settings.mode != "questions":
        for (model, _, pmcid), family in families.items():
            if family.extraction is None:
                raise source.source.error(
                    family.questions[0].line,
                    f"{model} has no extract line for {pmcid} (add it, or import with "
                    "--set mode=questions)",
                )
    return families, unused


def _papers(settings: InvestigationSettings) -> frozenset[str]:
    if settings.mode == "questions":
        return frozenset()
    if settings.bench is None:
        raise UsageError(
            "Flat replies need the bench they answer: name it with --bench."
        )
    bench = read_bench(settings.bench, settings, InputFindings())
    return frozenset(paper.pmcid for paper in bench)


def _question_papers(settings: InvestigationSettings) -> Mapping[str, str]:
    """Return the paper of each known question, by pipeline and id."""
    questions = read_questions(settings, InputFindings())
    return {q.key: pmcid for pmcid, group in questions.items() for q in group}


SAMPLED_ROWS = 100
"""Number of objects of a file whose keys `--map` can name."""

FIELDS = (
    *("pmcid", "model", "replicate", "article_title", "had_paper_context"),
    *("kind", "stage", "key", "response", "error", "finish_reason"),
    *("source_pipeline", "question_id"),
    *("variant_results", "responses", "model_response", "expected_answer", "correct"),
    *("ground_truth_variants", "predicted_variants", "variant_recall", "paper_score"),
    *("skip_reason", "annotation_id", "question", "variant", "ground_truth"),
    *("raw_response", "predicted", "blanked_sentence", "correct_answer"),
    *("option_a", "option_b", "option_c", "option_d", "modified_sentence"),
    *("expected_answer_p_value", "expected_answer_significance"),
)
"""Fields that a key of an imported file may be mapped to."""

HINTED = sorted(
    (
        *("variant_results", "kind", "response", "stage", "key", "ground_truth"),
        *("option_a", "expected_answer_p_value"),
    )
)
"""Keys that identify forms."""

PLAN = "the plan"
"""Step of flat replies, whose labels are in the run's inputs."""


Reader: TypeAlias = Callable[[ImportedFile], Iterator[ImportedAnswer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultForm(ImportForm):
    """A file format of results."""

    read: Reader
    step: str  #: subject of the file; the same in all files of a run
    mode: Mode | None = None  #: for runs with papers from a bench; None: no papers


def _form(
    *needs: str | tuple[str, ...], read: Reader, step: str, mode: Mode | None = None
) -> ResultForm:
    words = (need if isinstance(need, str) else " or ".join(need) for need in needs)
    return ResultForm(
        recognised=" and ".join(words), needs=needs, read=read, step=step, mode=mode
    )


class PaperInvestigationImporter(FileImporter[InvestigationSettings]):
    """Imports responses, predictions and results."""

    forms: ClassVar[Mapping[str, ResultForm]] = {
        "investigation": _form(
            "variant_results",
            read=read_investigation,
            step="papers",
            mode="investigate",
        ),
        "flat": _form(
            "kind", "response", read=read_flat, step=PLAN, mode="investigate"
        ),
        "recorded": _form(
            "stage", "key", "response", read=read_flat, step=PLAN, mode="investigate"
        ),
        "variants": _form(
            "ground_truth",
            ("raw_response", "predicted"),
            read=read_extraction,
            step="variants",
            mode="extract",
        ),
        "mcq": _form("option_a", "response", read=read_mcq, step="questions"),
        "study_param": _form(
            "expected_answer_p_value", "response", read=read_study, step="questions"
        ),
    }
    fields = FIELDS
    hinted = HINTED

    def columns(
        self, file: ImportFile, settings: InvestigationSettings
    ) -> Sequence[str]:
        """Return the keys of the first object."""
        entry = next(ImportedFile(file=file, settings=settings).entries(), None)
        if entry is None:
            raise DatasetError(f"{file.path.name}: it has no rows (nothing to import).")
        return list(entry.fields)

    def keys(self, file: ImportFile, settings: InvestigationSettings) -> Iterable[str]:
        """Yield the keys of the first objects, at every depth."""
        entries = ImportedFile(file=file, settings=settings).entries()
        for entry in islice(entries, SAMPLED_ROWS):
            yield from keys_of(entry.fields)

    def answers(
        self, files: Sequence[ImportFile], settings: InvestigationSettings
    ) -> Iterator[ImportedAnswer]:
        """Yield the answers in *files*, after all of them are checked.

        A model or replicate on the command line overrides those in the files.
        """
        sources = [ImportedFile(file=file, settings=settings) for file in files]
        forms = [self.forms[file.form] for file in files]
        _require_one_step(sources, forms)
        answered = _distinct(sources, forms)
        for source, form in zip(sources, forms, strict=True):
            yield from form.read(source)
        mode = forms[0].mode
        if mode is not None:
            in_full = forms[0].step != PLAN
            yield from absent_answers(answered, settings, mode, in_full=in_full)


importer = PaperInvestigationImporter()


def _require_one_step(sources: list[ImportedFile], forms: list[ResultForm]) -> None:
    """Refuse files of different steps: a run has one kind of result."""
    for source, form in zip(sources, forms, strict=True):
        if form.step != forms[0].step:
            raise DatasetError(
                f"{source.name} holds {form.step}, {sources[0].name} "
                f"{forms[0].step}; import them as separate runs."
            )


def _distinct(sources: list[ImportedFile], forms: list[ResultForm]) -> AnsweredKeys:
    """Read everything once, so that no import is partial."""
    answered: AnsweredKeys = {}
    for source, form in zip(sources, forms, strict=True):
        family: dict[str, str] = {}
        for answer in form.read(source):
            if answer.descends:
                keys = family
            else:
                keys, family = (
                    answered.setdefault((answer.model, answer.replicate), {}),
                    {},
                )
            key = answer.spec.key
            if key in keys:
                raise DatasetError(
                    f"{source.name}: {answer.model} replicate {answer.replicate} "
                    f"answers {key} already in {keys[key]} (give one of the two files "
                    "another --replicate)."
                )
            keys[key] = source.name
    return answered
