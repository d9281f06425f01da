"""The optimizer of a run, built for its model."""

from keras_bert.base.errors import InputError, argument
from keras_bert.tasks.global_mean import replica_count
from keras_bert.training.optimizers.gradients import with_global_gradients, with_gradient_norm
from keras_bert.training.optimizers.schedules import SCHEDULES, PerUpdate
from keras_bert.training.optimizers.update_rules import LAMB, Adagrad, AdamW, LayerwiseAdamW
from keras_bert.training.settings import HEAD_LEARNING_RATE, LEARNING_RATE, FinetuneSettings

OPTIMIZERS = {"adamw": AdamW, "lamb": LAMB, "adagrad": Adagrad}
# google-research/bert, optimization.py.
_ADAM = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6}
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
    """Returns the optimizer that trains `model` for `steps` steps, built.

    Unlike google-research/bert, the moments are bias-corrected, as in Hugging Face's and Keras's
    AdamW.

    Args:
        model: the model whose trainable variables are updated.
        learning_rate: the highest learning rate.
        warmup: the fraction of the steps (0 to below 1) after which it is reached.
        weight_decay: of matrices; biases and the parameters of LayerNorm do not decay.
        steps: updates of the weights; None keeps the learning rate constant from the first step.
        optimizer: "adamw" (Loshchilov and Hutter 2019), "lamb" (You et al. 2019, for batches of
            thousands; see `LAMB`) or "adagrad" (Duchi et al. 2011; see `Adagrad`).
        clip_norm: the global norm that gradients are clipped to; 0 does not clip them.
        gradient_accumulation_steps: batches of an update; their mean gradient is clipped.
        schedule: the learning rate after the warm-up.
        fractions, first_steps: as of `LayerwiseAdamW`, per trainable variable; None is 1 and 0.
        measures_gradients: whether it has a `gradient_norm`, which is among the task's metrics.

    Raises `InputError` where a number is out of its range or a name is unknown.
    """
    for name, value, names in (
        ("optimizer", optimizer, OPTIMIZERS),
        ("schedule", schedule, SCHEDULES),
    ):
        if value not in names:
            raise InputError.naming(
                "Invalid {}. Choose from: {}. Received: {!r}.",
                argument(name),
                ", ".join(names),
                value,
            )
    for name, value, is_valid, expected in (
        ("steps", steps, steps is None or steps >= 1, "at least 1"),
        ("learning_rate", learning_rate, learning_rate > 0, "a number above 0"),
        ("warmup", warmup, 0 <= warmup < 1, "a fraction of the steps, from 0 to below 1"),
        ("weight_decay", weight_decay, weight_decay >= 0, "at least 0"),
        (
            "gradient_accumulation_steps",
            gradient_accumulation_steps,
            gradient_accumulation_steps >= 1,
            "at least 1",
        ),
    ):
        if not is_valid:
            raise InputError.naming(
                "Invalid {}. Expected {}. Received: {}.", argument(name), expected, value
            )
    rate, accumulated = learning_rate, None
    if steps is not None:
        rate = SCHEDULES[schedule](peak=rate, warmup_steps=int(warmup * steps), steps=steps)
    if gradient_accumulation_steps > 1:
        accumulated = gradient_accumulation_steps
        rate = rate if steps is None else PerUpdate(schedule=rate, batches=accumulated)
    kind, layerwise = OPTIMIZERS[optimizer], {}
    if any(fraction != 1 for fraction in fractions or ()) or any(first_steps or ()):
        if optimizer != "adamw":
            raise InputError(f"Layer-wise rates need the optimizer adamw. Received: {optimizer}.")
        count = len(model.trainable_variables)
        kind = LayerwiseAdamW
        layerwise = {"fractions": fractions or [1.0] * count}
        layerwise["first_steps"] = first_steps or [0] * count
    if replica_count() > 1:
        kind = with_global_gradients(kind)
    if measures_gradients:
        kind = with_gradient_norm(kind)
    built = kind(
        rate,
        weight_decay=weight_decay,
        **({} if optimizer == "adagrad" else _ADAM),
        global_clipnorm=clip_norm or None,
        gradient_accumulation_steps=accumulated,
        # Fixed: checkpoints store variables by path, and Keras numbers automatic names.
        name=optimizer,
        **layerwise,
    )
    built.exclude_from_weight_decay(
        var_list=[variable for variable in model.trainable_variables if not decays(variable)]
    )
    # If it were built in the first step, TensorFlow would trace that step twice.
    built.build(model.trainable_variables)
    return built


def decays(variable):
    """Whether weight decay applies to a variable: to matrices, not to biases and norms."""
    return len(variable.shape) > 1 and "bias" not in variable.name


def finetuning_optimizer(task, *, steps, learning_rate=None):
    """`make_optimizer` with the defaults of `keras_bert.finetune`.

    Args:
        task: a `Task`.
        steps: as of `make_optimizer`.
        learning_rate: the highest; None is 5e-5, or 1e-3 where the encoder is not trainable.
    """
    if learning_rate is None:
        layers = (layer for group in task.encoder.layer_groups for layer in group)
        is_trained = any(layer.trainable_variables for layer in layers)
        learning_rate = LEARNING_RATE if is_trained else HEAD_LEARNING_RATE
    defaults = FinetuneSettings.defaults()
    return make_optimizer(
        task,
        learning_rate=learning_rate,
        warmup=defaults["warmup"],
        weight_decay=defaults["weight_decay"],
        steps=steps,
    )
