"""How many steps there is time for; measuring leaves no trace. What time it is, a test says."""

import math
import threading
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.inputs.batches import resolved
from keras_bert.records import DataFolder
from keras_bert.tasks.pretraining.features import training_dataset
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.training import costs, pretrain, pretraining_examples
from keras_bert.training.costs import steps_in
from keras_bert.training.parts.minutes import Minutes, steps_again
from keras_bert.training.plan import BatchSource, plan_steps
from keras_bert.training.pretraining_examples import InputTimer
from keras_bert.training.settings import PretrainSettings
from tests.messages import raises_input_error
from tests.pretraining_folder import VOCABULARY, make_data_folder

SECONDS = 0.25  # of a batch; sums of it are exact


class Clock:
    """Stands in for the module `time`: nothing takes any but what says so."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture()
def clock(monkeypatch):
    clock = Clock()
    for module in (costs, pretraining_examples):
        monkeypatch.setattr(module, "time", clock)
    return clock


def slow_batches(clock, count, made=lambda number: None):
    """Batches of which each takes its time; `made` is told that it is there."""

    def wait(number):
        clock.now += SECONDS
        made(number)
        return number

    dataset = tf.data.Dataset.range(count).map(
        lambda number: tf.numpy_function(wait, [number], tf.int64)
    )
    dataset = dataset.map(lambda number: (tf.ones([4, 3]), tf.ones([4, 1])))
    return resolved(dataset.apply(tf.data.experimental.assert_cardinality(count)))


class Slow(BatchSource):
    """Every batch takes its time."""

    batches_per_step = 2

    def __init__(self, clock):
        self._clock = clock

    def training(self, first_step):
        return slow_batches(self._clock, 10**6)

    def evaluation(self):
        return slow_batches(self._clock, 5)


def test_the_time_there_is_is_planned_for_and_the_model_is_as_before(clock):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dropout(0.5), keras.layers.Dense(1)])
    before = [np.array(variable) for variable in model.variables]
    clock.now = 7.0
    steps = steps_in(
        [1.0, 2.0],
        model,
        [Slow(clock), Slow(clock)],
        spent=clock.perf_counter,
        compile_model=lambda: model.compile("adam", "mse"),
        evaluate_every=10,
        multiple_of=3,
    )
    for variable, value in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)
    # A fiftieth of the time, but two seconds at least, and a quarter of that for an evaluation.
    assert 7 + 2 * 2.5 < clock.now < 7 + 2 * 4.5
    # A step takes two batches' time, and a tenth of an evaluation's. A phase begins with a batch
    # of each kind; the first has what was spent before, and one evaluation more.
    step, begin, evaluation = (2 + 5 / 10) * SECONDS, 2 * SECONDS, 5 * SECONDS
    left = (0.97 * 60 - clock.now - begin - 2 * evaluation, 0.97 * 120 - begin - evaluation)
    assert steps == [3 * math.floor(seconds / step / 3) for seconds in left]


def test_too_little_time_is_an_error_that_says_how_long_a_step_takes(clock):
    """A run of one step trains nothing."""
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    with raises_input_error(
        "`minutes` is 0.5, and a step takes 0.5 seconds on this machine, after ... seconds for the "
        "start and evaluations: there is time for ... steps. Expected at least 50, which take "
        "about 1 minute. Use more minutes, a smaller model or a smaller batch."
    ):
        steps_in(
            [0.5],
            model,
            [Slow(clock)],
            spent=clock.perf_counter,
            compile_model=lambda: model.compile("adam", "mse"),
            evaluate_every=10,
        )


def test_every_phase_is_measured_from_its_own_first_batch_on(tmp_path, monkeypatch):
    """Also if a step has several batches, of so many tokens each."""
    paths = [
        make_data_folder(tmp_path / name, rows=rows, eval_examples=0, objective="mlm", seed=rows)
        for name, rows in (("first", 20), ("second", 30))
    ]
    settings = PretrainSettings.of(
        {"data": paths, "minutes": [1.0, 2.0], "batch_tokens": 64, "gradient_accumulation": 2}
        | {"vocab": "v", "output": "o"}
    )
    tokenizer = Tokenizer.from_vocab(VOCABULARY, lowercase=True)
    task = SimpleNamespace(
        tokenizer=tokenizer,
        input=("input_ids",),
        output=("masked_lm",),
        settings=None,
        context_windows=lambda card, vocabulary: None,
    )
    first = []

    def steps_of(given, model, feeds, **more):
        first.extend(next(iter(source.training(0)))[0]["input_ids"] for source in feeds)
        return [1] * len(given)

    monkeypatch.setattr(pretrain, "steps_in", steps_of)
    run = SimpleNamespace(resolved=lambda name: None, resolve=lambda name, value: value)
    folders = [DataFolder.open(path) for path in paths]
    pretrain._steps(task, run, folders, settings, began=0.0, report=lambda line: None)
    options = {"vocabulary": VOCABULARY, "seed": 0, "batch_tokens": 32, "task": task}
    for ids, folder in zip(first, folders, strict=True):
        expected = next(iter(training_dataset(folder, **options)))[0]["input_ids"]
        np.testing.assert_array_equal(ids, expected)


def test_waiting_for_batches_is_counted_and_nothing_else(clock):
    waited = InputTimer()
    batches = iter(waited.timed(slow_batches(clock, 10)))
    for _ in range(5):
        next(batches)
        clock.now += 100  # what a step takes
    assert waited.seconds == 5 * SECONDS


def test_a_batch_that_is_there_already_is_not_waited_for(clock):
    both = threading.Event()
    made = slow_batches(clock, 2, made=lambda number: both.set() if number else None)
    waited = InputTimer()
    batches = iter(waited.timed(made.prefetch(2)))
    next(batches)
    both.wait()
    first = waited.seconds
    next(batches)
    assert SECONDS <= first == waited.seconds


def course(*points):
    """Records of (step, seconds)."""
    return [{"step": step, "seconds": seconds} for step, seconds in points]


@pytest.mark.parametrize(
    "minutes, steps, points, expected",
    [
        ([10], [600], [(0, 0), (10, 10), (100, 100)], None),  # as planned
        ([10], [600], [(0, 0), (10, 10), (100, 103)], None),  # nearly
        ([10], [600], [(10, 5), (110, 55)], [110 + 1090]),  # twice as fast
        ([10], [600], [(10, 30), (110, 230)], [110 + 185]),  # half as fast
        ([10], [600], [(10, 30), (110, 900)], [111]),  # no time is left
        ([10], [600], [(10, 5), (550, 275)], None),  # the last tenth stays
        ([10], [600], [(100, 9)], None),  # nothing is timed yet
        ([10, 5], [600, 300], [(10, 5), (110, 55)], [110 + 1090, 300]),
        ([10, 5], [600, 300], [(600, 600), (610, 605), (710, 655)], [600, 110 + 490]),
        ([10, 5], [600, 300], [(600, 600)], None),
    ],
)
def test_steps_are_planned_again_by_what_they_have_taken(minutes, steps, points, expected):
    assert steps_again(minutes, steps, course(*points)) == expected


def test_the_start_counts_and_executions_are_whole():
    records = course((10, 5), (110, 55))
    assert steps_again([10], [600], records, before=100) == [110 + 890]
    assert steps_again([10], [600], records, before=100, multiple_of=4) == [110 + 888]


@pytest.mark.parametrize("seconds_per_step", [0.3, 1.0, 4.0])
def test_a_run_ends_when_its_minutes_do_and_a_new_plan_is_made_once(seconds_per_step):
    """At a speed that does not change; planned was a second per step."""
    minutes, steps, records, plans = [60], [3600], [], 0
    while True:
        plan = plan_steps(steps, evaluate_every=100, checkpoint_every=100)
        rule = Minutes(minutes, steps, plan, before=0.0)
        assert not records or not rule.is_over(records)  # nor does a resumed run plan again
        first = plan.record_at(records[-1]["step"]) if records else 0
        for number in range(first, plan.records):
            step = plan.step_of(number)
            records += course((step, step * seconds_per_step))
            if rule.is_over(records):
                break
        again = rule.new_steps(records)
        if again is None:
            break
        assert records[-1]["step"] % 100 == 0  # there is a checkpoint to resume from
        steps, plans = again, plans + 1
    assert records[-1]["seconds"] == pytest.approx(3600, rel=0.05)
    assert plans == (seconds_per_step != 1.0)
