"""Writes an answer of Langfuse's API by the types of its SDK, and prints its values."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from langfuse.api import ObservationsV2Meta, ObservationsV2Response, ObservationV2

START = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
observations = [
    ObservationV2(
        id=f"o{n}",
        trace_id=f"t{n}",
        project_id="p",
        type="GENERATION" if n % 4 else "SPAN",
        start_time=START + timedelta(minutes=n),
        end_time=START + timedelta(minutes=n, seconds=2),
        model="gpt-x",
        input=[{"role": "user", "content": f"Say {n}"}],
        output={"role": "assistant", "content": f"It is {n}."},
        usage_details={"input": 10 + n, "output": 3, "input_cached_tokens": 2},
        total_cost=n / 8,
        latency=2.0,
        level="DEFAULT",
        metadata={"pmid": n},
    )
    for n in range(9)
]
answer = ObservationsV2Response(data=observations, meta=ObservationsV2Meta())
Path(sys.argv[1]).write_text(answer.json(), "utf-8")
print(
    json.dumps(
        [
            {
                "model": o.model,
                "prompt": [m["content"] for m in o.input],
                "text": o.output["content"],
                "usage": [
                    o.usage_details["input"] + o.usage_details["input_cached_tokens"],
                    o.usage_details["output"],
                ],
                "cost_usd": o.total_cost,
                "latency_ms": o.latency * 1000,
                "created_s": int(o.end_time.timestamp()),
                "trace": o.trace_id,
                "pmid": str(o.metadata["pmid"]),
            }
            for o in observations
            if o.type == "GENERATION"
        ]
    )
)
