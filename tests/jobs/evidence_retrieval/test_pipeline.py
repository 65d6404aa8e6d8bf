"""Configurations in TOML: what a person may write, and what is said about the rest.

First stages, rerankers and the graph on one post, and what stands in for a gap.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jobs.evidence_retrieval.data import Criterion, EvidenceDataset
from jobs.evidence_retrieval.parsing import Assessment
from jobs.evidence_retrieval.pipeline import (
    STANDARD,
    Config,
    first_stages,
    read_configs,
)
from jobs.evidence_retrieval.predictions.outputs import Cosines, Outputs, SubjectOutputs
from jobs.evidence_retrieval.predictions.rankings import (
    PostPool,
    RankingStep,
    RankingSteps,
    gate_chain,
    ranking_chains,
)
from jobs.evidence_retrieval.predictions.stages import lexical_similarity, spread, start
from jobs.evidence_retrieval.sentence_order import shuffled
from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.errors import DatasetError
from tests.jobs.evidence_retrieval.input_files import files
from tests.jobs.evidence_retrieval.world import post

WHOLE = """
[[config]]
name = "plain"

[[config]]
name = "all of it"
first_stage = "rrf:[bm25, embedding]"
rerank = "assess"
graph = "label_propagation"
dynamic_k = "fixed:7"
gate = "passthrough"
calibration = "platt"
three_state = true
top = 24
"""


def read(folder: Path, text: str, **changes: object) -> tuple[Config, ...]:
    settings = files(folder, pipeline=text)
    return read_configs(settings.model_copy(update=changes))


def complaint(folder: Path, text: str, **changes: object) -> str:
    with pytest.raises(DatasetError) as caught:
        read(folder, text, **changes)
    return str(caught.value)


def test_every_key_is_read_and_each_has_a_default(tmp_path: Path) -> None:
    assert read(tmp_path, WHOLE) == (
        Config(name="plain"),
        Config(
            name="all of it",
            first_stage=("bm25", "embedding"),
            rerank="assess",
            graph="label_propagation",
            dynamic_k="fixed:7",
            gate="passthrough",
            calibration="platt",
            three_state=True,
            top=24,
        ),
    )


def test_without_a_file_there_are_the_six_standard_ones(tmp_path: Path) -> None:
    assert read_configs(files(tmp_path)) is STANDARD


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("rerank = 'bm25'", "1: rerank: Input should be 'none', 'llm', 'assess' or"),
        ("rerankk = 'llm'", "1: unknown key rerankk (known are name, first_stage"),
        ("dynamic_k = 'fixed:0'", "1: dynamic_k: 'fixed:0' is not none, mass or fixed"),
        ("dynamic_k = 'fixed:x'", "1: dynamic_k: 'fixed:x' is not none, mass or fixed"),
        ("dynamic_k = 5", "1: dynamic_k: Input should be a valid string (correct it)"),
        ("first_stage = 'bm52'", "1: first_stage: 'bm52' is not one of bm25, embed"),
        ("first_stage = 'rrf:[bm25]'", "1: first_stage: 'rrf:[bm25]' does not fuse"),
        ("three_state = 'true'", "1: three_state: Input should be a valid boolean"),
        ("top = 0", "1: top: Input should be greater than or equal to 1"),
        ("calibration = 'platt'", "'x': calibration without a gate (name a gate"),
        ("three_state = true", "'x': three_state without a gate (name a gate"),
    ],
)
def test_what_is_off_is_said_by_configuration_and_key(
    tmp_path: Path, lines: str, said: str
) -> None:
    text = f"[[config]]\nname = 'x'\n{lines}\n"
    assert complaint(tmp_path, text).startswith(f"pipeline.toml config {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[config]]\n", "config 1: name: Field required (correct it)."),
        ("[[config]]\nname = ''\n", "config 1: name: String should have at least 1"),
        ("[[config]]\nname='a'\n" * 2, "config 'a': the name is taken already"),
        ("", "no configuration in it (write a [[config]])."),
        ("[config]\nname='a'\n", "no configuration in it (write a [[config]])."),
        ("config = [1]\n", "config 1: table: Input should be a valid dictionary"),
        ("[[configs]]\nname='a'\n", "unknown key configs (known is [[config]])."),
        ("name = \n", "not TOML, Invalid value (at line 1, column 8)"),
    ],
)
def test_a_file_that_holds_no_configurations_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    found = complaint(tmp_path, text)
    assert found.removeprefix("pipeline.toml").lstrip(": ").startswith(said)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    settings = files(tmp_path).model_copy(update={"pipeline": tmp_path / "no.toml"})
    with pytest.raises(DatasetError, match=r"no\.toml: No such file"):
        read_configs(settings)


def test_a_model_that_reranks_starts_from_the_settings_first_stage(
    tmp_path: Path,
) -> None:
    text = "[[config]]\nname='x'\nrerank='llm'\nfirst_stage='embedding'\n"
    assert "rerank llm reorders what --first-stage bm25 lists" in complaint(
        tmp_path, text
    )
    (config,) = read(tmp_path, text, first_stage="embedding")
    assert config.first_stage == ("embedding",)


def test_an_endpoint_is_given_the_whole_pool_behind_any_first_stage(
    tmp_path: Path,
) -> None:
    text = "[[config]]\nname='x'\nrerank='endpoint'\nfirst_stage='embedding'\n"
    (config,) = read(tmp_path, text)
    assert (config.rerank, config.first_stage) == ("endpoint", ("embedding",))


def test_a_fusion_names_several_rankings() -> None:
    assert first_stages("rrf:[bm25,embedding,document]") == (
        *("bm25", "embedding", "document"),
    )
    for text in ("rrf:[]", "rrf:[bm25,bm25]", "rrf:bm25", "rrf:[rrf:[bm25]]", ""):
        with pytest.raises(ValueError, match=r"is not one of|does not fuse"):
            first_stages(text)


TEXTS = ("cannot sleep at night", "i feel sad sad", "sleep is bad", "fine")
KEY = "p/A"


def steps(
    subject: SubjectOutputs | None = None,
    *,
    texts: tuple[str, ...] = TEXTS,
    cosines: Cosines | None = None,
    endpoint: tuple[float | None, ...] | None = None,
) -> RankingSteps:
    own = post("p", *texts)
    world = EvidenceDataset(
        settings=EvidenceSettings(),
        posts=(own,),
        criteria=(Criterion(id="A", text="sleep sad"), Criterion(id="B", text="fine")),
    )
    subject = subject or SubjectOutputs()
    outputs = Outputs(
        subjects={"m": subject}, endpoint={} if endpoint is None else {KEY: endpoint}
    )
    return RankingSteps(PostPool(world, own, cosines), outputs, subject, seed=7)


def last(of: RankingSteps, config: Config) -> RankingStep:
    return of.at(ranking_chains(config)[-1])


def test_bm25_comes_first_and_the_graph_of_words_after_it() -> None:
    of = steps()
    first = last(of, Config(name="c"))
    assert first.orders[0] == (1, 2, 0, 3)
    assert first.scores[:, 0] == pytest.approx(
        [0.2772588722, 0.6879844596, 0.3150669003, 0.0], abs=1e-10
    )
    graph = last(of, Config(name="c", graph="ppr"))
    weights = of._pool.weights
    for column in (0, 1):
        alone = spread(weights, start(first.scores[:, column].tolist()))
        assert graph.scores[:, column] == pytest.approx(alone, abs=1e-10)


def test_likeness_of_words_is_one_with_itself_and_zero_without_a_word() -> None:
    likeness = lexical_similarity(("a b", "A, b!", "c", "..."))
    assert likeness[0, 1] == pytest.approx(1.0)
    assert likeness[0, 2] == 0.0
    assert likeness[3].tolist() == [0.0] * 4


def test_floors_are_the_document_and_a_seeded_shuffle() -> None:
    of = steps()
    assert last(of, Config(name="c", first_stage=("document",))).orders[0] == (
        0,
        1,
        2,
        3,
    )
    drawn = last(of, Config(name="c", first_stage=("random",))).orders[0]
    assert drawn == tuple(shuffled(4, 7, KEY, 1))


def test_an_embedding_orders_by_cosine_and_makes_the_graph() -> None:
    near = np.array([[0.1, 0.0], [0.9, 0.0], [0.5, 0.0], [0.7, 0.0]])
    of = steps(cosines=Cosines(query=near, between=np.eye(4)))
    assert last(of, Config(name="c", first_stage=("embedding",))).orders[0] == (
        1,
        3,
        2,
        0,
    )
    assert of._pool.weights[0].tolist() == pytest.approx([0.0, 0.3, 0.0, 0.0])


def test_fusion_ties_go_by_place() -> None:
    near = np.array([[0.9, 0.0], [0.1, 0.0], [0.2, 0.0], [0.3, 0.0]])
    of = steps(cosines=Cosines(query=near, between=np.eye(4)))
    fused = last(of, Config(name="c", first_stage=("document", "embedding")))
    assert fused.orders[0] == (0, 1, 3, 2)  # the second and the last are level


def test_a_ranking_that_no_reply_gives_is_that_of_the_stage_before() -> None:
    of = steps()
    for rerank in ("assess", "llm", "endpoint"):
        step = last(of, Config(name="c", rerank=rerank))
        assert step.orders[0] == (1, 2, 0, 3)
        assert step.answered.tolist() == [False, False]
    start_ = last(of, Config(name="c", first_stage=("assess",)))
    assert start_.orders[0] == (1, 2, 0, 3)


def test_an_assessment_ranks_what_it_lists_and_the_rest_by_bm25() -> None:
    own = SubjectOutputs()
    own.assessed[KEY] = {1: Assessment(probability=0.9, relevance={3: 90})}
    step = last(steps(own), Config(name="c", rerank="assess"))
    assert step.orders[0] == (3, 1, 2, 0)
    assert step.scores[:, 0].tolist() == [0.0, 0.0, 0.0, 0.9]
    assert step.answered.tolist() == [True, False]


def test_reranks_are_merged_and_an_endpoint_puts_what_it_left_out_last() -> None:
    own = SubjectOutputs()
    own.orders[KEY] = {1: (3, 2, 1, 0), 2: (3, 0, 1, 2)}
    assert last(steps(own), Config(name="c", rerank="llm")).orders[0] == (3, 0, 2, 1)
    of = steps(endpoint=(0.5, None, 0.9, None))
    assert last(of, Config(name="c", rerank="endpoint")).orders[0] == (2, 0, 1, 3)


@pytest.mark.parametrize("rerank", ["none", "assess", "llm", "endpoint"])
@pytest.mark.parametrize("graph", ["none", "ppr", "label_propagation"])
@pytest.mark.parametrize("texts", [(), ("only one",), ("...", "!")])
def test_empty_small_and_wordless_pools_go_through_every_stage(
    texts: tuple[str, ...], graph: str, rerank: str
) -> None:
    of = steps(texts=texts)
    for source in ("bm25", "embedding", "assess", "document", "random"):
        config = Config(
            name="c",
            first_stage=(source,),
            rerank=rerank,  # type: ignore[arg-type]  # of the Literal
            graph=graph,  # type: ignore[arg-type]  # of the Literal
        )
        step = last(of, config)
        assert step.orders == (tuple(range(len(texts))),) * 2
        assert step.scores.shape == (len(texts), 2)


def test_a_removed_stage_leaves_nothing_behind() -> None:
    own = SubjectOutputs()
    own.assessed[KEY] = {1: Assessment(probability=0.9, relevance={3: 90})}
    alone = last(steps(), Config(name="first stage", top=24))
    beside = steps(own)
    last(beside, Config(name="full", rerank="assess", graph="ppr"))
    first = last(beside, Config(name="first stage", top=24))
    assert first.orders == alone.orders
    assert first.scores.tobytes() == alone.scores.tobytes()


@pytest.mark.parametrize(
    ("config", "last"),
    [
        (Config(name="c", rerank="assess", graph="ppr"), "assess"),
        (Config(name="c", rerank="endpoint", graph="label_propagation"), "endpoint"),
        (Config(name="c", rerank="llm", graph="ppr"), "none"),
        (Config(name="c", rerank="llm"), "none"),
        (Config(name="c", graph="ppr"), "none"),
    ],
)
def test_a_gate_goes_by_scores_that_say_whether_and_not_only_where(
    config: Config, last: str
) -> None:
    found = gate_chain(ranking_chains(config))
    assert (found.rerank, found.graph) == (last, "none")
