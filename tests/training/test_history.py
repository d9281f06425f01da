"""Log records: exact losses, their weighted sum, and groups in TensorBoard."""

import math
from types import SimpleNamespace

import pytest

from keras_bert.tasks.pretraining.metrics import exact_losses
from keras_bert.training import logs as module
from keras_bert.training.callbacks import HeldOutMetrics
from keras_bert.training.logs import History, by_tag
from keras_bert.training.plan import BatchSource, Plan, plan_steps


def test_the_total_has_the_weights_of_the_losses_and_the_penalties():
    logs = {
        "loss": 9.0,  # Keras's, over batches' means
        "a_loss": 2.5,
        "b_loss": 6.5,
        "a_cross_entropy": 2.0,
        "b_cross_entropy": 6.0,
        "a_accuracy": 0.5,
    }
    assert exact_losses(logs, weights={"a": 0.5, "b": 0.25}, penalties=0.125) == {
        "loss": 0.5 * 2.0 + 0.25 * 6.0 + 0.125,
        "a_loss": 2.0,
        "b_loss": 6.0,
        "a_accuracy": 0.5,
    }
    assert exact_losses(logs, weights={}, penalties=0)["loss"] == 8.0


def test_a_mean_over_nothing_is_left_out_and_a_loss_that_is_no_number_is_not():
    nan = float("nan")
    logs = {"a_cross_entropy": 1.0, "a_part_accuracy": nan, "loss": 1.0}
    assert exact_losses(logs, weights={}, penalties=0) == {"a_loss": 1.0, "loss": 1.0}
    losses = exact_losses({**logs, "a_cross_entropy": nan}, weights={}, penalties=0)
    assert math.isnan(losses["a_loss"]) and math.isnan(losses["loss"])


def test_where_nothing_is_exact_keras_is_believed():
    logs = {"loss": 0.70000000001, "accuracy": 0.5}
    assert exact_losses(logs, weights={"logits": 3.0}, penalties=1.0) == {
        "loss": 0.7,
        "accuracy": 0.5,
    }


@pytest.mark.parametrize(
    "name, tag",
    [
        ("masked_lm_loss", "masked_lm/loss"),
        ("masked_lm_accuracy", "masked_lm/accuracy"),
        ("next_sentence_loss", "next_sentence/loss"),
        ("loss", "total/loss"),
        ("macro_f1", "total/macro_f1"),
        ("masked_language", "total/masked_language"),
    ],
)
def test_metrics_are_grouped_by_the_models_outputs_and_nothing_else(name, tag):
    assert by_tag({name: 1.0}, outputs=["masked_lm", "next_sentence"]) == {tag: 1.0}


def test_a_metric_over_nothing_does_not_keep_a_run_from_its_evaluation():
    """A mean over nothing is NaN, which is no news; a loss that is NaN ends the run elsewhere."""

    class Measured(BatchSource):
        def held_out_metrics(self, step):
            return {"f1": step / 8}

    callback = HeldOutMetrics(
        Measured(), Plan(steps=4, record=1, evaluate_every=2, checkpoint_every=2)
    )
    for epoch, loss, expected in ((0, 1.0, {}), (1, 1.0, {"val_f1": 0.25}), (3, math.nan, {})):
        logs = {"loss": loss, "recall": math.nan}
        callback.on_epoch_end(epoch, logs)
        assert {name: v for name, v in logs.items() if name.startswith("val_")} == expected


@pytest.mark.parametrize(
    "flops_per_token, matrix_rate, fraction",
    [(5.0, 1000.0, 0.5), (None, 1000.0, None), (5.0, None, None)],
)
def test_the_fraction_of_the_machines_flops_is_that_of_the_tokens_per_second(
    flops_per_token, matrix_rate, fraction
):
    history = History(None, records=[], matrix_rate=matrix_rate)
    history.source = SimpleNamespace(tokens_per_step=50, flops_per_token=flops_per_token)
    history._timed_from, history._timed_until = (1, 10.0, 0.25), (5, 12.0, 0.5)
    speed = history._speed()
    assert speed["tokens_per_second"] == 100.0 and speed["input_wait"] == 0.125
    assert speed.get("mfu") == fraction


def test_the_first_step_of_a_phase_which_compiles_is_not_timed(monkeypatch):
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(module, "time", clock)
    history = History(plan_steps([3, 3], evaluate_every=3, checkpoint_every=3), records=[])
    history.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=0)))
    for epoch in (0, 3):  # with which a phase begins
        source = SimpleNamespace(tokens_per_step=10, flops_per_token=None, waited=lambda: None)
        history.source = source
        speeds = []
        for number in range(3):  # an entry is a step
            history.on_epoch_begin(epoch + number)
            clock.now += 1.0 if number else 60.0
            history.on_train_batch_end(0)
            speeds.append(history._speed()["tokens_per_second"])
        assert speeds == [None, 10.0, 10.0]


def test_tokens_are_counted_on_from_the_record_before_where_they_are_known():
    history = History(None, records=[], matrix_rate=None)
    history._steps, history.source = 4, SimpleNamespace(tokens_per_step=10.3)
    assert history._tokens() == 41
    history.records.append({"tokens": 41, "seconds": 1.0})
    assert history._tokens() == 82
    history.records.append({"seconds": 1.0})  # of an earlier version
    assert history._tokens() is None
    history.records.clear()
    history.source = SimpleNamespace(tokens_per_step=None)
    assert history._tokens() is None
