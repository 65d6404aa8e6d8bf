from __future__ import annotations

import time

from defusedxml.ElementTree import fromstring

from tests.bench.flame import Picture, sampling, tree, under

STACKS = {
    ("m:run", "runner.engine.driver:Driver.run", "store.log:append"): 3.0,
    ("m:run", "runner.engine.driver:Driver.run"): 1.0,
    ("m:run", "m:start"): 4.0,
}


def test_stacks_are_cut_off_above_the_named_function() -> None:
    below = under(STACKS, ["Driver.run"])
    assert below == {
        ("runner.engine.driver:Driver.run", "store.log:append"): 3.0,
        ("runner.engine.driver:Driver.run",): 1.0,
    }


def test_a_frame_has_its_own_time_and_that_of_its_calls() -> None:
    (run,) = tree(under(STACKS, ["Driver.run"])).calls.values()
    (append,) = run.calls.values()
    assert (run.seconds, append.seconds) == (4.0, 3.0)


def test_the_picture_states_times_per_unit() -> None:
    root = tree(under(STACKS, ["Driver.run"]))
    picture = fromstring(
        Picture(root, units=1000, unit="call").svg("One call <before>")
    )
    titles = [box.text for box in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [
        "all: 4,000 us per call, 100.0%",
        "runner.engine.driver:Driver.run: 4,000 us per call, 100.0%",
        "store.log:append: 3,000 us per call, 75.0%",
    ]


def test_sampling_sees_what_uses_the_cpu() -> None:
    def busy() -> None:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass

    with sampling() as stacks:
        busy()
    assert under(stacks, [busy.__qualname__])
