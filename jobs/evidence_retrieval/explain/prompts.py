"""What would be asked about a query, before any run: the very words."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.evidence_retrieval.asking import request as asking
from jobs.evidence_retrieval.asking.orders import LOCAL
from jobs.evidence_retrieval.asking.plan import plan, wanted
from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.explain.query import Query
from jobs.evidence_retrieval.explain.run import item
from jobs.text import plural, quoted_lines
from runner.job import Task, TaskSpec
from runner.messages import ChatRequest, EmbedRequest, Request, RerankRequest
from runner.money.tokens import prompt_tokens


def prompt_lines(dataset: Dataset, query: Query) -> Iterator[str]:
    """Each first-stage task about the query, with the texts that are sent."""
    own = {query.key, query.post_id}
    for spec in plan(dataset):
        task = _task(spec)
        if item(task) in own:
            yield from _lines(dataset, spec, task)
    first_stage = dataset.settings.first_stage
    if "rerank" in wanted(dataset) and first_stage not in LOCAL:
        yield f"  rerank      follows what {first_stage} answers"


def _task(spec: TaskSpec) -> Task:
    """The first replicate of a spec, of no model in particular."""
    return Task(
        number=0,
        stage=spec.stage,
        key=spec.key,
        model="",
        replicate=1,
        context=spec.context,
    )


def _lines(dataset: Dataset, spec: TaskSpec, task: Task) -> Iterator[str]:
    if spec.skip is not None:
        yield f"  {spec.stage:<10}  not asked: {spec.skip}"
        return
    request = asking.request(dataset, task)
    tokens = plural(prompt_tokens(request), "token")
    yield f"  {spec.stage:<10}  about {tokens}, {_extent(request)}"
    if isinstance(request, ChatRequest):
        for message in request.messages:
            yield f"    {message.role}"
            yield from quoted_lines(message.text)


def _extent(request: Request) -> str:
    match request:
        case ChatRequest():
            return f"at most {plural(request.max_tokens, 'token')} for the reply"
        case EmbedRequest():
            return f"{plural(len(request.texts), 'text')}: criteria, then sentences"
        case RerankRequest():
            documents = plural(len(request.documents), "document")
            return f"the criterion's text and {documents}"
