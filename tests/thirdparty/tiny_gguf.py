"""A model for llama.cpp: random weights, and a tokenizer trained on a page of text.

It answers nonsense, in the forms of a real server: what a grammar does not prescribe
is chance.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal

import numpy as np
from gguf import GGUFWriter, PoolingType, TokenType

WIDTH: Final = 64
LAYERS: Final = 2
HEADS: Final = 4
HIDDEN: Final = 128
MERGES: Final = 200
CONTEXT: Final = 32_768
TEMPLATE: Final = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_model(
    path: Path, text: str, architecture: Literal["llama", "qwen3"] = "llama"
) -> None:
    """Write a model to *path*; of "qwen3" it is one that ranks documents."""
    merges = _merges(text, MERGES)
    tokens = [*_LETTERS.values(), *(a + b for a, b in merges), "<|end|>"]
    end = len(tokens) - 1
    writer = GGUFWriter(path, architecture)
    writer.add_name("random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.NORMAL] * end + [TokenType.CONTROL])
    writer.add_token_merges([f"{a} {b}" for a, b in merges])
    for add in (writer.add_eos_token_id, writer.add_bos_token_id):
        add(end)
    writer.add_sep_token_id(end)
    writer.add_add_bos_token(value=False)
    writer.add_chat_template(TEMPLATE)
    _add_weights(writer, len(tokens), ranks=architecture == "qwen3")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_weights(writer: GGUFWriter, tokens: int, *, ranks: bool) -> None:
    chance = np.random.default_rng(7)

    def add(name: str, *shape: int, scale: float = 0.08) -> None:
        drawn = chance.standard_normal(shape) * scale
        writer.add_tensor(f"{name}.weight", drawn.astype(np.float32))

    def add_ones(name: str, size: int) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(size, np.float32))

    add("token_embd", tokens, WIDTH, scale=0.8)
    add("output", tokens, WIDTH, scale=0.24)
    add_ones("output_norm", WIDTH)
    for layer in range(LAYERS):
        at = f"blk.{layer}"
        for norm in ("attn_norm", "ffn_norm"):
            add_ones(f"{at}.{norm}", WIDTH)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"{at}.{part}", WIDTH, WIDTH)
        add(f"{at}.ffn_gate", HIDDEN, WIDTH)
        add(f"{at}.ffn_up", HIDDEN, WIDTH)
        add(f"{at}.ffn_down", WIDTH, HIDDEN)
        if ranks:
            for norm in ("attn_q_norm", "attn_k_norm"):
                add_ones(f"{at}.{norm}", WIDTH // HEADS)
    if ranks:
        writer.add_pooling_type(PoolingType.RANK)
        writer.add_classifier_output_labels(["yes", "no"])
        add("cls.output", 2, WIDTH, scale=0.24)


def _letters() -> dict[int, str]:
    """The letter that byte-level BPE writes for each byte, as GPT-2 chose them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {byte: chr(byte) for byte in plain}
    return letters | {byte: chr(256 + at) for at, byte in enumerate(others)}


_LETTERS: Final = dict(sorted(_letters().items()))


def _merges(text: str, most: int) -> list[tuple[str, str]]:
    """The pairs that byte-pair encoding joins, the most frequent first."""
    counts = Counter(re.findall(r" ?[A-Za-z]+", text))
    words = {word: [_LETTERS[byte] for byte in word.encode()] for word in counts}
    merges: list[tuple[str, str]] = []
    for _ in range(most):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in words.items():
            for pair in pairwise(parts):
                pairs[pair] += counts[word]
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        words = {word: _joined(parts, best) for word, parts in words.items()}
    return merges


def _joined(parts: list[str], pair: tuple[str, str]) -> list[str]:
    out: list[str] = []
    for part in parts:
        if out and (out[-1], part) == pair:
            out[-1] += part
        else:
            out.append(part)
    return out
