"""Writes sample files of lm_eval, and prints the means and texts that it has itself."""

import json
import sys
from pathlib import Path

import yaml
from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

folder = Path(sys.argv[1])
rows = [
    {
        "q": f"Say {n}",
        "a": "lol" if n % 2 else "no",
        "choices": ["red", "blue"],
        "g": n % 2,
    }
    for n in range(8)
]
data = folder / "data.jsonl"
data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
shared = {
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": str(data)}},
    "test_split": "test",
    "doc_to_text": "Q: {{q}}\nA:",
}
accuracy = {"aggregation": "mean", "higher_is_better": True}
TASKS = {
    "says": {
        "output_type": "generate_until",
        "doc_to_target": "{{a}}",
        "generation_kwargs": {"until": ["\n"]},
        "metric_list": [{"metric": "exact_match", **accuracy}],
        "filter_list": [
            {"name": name, "filter": [{"function": "take_first"}]}
            for name in ("strict", "loose")
        ],
    },
    "picks": {
        "output_type": "multiple_choice",
        "doc_to_choice": "choices",
        "doc_to_target": "g",
        "metric_list": [{"metric": "acc", **accuracy}],
    },
}
for name, task in TASKS.items():
    text = yaml.safe_dump({"task": name, **shared, **task})
    (folder / f"{name}.yaml").write_text(text)
tracker = EvaluationTracker(output_path=str(folder / "out"))
results = simple_evaluate(
    model="dummy",
    tasks=list(TASKS),
    task_manager=TaskManager(include_path=str(folder)),
    log_samples=True,
    evaluation_tracker=tracker,
    bootstrap_iters=0,
)
samples = results.pop("samples")
tracker.save_results_aggregated(results=results, samples=samples)
for name in TASKS:
    tracker.save_results_samples(task_name=name, samples=samples[name])
picked = {
    s["doc_id"]: s["doc"]["choices"][
        max(range(2), key=lambda n: float(s["filtered_resps"][n][0]))
    ]
    for s in samples["picks"]
}
print(
    json.dumps(
        {
            "results": {name: results["results"][name] for name in TASKS},
            "said": {s["doc_id"]: s["resps"][0][0] for s in samples["says"]},
            "picked": picked,
        }
    )
)
