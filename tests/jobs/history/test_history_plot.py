from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jobs.history.plot import HEIGHT, STEP, WIDTH, plot

RUNS = [f"r{at}" for at in range(200)]


def test_the_points_of_a_model_are_joined_and_where_two_stand_is_one_mark() -> None:
    drawn = plot(["x", "y"], {"m": {"x": 1.0, "y": 0.6}, "n": {"x": 1.0}})
    lines = drawn.splitlines()
    assert lines[0] == " 1.00 |*"
    assert lines[HEIGHT // 2] == " 0.80 |" + " " * (STEP // 2) + "·"
    assert lines[HEIGHT - 1] == " 0.60 |" + " " * STEP + "a"
    assert lines[-1].strip() == "a m  b n"


@given(
    st.lists(
        st.dictionaries(st.sampled_from(RUNS), st.floats(0, 1), min_size=1), max_size=60
    ),
    st.integers(1, len(RUNS)),
)
def test_every_value_of_a_drawn_run_has_its_place_and_nothing_is_wider(
    series: list[dict[str, float]], n: int
) -> None:
    drawn = plot(RUNS[:n], {f"m{at}": own for at, own in enumerate(series)})
    rows = drawn.splitlines()[:HEIGHT]
    assert len(rows) == HEIGHT
    assert all(len(line) <= WIDTH + len(" 1.00 |") for line in rows)
    runs = {run for own in series[:52] for run in own} & set(RUNS[:n][-WIDTH:])
    step = min(STEP, (WIDTH - 1) // max(min(n, WIDTH) - 1, 1))
    for run in runs:
        column = RUNS[:n][-WIDTH:].index(run) * step + len(" 1.00 |")
        assert any(line[column : column + 1].strip(" ·") for line in rows)
