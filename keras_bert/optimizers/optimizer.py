"""The optimizer of a run: its update rule, its gradients, and which layers it trains."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import counted
from keras_bert.layers.kernels.optimizers import global_norm, with_unique_rows
from keras_bert.layers.kernels.private import without_sum_over_replicas
from keras_bert.optimizers.muon import Muon
from keras_bert.optimizers.schedules import (
    SCHEDULES,
    PerUpdate,
    WarmupCosineDecay,
    WarmupLinearDecay,
    WarmupStableDecay,
)
from keras_bert.optimizers.update_rules import LAMB, Adagrad, AdamW, LayerwiseAdamW
from keras_bert.programs import UPDATES_EACH_BATCH, replica_count
from keras_bert.tasks import WARMUP, WEIGHT_DECAY

GRADIENT_NORM = "gradient_norm"


@keras.saving.register_keras_serializable(package="keras_bert")
class GradientNorm(keras.metrics.Metric):
    """The mean norm of the gradients over updates; NaN while there were none.

    It is summed on the device, and read with a run's other metrics.
    """

    def __init__(self, name=GRADIENT_NORM):
        super().__init__(name=name, dtype="float32")
        self.sums = self.add_variable((2,), initializer="zeros", name="sums")  # norms, updates

    def update_state(self, norm, is_update=None):
        """Adds the norm of an update, (); with `is_update`, bool (), nothing if it is false."""
        norm = ops.cast(norm, self.dtype)
        added = ops.stack([norm, ops.ones_like(norm)])
        self.sums.assign_add(added if is_update is None else ops.where(is_update, added, 0.0))

    def result(self):
        norms, updates = ops.unstack(self.sums.value)
        return norms / updates

    def get_config(self):
        return {"name": self.name}


def with_gradient_norm(optimizer_class):
    """The class of optimizers with a `gradient_norm`, a `GradientNorm`, updated when they clip."""

    class Measuring:
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.gradient_norm = GradientNorm()

        def _clip_gradients(self, grads):
            # The formula that clips them: TensorFlow computes the two as one.
            self.gradient_norm.update_state(global_norm(grads), self._is_update())
            return super()._clip_gradients(grads)

        def _is_update(self):
            """Whether these gradients change the weights; None if others do not come here."""
            batches = self.gradient_accumulation_steps
            if batches is None or not UPDATES_EACH_BATCH:
                return None
            return (self._iterations + 1) % batches == 0

    return type(optimizer_class.__name__, (Measuring, optimizer_class), {})


def with_global_gradients(optimizer_class):
    """The class of optimizers that first sum the gradients over the replicas.

    Keras sums them last: each replica clips, or accumulates, the gradients of its own part of the
    batch, which makes other updates than the whole batch on one device. Here all replicas have the
    same gradients, and each updates its own copies of the variables as one device would.
    """
    import tensorflow as tf
    from keras.src.backend.tensorflow.optimizer import TFOptimizer
    from keras.src.optimizers.base_optimizer import BaseOptimizer

    class PerReplica(TFOptimizer):
        """The sum, and then what one device does, in place of Keras's for `tf.distribute`."""

        def _backend_apply_gradients(self, grads, trainable_variables):
            context = tf.distribute.get_replica_context()
            grads = context.all_reduce(tf.distribute.ReduceOp.SUM, list(grads))
            # The sum of `tf.IndexedSlices` names a row once for each replica that has it.
            grads = [with_unique_rows(gradient) for gradient in grads]
            super()._backend_apply_gradients(grads, trainable_variables)

        _backend_update_step = BaseOptimizer._backend_update_step
        _apply_weight_decay = BaseOptimizer._apply_weight_decay
        _backend_increment_gradient_accumulators = (
            BaseOptimizer._backend_increment_gradient_accumulators
        )

    # Python puts `PerReplica` between the optimizer's own methods and Keras's for TensorFlow.
    return type(optimizer_class.__name__, (optimizer_class, PerReplica), {})


def depths(task, variables):
    """The depth of each variable of a task, a list of ints.

    The head is at 0, with all that belongs to it, such as the pooler or a layer mix. The groups of
    the encoder's layers count from the highest that the head reads: 1, 2, … down to the embeddings.
    """
    groups = enumerate(reversed(task.read_groups), 1)
    depth_of = {id(v): depth for depth, group in groups for layer in group for v in layer.variables}
    return [depth_of.get(id(variable), 0) for variable in variables]


