"""What a pre-training run trains: the task of its rows, from random weights or a model folder."""

import hashlib
import json

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed
from keras_bert.base.objectives import CAUSAL_LM
from keras_bert.checkpoints import find_model_folder
from keras_bert.checkpoints.model_folder import assign_heads, fingerprint_of_folder, holds_head
from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint
from keras_bert.encoders import encoder_class, new_encoder
from keras_bert.tasks.pretraining.causal_lm import CausalLM, MaskedCausalLM
from keras_bert.tasks.pretraining.features import check_sequences_fit
from keras_bert.tasks.pretraining.pretrainer import (
    FillMask,
    Pretrainer,
    SentenceOrderPretrainer,
    SpanPretrainer,
    SpanSettings,
)
from keras_bert.training.starting_point import read_architecture

# The task that each objective of a data job trains.
_TASKS = {
    "mlm-nsp": Pretrainer,
    "mlm-sop": SentenceOrderPretrainer,
    "mlm": FillMask,
    "span": SpanPretrainer,
}
_DEFAULT_ARCHITECTURE = "tiny"


def task_class_of(folder, settings):
    """The class of task that the rows train.

    Raises `InputError` for settings that are of no use to it.
    """
    objective = folder.card.objective
    trained = _TASKS[objective]
    if trained is SpanPretrainer and settings.span_boundary_weight == 0:
        trained = FillMask
    if settings.objective == CAUSAL_LM:
        trained = CausalLM
    elif settings.objective not in (None, objective):
        raise InputError(
            f"`objective` is {settings.objective}, but {folder.path} was made for {objective}. "
            f"Expected {objective} or {CAUSAL_LM}, or make the data again."
        )
    elif settings.causal_fraction:
        if objective != "mlm":
            raise InputError(
                f"`causal_fraction` is {settings.causal_fraction}, and rows that are masked and "
                f"causal by turns are those of the objective mlm; {folder.path} was made for "
                f"{objective}."
            )
        trained = MaskedCausalLM
    useless = ["max_span_length"] if settings.max_span_length is not None else []
    if settings.span_boundary_weight is not None and objective != "span":
        useless.append("span_boundary_weight")
    if useless and trained is not SpanPretrainer:
        why = _why_none(settings) if objective == "span" else ""
        raise InputError(
            f"`{useless[-1]}` is about the boundaries of spans, which this run does not train: the "
            f"rows of {folder.path} were made for the objective {objective}{why}; "
            "leave it out."
        )
    return trained


def _why_none(settings):
    """Why rows of spans train no boundaries."""
    if settings.objective == CAUSAL_LM:
        return ", and `objective` is causal-lm"
    return ", and `span_boundary_weight` is 0" if settings.span_boundary_weight == 0 else ""


def task_at_start(task_class, folders, tokenizer, settings, *, report):
    """-> (the task, fingerprints of what its weights depend on)."""
    if settings.model is not None:
        return _from_folder(settings, folders, tokenizer, task_class, report)
    return _from_random_weights(settings, folders, tokenizer, task_class)


def _options(task_class, settings, source=None):
    """What a task is made with beside its encoder: what is given, or the folder `source` has."""
    if task_class is MaskedCausalLM:
        return {"causal_fraction": settings.causal_fraction}
    if task_class is not SpanPretrainer:
        return {}
    options = {
        name: getattr(settings, name)
        for name in SpanSettings.defaults()
        if getattr(settings, name) is not None
    }
    if source is not None and source.stored.get("task") == SpanPretrainer.KIND:
        stored_ones = source.settings(SpanPretrainer)
        held = stored_ones.get("max_span_length", SpanSettings.max_span_length)
        if options.setdefault("max_span_length", held) != held:
            raise InputError(
                f"`max_span_length` is {options['max_span_length']}, and the model in "
                f"{settings.model} was made with {held}; leave it out."
            )
    return options


def _from_random_weights(settings, folders, tokenizer, task_class):
    """-> (the task, fingerprints of what its weights depend on)."""
    architecture = settings.architecture or _DEFAULT_ARCHITECTURE
    config = read_architecture(architecture, tokenizer.vocabulary)
    for folder in folders:
        check_sequences_fit(folder, config, source=architecture)
    start = {"architecture": fingerprint(config.to_dict())}
    _check_offered(config, task_class)
    config = config.for_pretraining(task_class.KIND, new=True)
    encoder = new_encoder(config, dtype=settings.dtype)
    if settings.initialization != "bert":
        encoder.initialize_local_attention()
    return task_class(encoder, tokenizer, **_options(task_class, settings)), start


def _from_folder(settings, folders, tokenizer, task_class, report):
    """The same from a model folder; a head that it lacks is new."""
    path = find_model_folder(settings.model)
    source = PretrainedCheckpoint(path)
    encoder, its_tokenizer = source.encoder(dtype=settings.dtype), source.tokenizer
    if its_tokenizer is None:
        raise InputError(
            f"{path} has RoBERTa's byte-level tokenizer, which is not part of keras-bert, so no "
            "rows can be made for it."
        )
    if (
        its_tokenizer.vocabulary.sha256 != tokenizer.vocabulary.sha256
        or its_tokenizer.lowercase != tokenizer.lowercase
        or its_tokenizer.template != tokenizer.template
    ):
        raise InputError(
            f"The rows of {folders[0].path} were made with another vocabulary, or another case or "
            f"template of it, than the model in {path} has; make rows with the model's own."
        )
    for folder in folders:
        check_sequences_fit(folder, encoder.config, source=path)
    lacking = ["pooler"] if encoder.lacks_head_transform(task_class.KIND) else []
    _check_offered(encoder.config, task_class)
    config = encoder.config.for_pretraining(task_class.KIND, new=False)
    if config != encoder.config:
        encoder = encoder.rebuilt(config=config)
    task = task_class(encoder, tokenizer, **_options(task_class, settings, source))
    class_names = source.names.names(task.architecture)
    held = [head for head in task.HEADS if holds_head(task, source, class_names, head)]
    if "lm_head" in held:
        source.check_copies()
    assign_heads(task, source, class_names, heads=held)
    lacking += [head.replace("_", " ") for head in task.HEADS if head not in held]
    report(f"Starting from the weights in {settings.model}.")
    if lacking:
        names = listed(lacking)
        report(f"Starting from random weights, as {settings.model} does not have them: {names}.")
    return task, {"model": fingerprint_of_folder(path)}


def _check_offered(config, task_class):
    """Raises InputError where an encoder does not offer what is to be trained."""
    offered = encoder_class(config.model_type).OBJECTIVES
    names = {trained: name for name, trained in _TASKS.items()}
    objective = {**names, CausalLM: CAUSAL_LM, MaskedCausalLM: "mlm"}[task_class]
    if objective not in offered:
        raise InputError(
            f"A {config.model_type} encoder cannot be pre-trained with the objective {objective}. "
            f"It offers: {', '.join(offered)}; give one of these as `objective`."
        )


def fingerprint(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
