"""The cost of a run of ours beside the steps that it calls."""

import statistics
import tempfile
import time
from pathlib import Path

import keras

from keras_bert.training.loop import train
from keras_bert.training.parts.tensorboard import TensorBoard
from keras_bert.training.parts.user_callbacks import UserCallbacks
from keras_bert.training.plan import BatchSource, Plan
from keras_bert.training.pretraining_examples import InputTimer
from keras_bert.training.run import Run
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.settings import RunSettings

_STEPS = 50  # the most that an entry of a run's curve has


def run_overhead(model, dataset, *, tokens_per_step, flops_per_token, rounds):
    """-> (seconds of a step, seconds of the thread that a run takes more for each step).

    The run is one of `train`, with all that it gives `fit`: the curve, the bar, TensorBoard, the
    input's clock. Its entries and as many steps called by themselves take turns, the first one not
    counted; figures are medians. No evaluation or checkpoint falls into them.

    Args:
        model: a pre-training task, compiled.
        dataset: its batches, without end.
    """
    turns = _Turns(dataset)
    steps = (rounds + 2) * _STEPS  # an entry is over where the next one begins
    plan = Plan(steps=steps, record=_STEPS, evaluate_every=steps, checkpoint_every=steps)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        run = Run(
            folder=RunFolder(path, command="pretrain", settings={}, inputs={}),
            settings=RunSettings(output=path, callbacks=[turns]),
            task=model,
            plan=plan,
            report=print,
            source=_Source(dataset, tokens_per_step, flops_per_token),
        )
        run.take_parts((TensorBoard, UserCallbacks))
        train(run)
    step = statistics.median(seconds for seconds, _ in turns.alone[1:]) / _STEPS
    pairs = list(zip(turns.alone, turns.in_run, strict=False))[1:]
    return step, statistics.median(run[1] - alone[1] for alone, run in pairs) / _STEPS


class _Source(BatchSource):
    def __init__(self, dataset, tokens_per_step, flops_per_token):
        self.tokens_per_step = tokens_per_step
        self.flops_per_token = flops_per_token
        self._dataset = dataset
        self._clock = InputTimer()

    def training(self, first_step):
        return self._clock.timed(self._dataset)

    def waited(self):
        return self._clock.seconds


class _Turns(keras.callbacks.Callback):
    """Before each entry of a run calls as many steps by themselves.

    `alone` and `in_run` are (seconds, those of the processor that the calling thread took) of each.
    """

    def __init__(self, dataset):
        super().__init__()
        self.alone, self.in_run = [], []
        self._batches = iter(dataset)
        self._begun = None

    def on_epoch_begin(self, epoch, logs=None):
        begun = _clocks()
        if self._begun is not None:
            self.in_run.append(_since(self._begun, until=begun))
        for _ in range(_STEPS):
            logs = self.model.train_function(self._batches)
        float(logs["loss"])  # when it is there, the work is done
        self._begun = _clocks()
        self.alone.append(_since(begun, until=self._begun))


def _clocks():
    return time.perf_counter(), time.thread_time()


def _since(begun, *, until):
    return tuple(end - start for start, end in zip(begun, until, strict=True))
