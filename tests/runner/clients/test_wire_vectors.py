"""The forms of embeddings and rankings: what is sent, and what may come back."""

from __future__ import annotations

import json
import struct
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.clients.wire import (
    OPENAI_EMBEDDINGS,
    RERANK,
    decode_reply,
    encode_embed,
    encode_rerank,
)
from runner.errors import MalformedReply
from runner.messages import (
    EmbedRequest,
    RankedDocument,
    Ranking,
    RerankRequest,
    Usage,
    Vectors,
)

texts = st.text(st.characters(codec="utf-8"))
float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(
    st.builds(
        EmbedRequest,
        texts=st.lists(texts, min_size=1).map(tuple),
        dimensions=st.none() | st.integers(1, 4096),
        purpose=st.sampled_from([None, "query", "document"]),
    ),
    st.booleans(),
)
def test_an_embeddings_body_says_what_was_asked_and_nothing_else(
    request: EmbedRequest, packed: bool
) -> None:
    body = json.loads(encode_embed(request, "m", packed=packed))
    assert body.pop("model") == "m"
    assert tuple(body.pop("input")) == request.texts
    assert body.pop("dimensions", None) == request.dimensions
    assert body.pop("encoding_format", None) == ("base64" if packed else None)
    assert body == {}


@given(
    st.builds(
        RerankRequest,
        query=texts,
        documents=st.lists(texts, min_size=1).map(tuple),
        top_n=st.none() | st.integers(1, 100),
    )
)
def test_a_rerank_body_says_what_was_asked_and_nothing_else(
    request: RerankRequest,
) -> None:
    body = json.loads(encode_rerank(request, "m"))
    assert body.pop("model") == "m"
    assert body.pop("query") == request.query
    assert tuple(body.pop("documents")) == request.documents
    assert body.pop("top_n", None) == request.top_n
    assert body == {}


def test_half_a_surrogate_pair_becomes_a_question_mark_in_every_text() -> None:
    cut = "a\ud83d"
    embed = json.loads(encode_embed(EmbedRequest(texts=(cut,)), "m", packed=False))
    asked = RerankRequest(query=cut, documents=(cut,))
    rank = json.loads(encode_rerank(asked, "m"))
    assert (embed["input"], rank["query"], rank["documents"]) == (["a?"], "a?", ["a?"])


@given(st.lists(st.lists(float32, min_size=1, max_size=4), max_size=5), st.randoms())
def test_vectors_are_the_same_as_numbers_or_in_base64_and_in_any_order(
    vectors: list[list[float]], random: st.DataObject
) -> None:
    rows = [
        {
            "object": "embedding",
            "index": index,
            "embedding": vector
            if index % 2
            else b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode(),
        }
        for index, vector in enumerate(vectors)
    ]
    random.shuffle(rows)
    body = json.dumps({"object": "list", "data": rows, "model": "m"}).encode()
    found = decode_reply(OPENAI_EMBEDDINGS, body)
    assert found == Vectors.of(vectors)
    assert found.numbers() == [tuple(vector) for vector in vectors]


def test_vectors_of_unequal_length_are_content_for_the_jobs_parser() -> None:
    body = b'{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[]}]}'
    found = decode_reply(OPENAI_EMBEDDINGS, body)
    assert found.numbers() == [(1.0, 2.0), ()]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"{}",
        b'{"data":{}}',
        b'{"error":{"message":"no"}}',
        b'{"data":[{"embedding":[1]}]}',
        b'{"data":[{"index":1,"embedding":[1]}]}',
        b'{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}',
        b'{"data":[{"index":0,"embedding":[null]}]}',
        b'{"data":[{"index":0,"embedding":[NaN]}]}',
        b'{"data":[{"index":0,"embedding":[1e39]}]}',
        b'{"data":[{"index":0,"embedding":"AAAA"}]}',  # three bytes
        b'{"data":[{"index":0,"embedding":"not base64!"}]}',
        b'{"data":[{"index":0,"embedding":[1]}',
        b'{"choices":[{"message":{"content":"a"}}]}',
    ],
)
def test_a_body_without_embeddings_is_malformed_and_kept(body: bytes) -> None:
    with pytest.raises(MalformedReply, match=r"embeddings|web page") as raised:
        decode_reply(OPENAI_EMBEDDINGS, body)
    assert raised.value.body == body


RESULTS = (
    '"results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0}]'
)


@pytest.mark.parametrize(
    ("rest", "tokens"),
    [
        ("", None),
        (',"usage":{"total_tokens":7}', 7),  # Jina, vLLM
        (',"meta":{"billed_units":{"search_units":1}}', None),  # Cohere
        (',"meta":{"billed_units":{},"tokens":{"input_tokens":7.0}}', 7),
        (',"meta":{"billed_units":{"input_tokens":7}}', 7),
    ],
)
def test_a_ranking_comes_with_the_tokens_that_were_counted_if_any(
    rest: str, tokens: int | None
) -> None:
    found = decode_reply(RERANK, f'{{"id":"x",{RESULTS}{rest}}}'.encode())
    assert found == Ranking(
        results=(
            RankedDocument(index=1, score=0.9),
            RankedDocument(index=0, score=0.0),
        ),
        usage=None if tokens is None else Usage(tokens_in=tokens, tokens_out=0),
    )


def test_a_document_that_is_scored_twice_or_not_there_is_content() -> None:
    body = (
        b'{"results":[{"index":9,"relevance_score":1},{"index":9,"relevance_score":1}]}'
    )
    assert [each.index for each in decode_reply(RERANK, body).results] == [9, 9]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"results":[{"index":0}]}',
        b'{"results":[{"index":0,"relevance_score":"high"}]}',
        b'{"results":[{"index":0,"relevance_score":null}]}',
        b'{"results":[{"index":0.5,"relevance_score":1}]}',
        b'{"results":[{"index":0,"relevance_score":1}',
        b'{"message":"invalid api token"}',
    ],
)
def test_a_body_without_a_ranking_is_malformed_and_kept(body: bytes) -> None:
    with pytest.raises(MalformedReply, match="not a ranking") as raised:
        decode_reply(RERANK, body)
    assert raised.value.body == body
