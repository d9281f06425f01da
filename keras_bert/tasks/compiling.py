"""How a task is compiled: by its defaults, whose schedule each `fit` plans, or by the user."""

import contextlib
import dataclasses
import operator
from typing import Any

import keras
import numpy as np

from keras_bert.base.errors import InputError, warn_user
from keras_bert.base.formatting import counted
from keras_bert.optimizers.optimizer import default_optimizer, schedule_is_over, steps_done
from keras_bert.optimizers.schedules import PerUpdate
from keras_bert.programs import COMPILES_EACH_SHAPE
from keras_bert.tasks.losses import global_means
from keras_bert.tasks.raw_data import LabelledModel
from keras_bert.tasks.training_defaults import TrainingDefaults, training_defaults

BATCH_SIZE = 32  # Keras's own default


@dataclasses.dataclass(frozen=True)
class _Defaults:
    """The arguments by which `fit` compiles a task again; an object that Keras does not track.

    Attributes:
        options: the arguments.
        can_train: False: compiled for an evaluation.
        step: what else is in the program of a step (see `_step_depends_on`).
    """

    options: dict
    can_train: bool = True
    step: tuple = ()


class CompiledModel(LabelledModel):
    """The methods of Keras that compile a `Task`.

    A task that the user has not compiled is compiled by `compile_defaults` when it is first needed,
    and again by each `fit`, which knows its number of steps.
    """

    _defaults: _Defaults | None = None

    def default_losses(self) -> dict[str, Any]:
        """Returns the loss of each output, by the output's name."""
        return {}

    def default_loss_weights(self) -> dict[str, float] | None:
        """Returns the weight of each output's loss, by the output's name; None is 1 each."""
        return None

    def default_metrics(self) -> dict[str, Any]:
        """Returns each output's metrics by the output's name; sample weights apply to them."""
        return {}

    @property
    def training_defaults(self) -> TrainingDefaults:
        """The `TrainingDefaults` of the encoder, or of the head if the encoder is frozen."""
        layers = (layer for group in self.encoder.layer_groups for layer in group)
        return training_defaults(
            hidden_size=self.config.hidden_size,
            is_pretrained=self.encoder.is_pretrained,
            is_frozen=not any(layer.trainable_variables for layer in layers),
            has_lora=self.encoder.lora is not None,
            rate_factor=self.RATE_FACTOR,
        )

    def compiled_losses(self) -> dict[str, Any]:
        """`default_losses` for `compile`; see `means_over` for tasks that read files."""
        return global_means(self.default_losses(), over_epochs=self.reads_files())

    def compile(
        self,
        optimizer: Any = "rmsprop",
        *arguments: Any,
        auto_scale_loss: bool = True,
        **options: Any,
    ) -> None:
        """Keras's `compile`, with `auto_scale_loss` for an encoder that computes in float16.

        See `with_scaled_loss`. A task that is compiled so keeps its optimizer in every `fit`.

        Raises InputError: `jit_compile` is False on JAX.
        """
        if COMPILES_EACH_SHAPE and options.get("jit_compile") is False:
            raise InputError.naming(
                "{jit_compile} is False. JAX would then compile each operation of a step alone, "
                "which is many times slower. Leave it out."
            )
        optimizer = self.with_scaled_loss(optimizer) if auto_scale_loss else optimizer
        super().compile(optimizer, *arguments, auto_scale_loss=auto_scale_loss, **options)
        self._defaults = None

    def with_scaled_loss(self, optimizer: Any) -> Any:
        """The optimizer, as a `LossScaleOptimizer` if the encoder computes in float16.

        The gradients would vanish there.
        """
        if keras.dtype_policies.get(self.encoder.layer_policy).compute_dtype != "float16":
            return optimizer
        optimizer = keras.optimizers.get(optimizer)
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            return optimizer
        return keras.optimizers.LossScaleOptimizer(optimizer, name="loss_scale")

    def compile_defaults(
        self,
        optimizer: Any = None,
        *,
        steps: int | None = None,
        learning_rate: float | None = None,
        **options: Any,
    ) -> None:
        """`compile` with the task's own losses and metrics; `options` are passed to `compile`.

        It needs no call: `fit`, `evaluate` and the methods for a batch compile a task so that is
        not compiled. Without an `optimizer` and `steps`, each `fit` plans the schedule by its own
        batches and epochs and begins with a new optimizer, for the weights that are trainable then.
        A `fit` that is planned as the one before keeps its optimizer, with new moments, and the
        program of its step, so that running it again compiles nothing.

        Args:
            optimizer: None is the optimizer of `keras_bert.finetune`: AdamW without decay on biases
                and norms, global clipping, warm-up and linear decay. Of static vectors it is that
                of `keras_bert.pretrain`: `Adagrad` with linear decay.
            steps: total optimizer steps, for one schedule over several calls of `fit`. None leaves
                it to each `fit`; for batches of which nobody knows the number, and for
                `train_on_batch`, the learning rate is constant.
            learning_rate: its peak; None is that of `keras_bert.finetune` (see
                `keras_bert.tasks.training_defaults`), by the encoder's size and whether its weights
                are trained (`encoder.is_pretrained`), or 1e-3 if the encoder is frozen. Of static
                vectors it is 0.1.
        """
        defaults = None
        if optimizer is None:
            if steps is None:
                defaults = _Defaults({"learning_rate": learning_rate, **options})
            optimizer = default_optimizer(self, steps=steps, learning_rate=learning_rate)
        elif steps is not None or learning_rate is not None:
            raise ValueError(
                "`steps` and `learning_rate` are for the default optimizer only. "
                f"Received: optimizer={optimizer!r}."
            )
        self.compile(
            optimizer=optimizer,
            loss=self.compiled_losses(),
            weighted_metrics=self.default_metrics(),
            **{"loss_weights": self.default_loss_weights(), **options},
        )
        self._defaults = defaults
        if not self.optimizer.built:
            # Building it in the first step would trace that step a second time.
            self.optimizer.build(self.trainable_variables)
        if len(self.output) > 1:
            # The same holds for Keras's metric of each output's loss.
            self._compile_loss.build(self.output, self.output)

    def compile_to_fit(self, *, batches: int | None, epochs: int, initial_epoch: int) -> None:
        """Compiles the task by its defaults for a `fit`, unless the user has compiled it.

        With an `initial_epoch` the schedule is that of all epochs, and the optimizer keeps the
        moments of the `fit` before.

        Args:
            batches: of an epoch, or None: not known.
            epochs, initial_epoch: those of `fit`.

        Raises InputError: the user's own schedule is over.
        """
        if self.compiled and self._defaults is None:
            if schedule_is_over(self.optimizer):
                steps = counted(steps_done(self.optimizer), "step")
                raise InputError(
                    f"The learning rate's schedule of {steps} is over, and the rate is 0: nothing "
                    "would be learned. Leave `steps` out of `compile_defaults`, and each `fit` "
                    "plans its own, or compile the task again."
                )
            return
        defaults: Any = self._defaults if self.compiled else _Defaults({})
        before = self.optimizer if self.compiled and defaults.can_train else None
        with self._strategy_scope():
            self._compile_or_restart(
                defaults, steps=batches and batches * epochs, keeps=initial_epoch == 0
            )
        if batches is None:
            rate = float(np.asarray(self.optimizer.learning_rate))
            warn_user(
                "The number of batches is not known, so that the learning rate stays at "
                f"{rate:g}. Pass `steps_per_epoch`, and it decays "
                "to 0."
            )
        if initial_epoch:
            self._continue(before, first_step=initial_epoch * (batches or 0))

    def _compile_or_restart(self, defaults, *, steps, keeps):
        """Compiles with a new optimizer; if it `keeps` one that is alike, that starts again."""
        options, step = dict(defaults.options), self._step_depends_on()
        learning_rate = options.pop("learning_rate", None)
        new = default_optimizer(self, steps=steps, learning_rate=learning_rate)
        new = self.with_scaled_loss(new)
        is_same_step = len(step) == len(defaults.step) and all(
            map(operator.is_, step, defaults.step)
        )
        if keeps and is_same_step and new.get_config() == self.optimizer.get_config():
            for variable, value in zip(self.optimizer.variables, new.variables, strict=True):
                variable.assign(value)
            return
        self.compile_defaults(new, **options)
        self._defaults = _Defaults(defaults.options, step=step)

    def _step_depends_on(self):
        """The objects that the program of a step depends on, beside optimizer and arguments."""
        return (self.encoder.recomputes, *self.trainable_variables)

    def _continue(self, before, *, first_step):
        """Gives the new optimizer the state of the one `before`, and its schedule's `first_step`.

        The one before may be None, or of other variables: then the moments are new.
        """
        optimizer = self.optimizer
        paths = [[v.path for v in one.variables] for one in (optimizer, before) if one is not None]
        if len(paths) == 2 and paths[0] == paths[1]:
            for variable, value in zip(optimizer.variables, before.variables, strict=True):
                variable.assign(value)
        if first_step:
            inner = getattr(optimizer, "inner_optimizer", optimizer)  # of one that scales the loss
            first_step -= steps_done(optimizer)
            inner.learning_rate = PerUpdate(
                schedule=inner._learning_rate, batches=1, first_step=first_step
            )

    def compile_to_evaluate(self, *, again: bool = False) -> None:
        """Compiles the task by its defaults for an evaluation, unless it is compiled.

        The optimizer has no moments, which take twice the memory of the weights.

        Args:
            again: also if it is compiled: other losses and metrics than the defaults do not do.
        """
        if again or not self.compiled:
            with self._strategy_scope():
                self.compile_defaults("sgd")
            self._defaults = _Defaults({}, can_train=False)

    def _strategy_scope(self):
        """The scope of the strategy that the task was made in, on TensorFlow."""
        strategy = getattr(self, "distribute_strategy", None)
        return contextlib.nullcontext() if strategy is None else strategy.scope()

    def train_on_batch(self, *arguments: Any, **options: Any) -> Any:
        """Keras's method, for which a task that is not compiled is compiled by its defaults."""
        if not self.compiled or (self._defaults is not None and not self._defaults.can_train):
            with self._strategy_scope():
                self.compile_defaults()
        return super().train_on_batch(*arguments, **options)

    def test_on_batch(self, *arguments: Any, **options: Any) -> Any:
        """Keras's method, for which a task that is not compiled is compiled by its defaults."""
        self.compile_to_evaluate()
        return super().test_on_batch(*arguments, **options)

    def get_compile_config(self) -> dict[str, Any]:
        """Keras's hook: how the user has compiled the task; nothing if it is by its defaults."""
        return {} if self._defaults is not None else super().get_compile_config()

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Keras's hook: compiles a task of a .keras file as the user had compiled it."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    @property
    def metrics(self) -> list:
        """Keras's metrics, and the gradient norm if the optimizer measures it."""
        optimizer = getattr(self, "optimizer", None)
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # of one that scales the loss
        norm = getattr(optimizer, "gradient_norm", None)
        return [*super().metrics, *([] if norm is None else [norm])]


def batches_per_epoch(x: Any, options: dict[str, Any]) -> int | None:
    """The batches of an epoch of Keras's `fit`, or None if that is not known.

    Args:
        x: arrays, a dataset, a `PyDataset`, or anything else that gives batches.
        options: the other arguments of `fit` by name.
    """
    if options.get("steps_per_epoch") is not None:
        return options["steps_per_epoch"]
    arrays = keras.tree.flatten(x)
    if arrays and all(hasattr(array, "shape") for array in arrays):
        count, split = arrays[0].shape[0], options.get("validation_split")
        if split and options.get("validation_data") is None:
            count = int(count * (1 - split))  # as Keras splits them
        return -(-count // (options.get("batch_size") or BATCH_SIZE))
    if hasattr(x, "cardinality"):
        count = int(x.cardinality())
        return count if count >= 0 else None  # infinite, or unknown
    if isinstance(x, keras.utils.PyDataset):
        return x.num_batches
    try:
        return len(x)
    except TypeError:  # a generator
        return None
