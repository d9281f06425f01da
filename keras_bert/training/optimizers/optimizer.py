"""BERT's optimizers: warm-up and decay, global clipping, no weight decay on biases and norms."""

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.layers.kernels.adam import global_norm
from keras_bert.tasks.global_mean import replica_count
from keras_bert.training.optimizers.adamw import AdamW, LayerwiseAdamW
from keras_bert.training.optimizers.lamb import LAMB
from keras_bert.training.optimizers.schedules import (
    OneCycle,
    SlantedTriangular,
    WarmupConstant,
    WarmupCosineDecay,
    WarmupLinearDecay,
)
from keras_bert.training.settings import FinetuneSettings


def depths(task, variables):
    """The depth of each variable of a task: a list of ints.

    The head is at 0, with all that belongs to it, such as the pooler or a mix of layers. The groups
    of the encoder's layers count from its output: 1, 2, … down to the embeddings.
    """
    groups = enumerate(reversed(task.encoder.layer_groups), 1)
    found = {id(v): depth for depth, group in groups for layer in group for v in layer.variables}
    return [found.get(id(variable), 0) for variable in variables]


def layers_to_train(encoder, *, last=None, epochs=None):
    """How many groups of the encoder's layers are trained, from its output down.

    Args:
        last: train the last so many layers; None is all of the encoder.
        epochs: unfreeze one layer more at the end of each of so many epochs; None is all at once.

    Raises:
        InputError: there are fewer layers above the embeddings.
    """
    groups = len(encoder.layer_groups)
    if last is not None and last > groups - 1:
        raise InputError(
            f"`train_layers` is {last}, but the model has {counted(groups - 1, 'layer')}. Leave it "
            "out to train all of the model."
        )
    layers = groups if last is None else last
    return layers if epochs is None else min(layers, epochs - 1)


def train_from_the_top(task, layers):
    """Takes what is below the last `layers` groups of a task's encoder out of training."""
    for group in task.encoder.layer_groups[::-1][layers:]:
        for layer in group:
            layer.trainable = False


