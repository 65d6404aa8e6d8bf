"""Declares the metrics of the job: the measures, scopes and forms of its paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jobs.kit.measures import BASELINE_FORMS, Measure, MeasurePart, Measures
from jobs.paper_investigation.model_tally import QUESTIONS_HIDDEN, REPLICATES
from jobs.paper_investigation.paper_scores import (
    ALTERNATIVES,
    COUNTS,
    F1,
    POOLED_MEASURES,
    PRECISION,
    QUESTION_ACC,
    RECALL,
    SCORE,
)
from jobs.paper_investigation.question_counts import (
    FIELD_ACCURACIES,
    FLIPS,
    INVENTED,
    PIPELINE,
    READINGS,
    REPLIES,
    TYPE_ACCURACIES,
)
from jobs.paper_investigation.variant_counts import (
    BY_SIZE,
    FAILURES_AS_FN,
    GROUNDED,
    HITS,
    KIND_RECALL,
    WITHOUT_REFERENCE,
)

_AVERAGES: Mapping[str, Measure] = {
    average.path: average.measure
    for average in (RECALL, PRECISION, F1, QUESTION_ACC, SCORE)
}
_OTHER_READINGS: Mapping[str, Measure] = {
    **POOLED_MEASURES,
    **ALTERNATIVES,
    **PIPELINE,
    **FAILURES_AS_FN,
    "avg_variant_recall~without_reference_alleles": WITHOUT_REFERENCE,
}
"""Further measures; for paths with a form, name and meaning are those of the form."""


def _behind(prefix: str, measures: Mapping[str, Measure]) -> dict[str, Measure]:
    """Return the measures without a form, with *prefix* added to their paths."""
    return {
        f"{prefix}{key}": measure for key, measure in measures.items() if "~" not in key
    }


def _filled(measures: Mapping[str, Measure], **texts: str) -> dict[str, Measure]:
    return {key: measure.filled(texts) for key, measure in measures.items()}


MEASURES = Measures(
    headlines=(*_AVERAGES, "pipeline.TOTAL.accuracy"),
    operational=(
        *COUNTS,
        *(f"replies.extract.{key}" for key in READINGS),
        *REPLIES,
        "grounding.predicted.{class}",
        "replicates.jaccard",
    ),
    scopes={
        "replicate.{replicate}.": MeasurePart(name="replicate {replicate}"),
    },
    forms={
        **BASELINE_FORMS,
        **{
            f"~{path.partition('~')[2]}": MeasurePart(
                name=measure.name, meaning=measure.meaning
            )
            for path, measure in _OTHER_READINGS.items()
            if "~" in path
        },
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
        **COUNTS,
        **_behind("", POOLED_MEASURES),
        **_behind("", ALTERNATIVES),
        **_behind(
            "class.MICRO-AVG.",
            _filled(HITS, **{"class": "all classes", "of": "of all classes"}),
        ),
        **_behind("class.{class}.", _filled(HITS, of="of the class {class}")),
        "kind.{kind}.recall": KIND_RECALL,
        **_behind("truth_size.{size}.", BY_SIZE),
        **_behind("pipeline.{pipeline}.", PIPELINE),
        **_behind("pipeline.{pipeline}.", FLIPS),
        **TYPE_ACCURACIES,
        **_behind("study_param.", FIELD_ACCURACIES),
        **{
            f"study_param.{{type*}}.{key}": replace(
                measure,
                name=f"{measure.name}, question type {{type}}",
                meaning="Share of right answers to study parameter questions of the "
                "type {type}, by {part}",
            )
            for key, measure in FIELD_ACCURACIES.items()
        },
        **_behind("study_param.{type*}.", INVENTED),
        **_behind("replies.{stage}.", READINGS),
        **REPLIES,
        "questions_hidden": QUESTIONS_HIDDEN,
        **_behind("grounding.{side}.", GROUNDED),
        **REPLICATES,
    },
)