def layers_to_train(groups, *, last=None, epochs=None):
    """The number of groups of an encoder's layers that are trained, from the highest down.

    Args:
        groups: those that the head reads.
        last: train only so many layers; None is all of the encoder.
        epochs: unfreeze one more layer after each of so many epochs; None is all at once.

    Raises:
        InputError: there are fewer layers above the embeddings.
    """
    groups = len(groups)
    if last is not None and last > groups - 1:
        raise InputError.naming(
            "{train_layers} is {}, but the head reads {}. Leave it out to train all of them.",
            last,
            counted(groups - 1, "layer"),
        )
    layers = groups if last is None else last
    return layers if epochs is None else min(layers, epochs - 1)


def train_last_layers(task, layers):
    """Freezes everything below the last `layers` groups of a task's encoder."""
    for group in task.read_groups[::-1][layers:]:
        for layer in group:
            layer.trainable = False


OPTIMIZERS = {"adamw": AdamW, "lamb": LAMB, "muon": Muon, "adagrad": Adagrad}
# google-research/bert, optimization.py.
_ADAM = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6}
CLIP_NORM = 1.0
DECAY = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerOptions:
    """The options of an optimizer, which the settings of a run have by the same names.

    Attributes:
        learning_rate: the highest learning rate.
        warmup: the fraction of the steps (0 to below 1) after which it is reached.
        weight_decay: of matrices; biases and the parameters of LayerNorm do not decay.
        optimizer: "adamw" (Loshchilov and Hutter 2019), "lamb" (You et al. 2019, for batches of
            thousands; see `LAMB`), "muon" (Jordan et al. 2024; see `Muon`) or "adagrad" (Duchi et
            al. 2011; see `Adagrad`).
        clip_norm: the global norm that gradients are clipped to; 0 does not clip them.
        gradient_accumulation: batches of an update; their mean gradient is clipped.
        schedule: the learning rate after the warm-up.
        decay: of the schedule "wsd", the fraction of the steps at the end in which the rate falls.

    Raises `InputError` if a number is out of its range or a name is unknown.
    """

    learning_rate: float
    warmup: float
    weight_decay: float
    optimizer: str = "adamw"
    clip_norm: float = CLIP_NORM
    gradient_accumulation: int = 1
    schedule: str = "linear"
    decay: float = DECAY

    def __post_init__(self):
        for name, names in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES)):
            if getattr(self, name) not in names:
                raise InputError.naming(
                    "Invalid {}. Choose from: {}. Received: {!r}.",
                    argument(name),
                    ", ".join(names),
                    getattr(self, name),
                )
        for name, is_valid, expected in (
            ("learning_rate", self.learning_rate > 0, "a number above 0"),
            ("warmup", 0 <= self.warmup < 1, "a fraction of the steps, from 0 to below 1"),
            ("weight_decay", self.weight_decay >= 0, "at least 0"),
            ("gradient_accumulation", self.gradient_accumulation >= 1, "at least 1"),
            ("decay", 0 < self.decay <= 1, "a fraction of the steps, above 0 and up to 1"),
        ):
            if not is_valid:
                raise _invalid(name, expected, getattr(self, name))


def _invalid(name, expected, value):
    return InputError.naming(
        "Invalid {}. Expected {}. Received: {}.", argument(name), expected, value
    )


def options_of(settings, **defaults):
    """The `OptimizerOptions` in the settings of a run, by name; `defaults` replace None."""
    names = [f.name for f in dataclasses.fields(OptimizerOptions) if hasattr(settings, f.name)]
    given = {name: getattr(settings, name) for name in names}
    return defaults | {name: value for name, value in given.items() if value is not None}


