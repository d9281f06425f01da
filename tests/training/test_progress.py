"""The progress of a run: plain lines in a log file, one bar on a terminal."""

import io
import sys

import pytest

from keras_bert.training import logs
from keras_bert.training.logs import Progress, describe
from keras_bert.training.plan import plan_epochs, plan_steps

NAMES = {"masked_lm_loss": "loss", "masked_lm_accuracy": "accuracy"}


class Records:
    """Stands in for a `History`."""

    def __init__(self):
        self.records = []
        self.plan = plan_steps(6000, evaluate_every=6000, checkpoint_every=6000)

    @property
    def step(self):
        return self.records[-1]["step"] if self.records else 1000

    def add(self, step, seconds, **more):
        metrics = {"masked_lm_loss": 9.5, "masked_lm_accuracy": 0.125}
        self.records.append(
            {
                "step": step,
                "seconds": seconds,
                "train": metrics,
                "tokens_per_second": 8412.3,
                **more,
            }
        )


class Terminal(io.StringIO):
    def isatty(self):
        return True


def show(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)
    history = Records()
    progress = Progress(history, first_step=1000, names=NAMES)
    progress.on_train_begin()
    for step, seconds, more in [
        (1050, 100.0, {}),  # with the time that compiling took
        (1100, 105.0, {}),
        (1150, 110.0, {"eval": {"masked_lm_loss": 7.25}}),
        (6000, 112.0, {"mfu": 0.25}),
    ]:
        progress.on_epoch_begin(0)
        progress.on_train_batch_end(0)
        history.add(step, seconds, **more)
        progress.on_epoch_end(0)
    progress.on_train_end()
    return stream.getvalue()


def test_a_log_file_gets_plain_lines_not_too_many_and_every_evaluation(monkeypatch):
    assert show(io.StringIO(), monkeypatch).splitlines() == [
        "step 1050/6000: loss 9.500, accuracy 12.5 %, 8,412 tokens/s",
        # 10 seconds for 100 steps, 4850 are left
        "step 1150/6000: loss 9.500, accuracy 12.5 %, 8,412 tokens/s, 8:05 left; eval: loss 7.250",
        "step 6000/6000: loss 9.500, accuracy 12.5 %, 8,412 tokens/s",
    ]
    monkeypatch.setattr(logs, "has_accelerator", lambda: True)
    assert show(io.StringIO(), monkeypatch).endswith("8,412 tokens/s (MFU 25.0 %)\n")


def test_a_terminal_gets_a_bar_and_lines_of_evaluations_that_stay(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    shown = show(Terminal(), monkeypatch)
    assert "\r\x1b[2Kstep 1150/6000: eval: loss 7.250\n" in shown
    assert "1000/6000 steps" in shown and "6000/6000 steps" in shown
    assert "loss 9.500, accuracy 12.5 %, 8,412 tokens/s" in shown
    assert shown.endswith("\n")


def test_a_run_that_fails_leaves_the_terminal_on_a_new_line(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    progress = Progress(Records(), first_step=0, names=NAMES)
    progress.close()
    progress.on_train_begin()
    progress.close()
    assert stream.getvalue().endswith("\n")


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        ({"masked_lm_accuracy": 1.0, "masked_lm_loss": 0.0004}, "loss 0.000, accuracy 100.0 %"),
        ({"other": 1.0}, ""),
    ],
)
def test_metrics_are_named_in_a_fixed_order(metrics, text):
    assert describe(metrics, NAMES) == text


@pytest.mark.parametrize(
    "epochs, first_step, may_stop, expected",
    [
        (23, 0, True, "Up to 23 epochs of about 10 s each."),
        (23, 600, False, "17 more epochs of about 10 s each."),
        (1, 0, True, "1 epoch of about 10 s."),
        (7, 600, True, "1 more epoch of about 10 s."),
    ],
)
def test_what_to_expect_is_said_once(epochs, first_step, may_stop, expected, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    history = Records()
    history.plan = plan_epochs(epochs, examples=100, batch_size=1, checkpoint_every=100)
    progress = Progress(history, first_step=first_step, names=NAMES, may_stop=may_stop)
    progress.on_train_begin()
    for step in (10, 30, 60):  # 2 seconds for 20 steps
        history.add(first_step + step, step / 10)
        progress.on_epoch_begin(0)
        progress.on_epoch_end(0)
    progress.on_train_end()
    assert [line for line in stream.getvalue().splitlines() if "about" in line] == [expected]
