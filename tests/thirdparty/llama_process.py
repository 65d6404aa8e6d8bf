"""Serves a GGUF file by llama.cpp's own HTTP server: MODEL KIND PORT CONTEXT."""

from __future__ import annotations

import signal
import sys

import xllamacpp


def main(model: str, kind: str, port: str, context: str) -> None:
    """Serve *model* until ended; *kind* is chat, embed or rank."""
    slots = 4
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.port = int(port)
    params.n_parallel = slots
    params.n_ctx = slots * int(context)
    params.kv_unified = False
    params.warmup = False
    params.endpoint_metrics = True
    # threads of llama.cpp wait in a loop for one another: on a busy machine, for long
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    if kind != "chat":
        params.embedding = True
        params.n_batch = params.n_ubatch = int(context)
        pooling = xllamacpp.llama_pooling_type
        params.pooling_type = (
            pooling.LLAMA_POOLING_TYPE_MEAN
            if kind == "embed"
            else pooling.LLAMA_POOLING_TYPE_RANK
        )
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
