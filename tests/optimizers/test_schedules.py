"""The rates of a run, by hand."""

import keras
import numpy as np
import pytest

from keras_bert.optimizers.schedules import SCHEDULES, WarmupLinearDecay
from keras_bert.training.settings import SCHEDULES as NAMES


def rates(schedule, steps):
    return [float(schedule(step)) for step in range(steps)]


def test_the_rate_rises_to_the_peak_and_falls_to_zero_and_no_step_is_lost():
    schedule = WarmupLinearDecay(peak=0.4, warmup_steps=4, steps=8)
    np.testing.assert_allclose(
        rates(schedule, 10), [0.1, 0.2, 0.3, 0.4, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0], rtol=1e-6
    )


def test_without_warmup_it_starts_at_the_peak():
    schedule = WarmupLinearDecay(peak=1.0, warmup_steps=0, steps=4)
    np.testing.assert_allclose(rates(schedule, 5), [1.0, 0.75, 0.5, 0.25, 0.0], rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_schedule_survives_serialisation(name):
    more = {"decay_steps": 2} if name == "wsd" else {}
    schedule = SCHEDULES[name](peak=0.4, warmup_steps=4, steps=8, **more)
    config = keras.saving.serialize_keras_object(schedule)
    assert rates(keras.saving.deserialize_keras_object(config), 9) == rates(schedule, 9)


@pytest.mark.parametrize(
    "settings", [{"peak": 0.0}, {"warmup_steps": 8}, {"warmup_steps": -1}, {"steps": 0}]
)
def test_the_schedule_rejects_what_has_no_meaning(settings):
    with pytest.raises(ValueError, match="Received: peak="):
        WarmupLinearDecay(**{"peak": 0.4, "warmup_steps": 4, "steps": 8, **settings})


def test_the_names_are_those_of_the_settings():
    assert tuple(SCHEDULES) == NAMES


def test_half_a_cosine_and_a_level_line():
    cosine = SCHEDULES["cosine"](peak=2.0, warmup_steps=2, steps=6)
    root = 2**-0.5
    np.testing.assert_allclose(
        rates(cosine, 8), [1, 2, 2, 1 + root, 1, 1 - root, 0, 0], rtol=1e-6, atol=1e-6
    )
    constant = SCHEDULES["constant"](peak=2.0, warmup_steps=2, steps=6)
    np.testing.assert_allclose(rates(constant, 8), [1, 2, 2, 2, 2, 2, 2, 2])


def test_a_level_line_and_a_root_down_to_zero():
    wsd = SCHEDULES["wsd"](peak=2.0, warmup_steps=2, steps=10, decay_steps=4)
    down = [2 * (1 - (n / 4) ** 0.5) for n in range(5)]
    np.testing.assert_allclose(rates(wsd, 12), [1, *[2] * 5, *down, 0], rtol=1e-6, atol=1e-6)
    longer = SCHEDULES["wsd"](peak=2.0, warmup_steps=2, steps=1000, decay_steps=4)
    assert rates(longer, 7) == rates(wsd, 7)  # until the decay, however long the run is
    for wrong in (0, 9):
        with pytest.raises(ValueError, match="Received: "):
            SCHEDULES["wsd"](peak=2.0, warmup_steps=2, steps=10, decay_steps=wrong)


def test_slanted_triangular_rates_are_those_of_the_paper():
    """Its formula with cut_frac 0.1 and ratio 32, if T times cut_frac is whole."""
    steps, cut_frac, ratio, peak = 200, 0.1, 32, 0.01
    schedule = SCHEDULES["slanted-triangular"](peak=peak, warmup_steps=20, steps=steps)
    expected, cut = [], int(steps * cut_frac)
    for t in range(steps):
        p = t / cut if t < cut else 1 - (t - cut) / (cut * (1 / cut_frac - 1))
        expected.append(peak * (1 + p * (ratio - 1)) / ratio)
    np.testing.assert_allclose(rates(schedule, steps), expected, rtol=1e-5)
    assert np.argmax(expected) == cut
