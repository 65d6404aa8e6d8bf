"""The prompts of paper-investigation: what each shows, and where their wording is.

Never offered to a prompt: truth variants, keys, expected values, `original_sentence`,
the sentence bench, or other questions than those asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from runner.prompts import REASK, Placeholder, PromptBlock, PromptCatalog

_PAPER: Final = Placeholder(
    name="paper",
    meaning="the paper between marks, or paper_absent where there is no text",
    needed=True,
)
_PMCID: Final = Placeholder(name="pmcid", meaning="the paper's id")
_FORM: Final = Placeholder(
    name="form", meaning="form_json where a schema is sent along, else form_text"
)
_QUESTION: Final = Placeholder(
    name="question", meaning="the question between marks", needed=True
)
_TASK: Final = Placeholder(name="task", meaning="the text task of this block")
_FORMS: Final[dict[str, tuple[Placeholder, ...]]] = {"form_json": (), "form_text": ()}


def _asking(name: str, meaning: str) -> PromptBlock:
    return PromptBlock(
        name=name,
        meaning=meaning,
        parts={
            "system": (),
            "task": (),
            "user": (_PAPER, _TASK, _QUESTION, _FORM),
            "paper_absent": (_PMCID,),
            **_FORMS,
        },
    )


WORDING: Final = PromptCatalog(
    job="paper-investigation",
    file=Path(__file__).with_name("prompts.toml"),
    profiles={"clinpgx-qa": Path(__file__).with_name("prompts_clinpgx_qa.toml")},
    blocks=(
        PromptBlock(
            name="extract",
            meaning="which variants does the paper study",
            parts={
                "system": (),
                "user": (
                    _PAPER,
                    Placeholder(
                        name="reference_alleles",
                        meaning="reference_list or reference_leave_out, by the "
                        "setting reference_alleles",
                    ),
                    _FORM,
                ),
                **_FORMS,
                "reference_list": (),
                "reference_leave_out": (),
            },
        ),
        _asking("question.choice", "a sentence with a gap and four options"),
        _asking("question.association", "p-value and significance of an association"),
        PromptBlock(
            name="batch",
            meaning="several questions at once (batch_questions)",
            parts={
                "system": (),
                "user": (
                    _PAPER,
                    Placeholder(
                        name="tasks",
                        meaning="the texts question.choice.task and question."
                        "association.task, of the kinds that are asked",
                    ),
                    Placeholder(
                        name="questions",
                        meaning="an entry for each question",
                        needed=True,
                    ),
                    _FORM,
                ),
                "entry": (
                    Placeholder(
                        name="number", meaning="of the question, from 1", needed=True
                    ),
                    _QUESTION,
                ),
                "paper_absent": (_PMCID,),
                **_FORMS,
            },
        ),
        REASK,
    ),
)
