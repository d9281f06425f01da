"""A user's own Keras callbacks in a run, such as those for MLflow or Weights & Biases."""

import re
from collections.abc import Sequence

from keras_bert.base.errors import InputError
from keras_bert.base.settings import Settings, advanced_setting
from keras_bert.training.parts import Part

_CALLBACK = re.compile(r"[\w.]+:\w+")


def _name_of(callback):
    """MODULE:CLASS of a callback, as run.json has it."""
    if isinstance(callback, str):
        return callback
    return f"{type(callback).__module__}:{type(callback).__qualname__}"


class CallbackSettings(Settings):
    """The setting `callbacks`."""

    callbacks: Sequence[object] | None = advanced_setting(
        None,
        help="a Keras callback of your own, such as one for MLflow or Weights & Biases: its class, "
        "in a module of the working directory or of an installed package (can be repeated)",
        unit="MODULE:CLASS",
        flag="callback",
        default_help="none",
        recorded_as=lambda callbacks: callbacks and [*map(_name_of, callbacks)],
        common=True,
    )

    def check(self):
        super().check()
        for callback in self.callbacks or ():
            if isinstance(callback, str) and not _CALLBACK.fullmatch(callback):
                raise InputError.naming(
                    "{callbacks} is {!r}. Expected MODULE:CLASS, such as tracking:MetricsLogger.",
                    callback,
                )


class UserCallbacks(Part):
    """Calls the callbacks of the setting, on the chief alone; all workers end where they end."""

    chief_only = False

    @classmethod
    def of(cls, run):
        return cls() if run.settings.callbacks else None

    def callbacks(self, run):
        from keras_bert.training.callbacks import AgreeOnStop, make_user_callbacks

        made = []
        if run.devices.is_chief:
            made = make_user_callbacks(run.settings.callbacks, run.history)
        return [*made, AgreeOnStop(run)]

    def select(self, run, records):
        last_step = records[-1]["step"]
        if run.was_stopped and last_step < run.plan.steps:
            run.report(f"Stopped early by a callback, after step {last_step}.")
