"""What an entry of the curve says: exact losses, their weighted sum, and groups in TensorBoard."""

import math

import pytest

from keras_bert.train.curve import exact_losses
from keras_bert.train.loop import Feed, _Measures
from keras_bert.train.plan import Plan
from keras_bert.train.tensorboard import by_tag


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
    found = exact_losses({**logs, "a_cross_entropy": nan}, weights={}, penalties=0)
    assert math.isnan(found["a_loss"]) and math.isnan(found["loss"])


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
def test_figures_are_grouped_by_the_models_outputs_and_nothing_else(name, tag):
    assert by_tag({name: 1.0}, outputs=["masked_lm", "next_sentence"]) == {tag: 1.0}


def test_a_figure_over_nothing_does_not_keep_a_run_from_its_evaluation():
    """A mean over nothing is NaN, which is no news; a loss that is NaN ends the run elsewhere."""

    class Measured(Feed):
        def measures(self, step):
            return {"f1": step / 8}

    callback = _Measures(Measured(), Plan(steps=4, entry=1, evaluate_every=2, checkpoint_every=2))
    for epoch, loss, expected in ((0, 1.0, {}), (1, 1.0, {"val_f1": 0.25}), (3, math.nan, {})):
        logs = {"loss": loss, "recall": math.nan}
        callback.on_epoch_end(epoch, logs)
        assert {name: v for name, v in logs.items() if name.startswith("val_")} == expected
