"""A corpus of any size for runs that are to be disturbed: invented, small, consistent.

Every paper names three variants twice, so that a lexical reader finds them, and comes
with three questions a variant: ten tasks a paper once all are recalled.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

TASKS_A_PAPER = 10
DRUGS = ("warfarin", "clopidogrel", "simvastatin", "tacrolimus", "efavirenz")


def write_corpus(folder: Path, papers: int, seed: int = 0) -> list[str]:
    """Write bench, papers and questions; the options that name them."""
    chance = random.Random(seed)
    (folder / "papers").mkdir(parents=True)
    for name in ("mcq_options", "study_param_questions"):
        (folder / "questions" / name).mkdir(parents=True)
    bench, mcq, study = [], [], []
    for i in range(papers):
        pmcid = f"PMC{8_000_000 + i}"
        variants = [f"rs{chance.randrange(10**5, 10**8)}" for _ in range(3)]
        bench.append({"pmcid": pmcid, "variants": variants})
        lines = [f"# Variants and dose, study {i}", ""]
        for variant in variants:
            drug = chance.choice(DRUGS)
            p_value = f"{chance.uniform(0.001, 0.2):.3f}"
            lines += [
                f"We genotyped {variant} in all patients on {drug}.",
                f"Carriers of {variant} needed less {drug} (p = {p_value}).",
            ]
            row = {"pmcid": pmcid, "variant": variant, "annotation_id": f"a{i}"}
            gap = f"Carriers of ______ needed less {drug}."
            options = [variant, "rs1", "rs2", "rs3"]
            chance.shuffle(options)
            for _ in range(2):
                mcq.append(
                    {
                        **row,
                        "question_id": len(mcq),
                        "blanked_sentence": f"{gap} ({len(mcq)})",
                        **dict(
                            zip(
                                ("option_a", "option_b", "option_c", "option_d"),
                                options,
                                strict=True,
                            )
                        ),
                        "correct_answer": "abcd"[options.index(variant)],
                        "question_type": "standard",
                        "table_type": "drug",
                    }
                )
            study.append(
                {
                    **row,
                    "question_id": len(study),
                    "gene": "G",
                    "drug": drug,
                    "sentence": f"Carriers of {variant} needed less {drug}.",
                    "question_type": "correct",
                    "table_type": "drug",
                    "expected_answer_p_value": f"= {p_value}",
                    "expected_answer_significance": "yes"
                    if float(p_value) < 0.05
                    else "no",
                }
            )
        (folder / "papers" / f"{pmcid}.md").write_text("\n".join(lines) + "\n")
    _write(folder / "bench.jsonl", bench)
    questions = folder / "questions"
    _write(questions / "mcq_options" / "variant_mcq_options.jsonl", mcq)
    study_file = questions / "study_param_questions" / "study_param_questions.jsonl"
    _write(study_file, study)
    return [
        f"--bench={folder / 'bench.jsonl'}",
        f"--papers={folder / 'papers'}",
        f"--questions={questions}",
        "--pipelines=mcq_variant,study_param",
        "--boot-b=200",
    ]


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
