"""BERT's optimizers: warm-up and decay, global clipping, no weight decay on biases and norms."""

from keras_bert.base.errors import InputError
from keras_bert.base.replicas import replica_count
from keras_bert.training.optimizers.adamw import AdamW
from keras_bert.training.optimizers.gradient_norm import with_gradient_norm
from keras_bert.training.optimizers.lamb import LAMB
from keras_bert.training.optimizers.layerwise_adamw import LayerwiseAdamW
from keras_bert.training.optimizers.per_update import PerUpdate
from keras_bert.training.optimizers.schedules.one_cycle import OneCycle
from keras_bert.training.optimizers.schedules.slanted_triangular import SlantedTriangular
from keras_bert.training.optimizers.schedules.warmup_constant import WarmupConstant
from keras_bert.training.optimizers.schedules.warmup_cosine_decay import WarmupCosineDecay
from keras_bert.training.optimizers.schedules.warmup_linear_decay import WarmupLinearDecay

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
    shares=None,
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

    `shares` (what each trainable variable's rate is of that, None: all of it) and `first_steps`
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
    if any(share != 1 for share in shares or ()) or any(first_steps or ()):
        kind, layerwise = LayerwiseAdamW, _layerwise(optimizer, model, shares, first_steps)
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


def _layerwise(optimizer, model, shares, first_steps):
    """What a `LayerwiseAdamW` is made with beside what every AdamW is."""
    if optimizer != "adamw":
        raise InputError(f"The layers have rates of their own under adamw, not under {optimizer}.")
    count = len(model.trainable_variables)
    return {"shares": shares or [1.0] * count, "first_steps": first_steps or [0] * count}


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