@keras.saving.register_keras_serializable(package="keras_bert")
class PerUpdate(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule that is asked by batches and answers by updates.

    Under gradient accumulation `optimizer.iterations` counts updates, but Keras asks the schedule
    by the number of batches, so that it would be through with its rates too early.

    Args:
        schedule: the rate by the number of updates done.
        batches: how many make an update.
    """

    def __init__(self, *, schedule, batches):
        self.schedule = schedule
        self.batches = batches

    def __call__(self, step):
        return self.schedule(ops.floor_divide(step, self.batches))

    def get_config(self):
        return {
            "schedule": keras.saving.serialize_keras_object(self.schedule),
            "batches": self.batches,
        }

    @classmethod
    def from_config(cls, config):
        schedule = keras.saving.deserialize_keras_object(config["schedule"])
        return cls(**{**config, "schedule": schedule})


GRADIENT_NORM = "gradient_norm"


@keras.saving.register_keras_serializable(package="keras_bert")
class GradientNorm(keras.metrics.Metric):
    """The mean over updates of the norm of their gradients; NaN while there were none.

    It is added up on the device, and read when a run's other figures are.
    """

    def __init__(self, name=GRADIENT_NORM):
        super().__init__(name=name, dtype="float32")
        self.sums = self.add_variable((2,), initializer="zeros", name="sums")  # norms, updates

    def update_state(self, norm):
        """Adds an update by its norm, ()."""
        norm = ops.cast(norm, self.dtype)
        self.sums.assign_add(ops.stack([norm, ops.ones_like(norm)]))

    def result(self):
        norms, updates = ops.unstack(self.sums.value)
        return norms / updates

    def get_config(self):
        return {"name": self.name}


def with_gradient_norm(optimizer_class):
    """The class of optimizers that measure their gradients where they clip them.

    Such an optimizer has the attribute `gradient_norm`, a `GradientNorm`. It computes what it would
    otherwise: the sum of squares that clips a gradient is the one that is measured.
    """
    return type(optimizer_class.__name__, (_Measuring, optimizer_class), {})


class _Measuring:
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.gradient_norm = GradientNorm()

    def _clip_gradients(self, grads):
        # The formula that clips them: TensorFlow computes the two as one.
        self.gradient_norm.update_state(global_norm(grads))
        return super()._clip_gradients(grads)


OPTIMIZERS = {"adamw": AdamW, "lamb": LAMB}
SCHEDULES = {
    "linear": WarmupLinearDecay,
    "slanted-triangular": SlantedTriangular,
    "cosine": WarmupCosineDecay,
    "one-cycle": OneCycle,
    "constant": WarmupConstant,
}

# google-research/bert, optimization.py.
_BETA_1 = 0.9
_BETA_2 = 0.999
_EPSILON = 1e-6
CLIP_NORM = 1.0


def make_optimizer(
    model,
    *,
    learning_rate,
    warmup,
    weight_decay,
    steps,
    optimizer="adamw",
    clip_norm=CLIP_NORM,
    gradient_accumulation_steps=1,
    schedule="linear",
    fractions=None,
    first_steps=None,
    measures_gradients=False,
):
    """Returns the optimizer that trains `model` for `steps` steps.

    `steps` None keeps the rate as it is, from the first step on.

    `learning_rate` is the highest rate, reached after the share `warmup` (0 to below 1) of the
    steps; what comes after is the `schedule`'s, by itself a line to 0 at the end. Weights decay by
    `weight_decay` where they are matrices; biases and the scales and offsets of LayerNorm do not.
    Gradients are clipped to a global norm of `clip_norm`; 0 leaves them as they are.

    `optimizer` is "adamw" (decay by `weight_decay` times the rate, Loshchilov and Hutter 2019) or
    "lamb" (You et al. 2019, for batches of thousands; see `LAMB`). Unlike google-research/bert, the
    moments are corrected for their start at zero, as in Hugging Face's and Keras's AdamW.

    A step is an update of the weights. It takes `gradient_accumulation_steps` batches, whose
    gradients are averaged, and clipped as that average.

    `fractions` (what each trainable variable's rate is of that, None: all of it) and `first_steps`
    (the steps that are done before each one's first, None: none) are those of `LayerwiseAdamW`.

    With `measures_gradients` it has a `gradient_norm`, a metric, which is among its task's.

    Raises `InputError` where a number is out of its range or the optimizer is none of these.
    """
    _check(optimizer, learning_rate, warmup, weight_decay, steps, gradient_accumulation_steps)
    if schedule not in SCHEDULES:
        raise InputError(f"The schedule is {schedule!r}; it must be one of {', '.join(SCHEDULES)}.")
    rate, accumulated = learning_rate, None
    if steps is not None:
        rate = SCHEDULES[schedule](peak=rate, warmup_steps=int(warmup * steps), steps=steps)
    if gradient_accumulation_steps > 1:
        accumulated = gradient_accumulation_steps
        rate = rate if steps is None else PerUpdate(schedule=rate, batches=accumulated)
    kind, layerwise = OPTIMIZERS[optimizer], {}
    if any(fraction != 1 for fraction in fractions or ()) or any(first_steps or ()):
        kind, layerwise = LayerwiseAdamW, _layerwise(optimizer, model, fractions, first_steps)
    if replica_count() > 1:
        from keras_bert.training.optimizers.global_gradients import (
            with_global_gradients,  # loads TensorFlow
        )

        kind = with_global_gradients(kind)
    if measures_gradients:
        kind = with_gradient_norm(kind)
    made = kind(
        rate,
        weight_decay=weight_decay,
        beta_1=_BETA_1,
        beta_2=_BETA_2,
        epsilon=_EPSILON,
        global_clipnorm=clip_norm or None,
        gradient_accumulation_steps=accumulated,
        # A fixed name: checkpoints store variables by path, and Keras numbers automatic names.
        name=optimizer,
        **layerwise,
    )
    made.exclude_from_weight_decay(
        var_list=[variable for variable in model.trainable_variables if not decays(variable)]
    )
    # Built in the first step, it would have TensorFlow trace that step a second time.
    made.build(model.trainable_variables)
    return made


def _layerwise(optimizer, model, fractions, first_steps):
    """What a `LayerwiseAdamW` is made with beside what every AdamW is."""
    if optimizer != "adamw":
        raise InputError(f"The layers have rates of their own under adamw, not under {optimizer}.")
    count = len(model.trainable_variables)
    return {"fractions": fractions or [1.0] * count, "first_steps": first_steps or [0] * count}


def _check(optimizer, learning_rate, warmup, weight_decay, steps, gradient_accumulation_steps):
    if optimizer not in OPTIMIZERS:
        raise InputError(
            f"The optimizer is {optimizer!r}; it must be one of {', '.join(OPTIMIZERS)}."
        )
    if steps is not None and steps < 1:
        raise InputError(f"The number of steps is {steps}; at least 1 is needed.")
    if not learning_rate > 0:
        raise InputError(f"The learning rate is {learning_rate}; it must be above 0.")
    if not 0 <= warmup < 1:
        raise InputError(f"The warm-up is {warmup}; give a share of the steps, from 0 to below 1.")
    if not weight_decay >= 0:
        raise InputError(f"The weight decay is {weight_decay}; it must not be negative.")
    if gradient_accumulation_steps < 1:
        raise InputError(
            f"The number of batches a step is {gradient_accumulation_steps}; at least 1 is needed."
        )


def decays(variable):
    """Whether weight decay applies to a variable: to matrices, not to biases and norms."""
    return len(variable.shape) > 1 and "bias" not in variable.name


# The highest learning rate where none is given: of all weights, and of a head alone.
RATE, RATE_OF_A_HEAD = 5e-5, 1e-3


def finetuning_optimizer(task, *, steps, learning_rate=None):
    """`make_optimizer` with the settings that `keras_bert.finetune` has by itself.

    Args:
        task: a `Task`.
        steps: how many there will be. None keeps the rate at its highest.
        learning_rate: the highest; None is 5e-5, or 1e-3 where the encoder is not trainable.
    """
    if learning_rate is None:
        layers = (layer for group in task.encoder.layer_groups for layer in group)
        is_trained = any(layer.trainable_variables for layer in layers)
        learning_rate = RATE if is_trained else RATE_OF_A_HEAD
    defaults = FinetuneSettings.defaults()
    return make_optimizer(
        task,
        learning_rate=learning_rate,
        warmup=defaults["warmup"],
        weight_decay=defaults["weight_decay"],
        steps=steps,
    )
