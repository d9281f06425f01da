"""Histograms of a run that was killed and went on: those of each evaluation once."""

import keras
import tensorflow as tf

from keras_bert.training.monitoring.tensorboard import WeightHistograms
from keras_bert.training.plan import Plan

PLAN = Plan(steps=8, record=2, evaluate_every=4, checkpoint_every=2)


def session(folder, epochs):
    """Runs the callback over some entries; the steps that it wrote of then lie in the folder."""
    callback = WeightHistograms(folder, PLAN)
    callback.set_model(
        keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="d")], name="m")
    )
    for epoch in epochs:
        callback.on_epoch_begin(epoch)
        callback.on_epoch_end(epoch)
    return sorted(int(path.suffix[1:]) for path in (folder / "weights").glob("events*"))


def test_a_session_takes_away_what_the_one_before_it_wrote_of_later_steps(tmp_path):
    assert session(tmp_path, range(4)) == [4, 8]
    (tmp_path / "weights" / ".DS_Store").touch()  # is nobody's concern
    assert session(tmp_path, [1]) == [4]  # from the checkpoint of step 2
    before = {path.name for path in (tmp_path / "weights").iterdir()}
    assert ".DS_Store" in before
    assert session(tmp_path, [2, 3]) == [4, 8]  # from that of step 4
    assert before < {path.name for path in (tmp_path / "weights").iterdir()}
    (last,) = (tmp_path / "weights").glob("*.8")
    events = [
        tf.compat.v1.Event.FromString(record.numpy())
        for record in tf.data.TFRecordDataset(str(last))
    ]
    found = {(value.tag, event.step) for event in events for value in event.summary.value}
    assert found == {("weights/m/d/kernel", 8), ("weights/m/d/bias", 8)}
