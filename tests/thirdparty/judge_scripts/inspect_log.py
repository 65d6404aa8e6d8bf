"""Writes a log of inspect_ai in a format, and prints what its own reader reads."""

import json
import sys
from collections.abc import Iterator

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import exact, includes, value_to_float
from inspect_ai.solver import generate, system_message

folder, log_format = sys.argv[1:]
SAMPLES = [
    Sample(
        id=n, input=f'Say {n} \u00e4\n"q"', target=str(n), metadata={"pmid": 100 + n}
    )
    if n % 2
    else Sample(
        id=n, input=[ChatMessageUser(content=f"Say {n}")], target=[str(n), "other"]
    )
    for n in range(12)
]


def outputs() -> Iterator[ModelOutput]:
    for n in range(100):
        output = ModelOutput.from_content(
            "mockllm/m", f"It is {n % 12} " + "x" * n * 50
        )
        output.usage = ModelUsage(
            input_tokens=10 + n,
            output_tokens=3,
            total_tokens=15 + n,
            input_tokens_cache_read=2 if n % 3 else None,
            reasoning_tokens=1 if n % 5 else None,
        )
        yield output


model = get_model("mockllm/m", custom_outputs=outputs())
model.api.count_tokens = None  # it would download a tokenizer
task = Task(
    dataset=MemoryDataset(SAMPLES),
    solver=[system_message("Be brief."), generate()],
    scorer=[includes(), exact()],
    epochs=2,
    name="says",
)
options = {"log_dir": folder, "log_format": log_format, "display": "none"}
(log,) = evaluate(task, model=model, **options)
assert log.status == "success", log.error
read = read_eval_log(log.location, resolve_attachments=True)
number = value_to_float()
rows = []
for sample in read.samples:
    usage = sample.output.usage
    cached = usage.input_tokens_cache_read or 0
    rows.append(
        {
            "item": str(sample.id),
            "epoch": sample.epoch,
            "model": read.eval.model,
            "prompt": [[m.role, m.text] for m in sample.messages[:-1]],
            "text": sample.output.completion,
            "target": sample.target
            if isinstance(sample.target, str)
            else sample.target[0],
            "scores": {name: number(s.value) for name, s in sample.scores.items()},
            "usage": [
                usage.input_tokens + cached,
                usage.output_tokens,
                cached,
                usage.reasoning_tokens or 0,
            ],
            "latency_ms": sample.output.time * 1000,
        }
    )
print(json.dumps({"file": log.location, "samples": rows}))