def make_optimizer(
    model, *, steps, fractions=None, first_steps=None, measures_gradients=False, **options
):
    """Returns the optimizer that trains `model` for `steps` steps, built.

    Unlike google-research/bert, the moments are bias-corrected, as in Hugging Face's and Keras's
    AdamW.

    Args:
        model: the model whose trainable variables are updated.
        steps: updates of the weights; None keeps the learning rate constant from the first step.
        fractions, first_steps: as of `LayerwiseAdamW`, per trainable variable; None is 1 and 0.
        measures_gradients: whether it has a `gradient_norm`, which is among the task's metrics.
        **options: those of `OptimizerOptions`.

    Raises `InputError` if a number is out of its range or a name is unknown.
    """
    options = OptimizerOptions(**options)
    if steps is not None and steps < 1:
        raise _invalid("steps", "at least 1", steps)
    rate, accumulated = options.learning_rate, None
    if steps is not None:
        rate = _schedule(options, steps)
    if options.gradient_accumulation > 1:
        accumulated = options.gradient_accumulation
        rate = rate if steps is None else PerUpdate(schedule=rate, batches=accumulated)
    kind, layerwise = OPTIMIZERS[options.optimizer], {}
    if any(fraction != 1 for fraction in fractions or ()) or any(first_steps or ()):
        count = len(model.trainable_variables)
        layerwise = {"fractions": fractions or [1.0] * count}
        if options.optimizer == "adamw":
            kind, layerwise["first_steps"] = LayerwiseAdamW, first_steps or [0] * count
        elif options.optimizer != "muon" or any(first_steps or ()):
            raise InputError(
                f"Layer-wise rates need the optimizer adamw. Received: {options.optimizer}."
            )
    if options.optimizer == "muon":
        layerwise["is_hidden"] = hidden_matrices(model)
    if replica_count() > 1:
        kind = with_global_gradients(kind)
    if measures_gradients:
        kind = with_gradient_norm(kind)
    built = kind(
        rate,
        weight_decay=options.weight_decay,
        **({} if options.optimizer == "adagrad" else _ADAM),
        global_clipnorm=options.clip_norm or None,
        gradient_accumulation_steps=accumulated,
        # Fixed: checkpoints store variables by path, and Keras numbers automatic names.
        name=options.optimizer,
        **layerwise,
    )
    built.exclude_from_weight_decay(
        var_list=[variable for variable in model.trainable_variables if not decays(variable)]
    )
    # If it were built in the first step, TensorFlow would trace that step twice.
    built.build(model.trainable_variables)
    return built if replica_count() > 1 else without_sum_over_replicas(built)


def _schedule(options, steps):
    """The learning rate of `OptimizerOptions` by the updates done, of `steps`."""
    given = {"peak": options.learning_rate, "warmup_steps": int(options.warmup * steps)}
    if options.schedule == "wsd":
        given["decay_steps"] = max(1, round(options.decay * steps))
        if given["decay_steps"] > steps - given["warmup_steps"]:
            raise InputError.naming(
                "{warmup} and {decay} are {:g} and {:g} of the steps, more than there are.",
                options.warmup,
                options.decay,
            )
    return SCHEDULES[options.schedule](**given, steps=steps)


def hidden_matrices(model):
    """Whether each trainable variable of a task is a matrix of a layer above its embeddings.

    Raises `InputError` if none is.
    """
    groups = model.encoder.layer_groups[1:]
    hidden = {id(v) for group in groups for layer in group for v in layer.trainable_variables}
    are_hidden = [
        id(variable) in hidden and len(variable.shape) == 2 and decays(variable)
        for variable in model.trainable_variables
    ]
    if not any(are_hidden):
        raise InputError.naming(
            "{optimizer} muon is for the matrices of layers, and this model has none. Use adamw or "
            "adagrad."
        )
    return are_hidden


def decays(variable):
    """Whether weight decay applies to a variable: to matrices, not to biases and norms."""
    return len(variable.shape) > 1 and "bias" not in variable.name


def default_optimizer(task, *, steps, learning_rate=None):
    """`make_optimizer` with the defaults of `keras_bert.finetune`, and the task's own.

    Args:
        task: a `Task`.
        steps: as of `make_optimizer`.
        learning_rate: the highest; None is the task's own, or that of its `training_defaults`.
    """
    given = {} if learning_rate is None else {"learning_rate": learning_rate}
    options = {
        "learning_rate": task.training_defaults.learning_rate,
        "warmup": WARMUP,
        "weight_decay": WEIGHT_DECAY,
    }
    return make_optimizer(task, **options | task.DEFAULT_OPTIMIZER | given, steps=steps)


def steps_done(optimizer):
    """The steps that an optimizer has done; its variable may be one of several devices."""
    return int(np.asarray(optimizer.iterations))


def schedule_is_over(optimizer):
    """Whether an optimizer has done all steps of a schedule of ours that falls to 0."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # of one that scales the loss
    schedule, done = optimizer._learning_rate, steps_done(optimizer)
    while isinstance(schedule, PerUpdate):
        schedule, done = schedule.schedule, done + schedule.first_step
    falls = isinstance(schedule, WarmupLinearDecay | WarmupCosineDecay | WarmupStableDecay)
    return falls and done >= schedule.steps
