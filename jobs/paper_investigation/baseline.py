"""baseline/lexical: a model that knows the prompt's words and nothing else.

It is the floor of every experiment and the first run without key or network. It sees
the request only, costs nothing, and always gives the same answer.
"""

from __future__ import annotations

import json

from jobs.paper_investigation.lexical import (
    Choice,
    Paper,
    Study,
    choose,
    find_study,
    find_variants,
    index,
    read_prompt,
)
from runner.messages import ChatRequest


def baseline(request: ChatRequest) -> str:
    """The reply's text, in the schema's form or in the text form."""
    prompt = read_prompt(request)
    paper = index(prompt.paper)
    if not prompt.questions:
        listed = list(find_variants(paper))
        return _json({"variants": listed} if prompt.is_structured else listed)
    answers = [_answer(paper, question) for question in prompt.questions]
    if not prompt.is_batch:
        return _text(answers[0], structured=prompt.is_structured)
    numbered = list(enumerate(answers, start=1))
    if prompt.is_structured:
        return _json({"answers": [{"n": n, **answer} for n, answer in numbered]})
    return "\n".join(
        f"{n}. {_text(answer, structured=False)}" for n, answer in numbered
    )


def _answer(paper: Paper, question: Choice | Study) -> dict[str, str]:
    if isinstance(question, Choice):
        return {"answer": choose(paper, question)}
    p_value, significance = find_study(paper, question)
    return {"p_value": p_value, "significance": significance}


def _text(answer: dict[str, str], *, structured: bool) -> str:
    """A letter goes bare in the text form; everything else is JSON in both."""
    letter = answer.get("answer")
    return letter if letter and not structured else _json(answer)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
