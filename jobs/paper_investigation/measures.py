"""Declares the metrics of the job, and makes the measurements of its sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.kit import measurements
from jobs.kit.measurements import MeasuredValue, Measurement, wilson_share
from jobs.kit.measures import BASELINE_FORMS, Measure, MeasurePart, Measures
from jobs.kit.metrics import Ratio, mean, mean_of, ratio

# in definitions: T is the truth of a paper, L what the model lists, R their overlap

_AVERAGES: Mapping[str, Measure] = {
    "avg_variant_recall": Measure(
        "Variant recall",
        "Share of a paper's known variants that the model finds, as a mean over papers",
        "higher",
    ),
    "avg_precision": Measure(
        "Variant precision",
        "Share of the listed variants that the paper is known to study, as a "
        "mean over papers; a lower bound, as the truth lists findings only",
        "higher",
    ),
    "avg_f1": Measure(
        "Variant F1",
        "Harmonic mean of variant precision and recall, as a mean over papers",
        "higher",
    ),
    "avg_question_acc": Measure(
        "Question accuracy",
        "Share of right answers about the variants that the model found, as a "
        "mean over papers",
        "higher",
    ),
    "avg_paper_score": Measure(
        "Paper score",
        "Variant recall times question accuracy, as a mean over papers; a "
        "paper without questions scores 0",
        "higher",
    ),
}


def _hits(name: str, of: str) -> dict[str, Measure]:
    """The confusion counts and rates of a group of variants."""
    return {
        "tp": Measure(
            f"True positives, {name}",
            f"Known variants {of} that the model lists",
            "higher",
        ),
        "fp": Measure(
            f"False positives, {name}",
            f"Listed variants {of} that are not in the truth",
            "lower",
        ),
        "fn": Measure(
            f"False negatives, {name}",
            f"Known variants {of} that the model does not list",
            "lower",
        ),
        "recall": Measure(
            f"Recall, {name}",
            f"Share of the known variants {of} that the model lists",
            "higher",
        ),
        "precision": Measure(
            f"Precision, {name}",
            f"Share of the listed variants {of} that are in the truth, a lower bound",
            "higher",
        ),
        "f1": Measure(
            f"F1, {name}",
            f"Harmonic mean of precision and recall of variants {of}",
            "higher",
        ),
    }


def _accuracy(name: str, of: str) -> Measure:
    return Measure(f"Accuracy, {name}", f"Share of right answers to {of}", "higher")


MEASURES = Measures(
    headlines=(*_AVERAGES, "pipeline.TOTAL.accuracy"),
    scopes={
        "replicate.{replicate}.": MeasurePart(name="replicate {replicate}"),
    },
    forms={
        **BASELINE_FORMS,
        "~micro": MeasurePart(name="pooled over papers"),
        "~wilson": MeasurePart(
            name="Wilson interval",
            meaning="with an interval that takes questions as independent",
        ),
        "~sd": MeasurePart(
            name="standard deviation over replicates",
            direction="neither",
        ),
        "~case_sensitive": MeasurePart(
            name="case-sensitive", meaning="variants match with letter case kept"
        ),
        "~case_folded": MeasurePart(
            name="case-insensitive", meaning="variants match whatever their letter case"
        ),
        "~whole": MeasurePart(
            name="whole variant fields",
            meaning="a question's variant field counts as one variant",
        ),
        "~split": MeasurePart(
            name="split variant fields",
            meaning="a question's variant field counts as each variant that it lists",
        ),
        "~rules_{profile}": MeasurePart(
            name="{profile} rules",
            meaning="replies read and graded by the rules of the profile {profile}",
        ),
        "~pooled_per_paper_zeros": MeasurePart(
            name="questions pooled by paper",
            meaning="right by answered questions of each paper, 0 without questions",
        ),
        "~zeros_for_papers_without": MeasurePart(
            name="papers without questions as 0",
            meaning="a paper without questions counts as 0",
        ),
        "~variants_pooled": MeasurePart(
            name="mean over variants",
            meaning="each recalled variant with answers counts once, not each paper",
        ),
        "~questions_pooled": MeasurePart(
            name="pooled over questions",
            meaning="each question counts once, not each paper",
        ),
        "~parse_failures_as_zero": MeasurePart(
            name="unreadable lists as 0",
            meaning="a paper whose list of variants could not be read counts as 0",
        ),
        "~skipped_as_zero": MeasurePart(
            name="skipped papers as 0", meaning="a skipped paper counts as 0"
        ),
        "~papers_with_questions": MeasurePart(
            name="papers with questions only",
            meaning="only papers with a question accuracy count",
        ),
        "~missing_as_wrong": MeasurePart(
            name="missing replies as wrong",
            meaning="a question without a reply counts as wrong",
        ),
        "~without_reference_alleles": MeasurePart(
            name="without reference alleles",
            meaning="reference alleles such as *1 are left out",
        ),
        "~failures_as_fn": MeasurePart(
            name="unreadable lists as empty",
            meaning="papers whose list could not be read count as papers with an "
            "empty list",
        ),
    },
    slots={
        "pipeline": {
            "mcq_variant": "variant questions",
            "mcq_drug": "drug questions",
            "mcq_phenotype": "phenotype questions",
            "study_param": "study parameter questions",
            "TOTAL": "all questions",
        },
        "class": {
            "rsID": "rsIDs",
            "HLA": "HLA alleles",
            "star_allele": "star alleles",
            "phenotype": "metaboliser phenotypes",
            "other": "other variants",
        },
        "kind": {
            "rsID": "rsIDs",
            "star_allele": "star alleles but the reference",
            "reference_allele": "reference alleles",
            "HLA": "HLA alleles",
            "phenotype": "metaboliser phenotypes",
            "activity": "activities of gene products",
            "gene_presence": "presence of whole genes",
            "other_allele": "other alleles",
        },
        "stage": {"extract": "variant lists", "question": "answers"},
        "part": {
            "p_value": "p-value",
            "significance": "significance",
            "both": "p-value and significance",
        },
        "side": {"truth": "known", "predicted": "listed"},
    },
    measures={
        **_AVERAGES,
        "papers_scored": Measure("Papers scored", "Papers with a score"),
        "papers_skipped": Measure("Papers skipped", "Papers without a score", "lower"),
        "papers_skipped.{reason}": Measure(
            "Papers skipped, {reason}",
            "Papers without a score, for the reason {reason}",
            "lower",
        ),
        "truth_merged": Measure(
            "Truth spellings merged",
            "Spellings in the truth that are one variant with an earlier spelling",
        ),
        "recalled_not_asked": Measure(
            "Recalled variants not asked about",
            "Recalled variants without a question in the run",
        ),
        "recalled_without_questions": Measure(
            "Recalled variants without questions",
            "Recalled variants that no question of the truth names",
        ),
        "papers_with_questions": Measure(
            "Papers with questions", "Scored papers with a question accuracy"
        ),
        "papers_without_questions": Measure(
            "Papers without questions",
            "Scored papers without a question on a recalled variant; their score is 0",
        ),
        **{
            f"class.MICRO-AVG.{word}": measure
            for word, measure in _hits("all classes", "of all classes").items()
        },
        **{
            f"class.{{class}}.{word}": measure
            for word, measure in _hits("{class}", "of the class {class}").items()
        },
        "kind.{kind}.recall": Measure(
            "Variant recall, {kind}",
            "Share of the known {kind} that the model lists",
            "higher",
        ),
        "truth_size.{size}.recall": Measure(
            "Variant recall, papers with {size} known variants",
            "Mean variant recall of the papers with {size} known variants",
            "higher",
        ),
        "truth_size.{size}.score": Measure(
            "Paper score, papers with {size} known variants",
            "Mean score of the papers with {size} known variants",
            "higher",
        ),
        "pipeline.{pipeline}.questions": Measure(
            "Questions, {pipeline}", "Questions with a reply, among {pipeline}"
        ),
        "pipeline.{pipeline}.correct": Measure(
            "Right answers, {pipeline}", "Right answers to {pipeline}", "higher"
        ),
        "pipeline.{pipeline}.unparsed": Measure(
            "Unreadable replies, {pipeline}",
            "Replies to {pipeline} that could not be read",
            "lower",
        ),
        "pipeline.{pipeline}.missing": Measure(
            "Missing replies, {pipeline}", "Questions without a reply", "lower"
        ),
        "pipeline.{pipeline}.missing.{reason}": Measure(
            "Missing replies, {pipeline}, {reason}",
            "Questions without a reply, for the reason {reason}",
            "lower",
        ),
        "pipeline.{pipeline}.links": Measure(
            "Question uses, {pipeline}",
            "Times that {pipeline} count in the accuracy of a variant",
        ),
        "pipeline.{pipeline}.accuracy": _accuracy(
            "{pipeline}", "{pipeline}, each question once"
        ),
        "pipeline.{pipeline}.to_right": Measure(
            "Verdicts turned right, {pipeline}",
            "Wrong answers to {pipeline} that are right under the other rules",
        ),
        "pipeline.{pipeline}.to_wrong": Measure(
            "Verdicts turned wrong, {pipeline}",
            "Right answers to {pipeline} that are wrong under the other rules",
        ),
        "question_type.{type*}.accuracy": _accuracy(
            "question type {type}", "questions of the type {type}"
        ),
        "table_type.{table*}.accuracy": _accuracy(
            "annotation table {table}",
            "questions that come from the annotation table {table}",
        ),
        "study_param.{part}.accuracy": _accuracy(
            "{part} of studies", "study parameter questions, by {part}"
        ),
        "study_param.{type*}.{part}.accuracy": _accuracy(
            "{part} of studies, question type {type}",
            "study parameter questions of the type {type}, by {part}",
        ),
        "study_param.{type*}.not_found": Measure(
            "Rightly not found, question type {type}",
            "Share of questions about findings that the paper does not have (type "
            "{type}) that are answered with 'not found'",
            "higher",
        ),
        "study_param.{type*}.invented": Measure(
            "Invented p-values, question type {type}",
            "Share of questions about findings that the paper does not have (type "
            "{type}) that are answered with a p-value",
            "lower",
        ),
        "replies.{stage}.rule.{rule*}": Measure(
            "Replies read by rule {rule}, {stage}",
            "Replies with {stage} that were read by the rule {rule}",
        ),
        "replies.{stage}.unparsed.{rule*}": Measure(
            "Unreadable replies, {stage}, {rule}",
            "Replies with {stage} that could not be read, for the reason {rule}",
            "lower",
        ),
        "replies.empty": Measure("Empty replies", "Replies without any text", "lower"),
        "replies.cut": Measure(
            "Cut replies", "Replies that end at the limit of output tokens", "lower"
        ),
        "replies.refused": Measure(
            "Refused replies", "Replies that a content filter withheld", "lower"
        ),
        "replies.stale": Measure(
            "Stale replies", "Stored replies that the present plan does not ask for"
        ),
        "questions_not_asked": Measure(
            "Questions not asked", "Questions that are planned but not in the run"
        ),
        "questions_hidden": Measure(
            "Questions hidden",
            "Questions that are not asked because their whole variant field is not "
            "recalled",
        ),
        "grounding.{side}.{class}": Measure(
            "In the text, {side} {class}",
            "Share of the {side} {class} that occur in the paper's text",
        ),
        "replicates.same_answers": Measure(
            "Same answers in all replicates",
            "Share of questions with one answer in all replicates, among those "
            "answered in all",
            "higher",
        ),
        "replicates.jaccard": Measure(
            "Overlap of replicates' lists",
            "Mean Jaccard index of the variant lists of two replicates",
            "higher",
        ),
    },
)


def count(path: str, value: int, definition: str) -> Measurement:
    """A plain number of things."""
    return Measurement(
        path=path,
        definition=f"count@1({definition})",
        measured=measurements.count(value),
    )


def ratio_of(subject: str) -> str:
    """The definition of a share."""
    return f"ratio@1({subject})"


def mean_over_papers(subject: str) -> str:
    """The definition of a mean over papers."""
    return f"mean@1({subject}; over papers, exact sum)"


def mean_of_values(values: Sequence[float | None], *, is_drawn: bool) -> MeasuredValue:
    """The mean of the values that are defined."""
    return MeasuredValue(
        value=mean(values),
        n=len(values),
        n_defined=sum(value is not None for value in values),
        statistic=mean_of(values) if is_drawn else None,
    )


def rate(
    path: str,
    k: int,
    n: int,
    definition: str,
    statistic: Ratio | None = None,
) -> Measurement:
    """A share of *n* things; undefined where there are none."""
    return Measurement(
        path=path,
        definition=ratio_of(definition),
        measured=MeasuredValue(value=ratio(k, n), n=n, statistic=statistic),
    )


def wilson_rate(
    path: str, k: int, n: int, definition: str, level: float
) -> Measurement:
    """A share with Wilson's interval, beside the one that respects clusters."""
    return Measurement(
        path=f"{path}~wilson",
        definition=f"{ratio_of(definition)}; wilson@1(level={level})",
        measured=wilson_share(k, n, level, is_rounded=True),
        note="assumes independent questions",
    )
