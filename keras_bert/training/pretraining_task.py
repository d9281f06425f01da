"""The task of a pre-training run: from random weights or a model, with heads new or continued."""

import os
import warnings

from keras_bert.base.errors import InputError, Naming, argument
from keras_bert.base.files import hash_of_json, read_json
from keras_bert.base.formatting import listed
from keras_bert.checkpoints import find_model_folder
from keras_bert.checkpoints.config_json import CONFIG
from keras_bert.checkpoints.model_folder import (
    assign_heads,
    assign_partner,
    fingerprint_of_folder,
    holds_head,
    unused_heads,
)
from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint
from keras_bert.encoders import (
    encoder_class,
    is_preset,
    new_encoder,
    presets,
    read_architecture,
    read_config,
)
from keras_bert.records import (
    BIDIRECTIONAL_LM,
    CAUSAL_LM,
    REPLACED_TOKENS,
    STATIC_VECTORS,
    DataFolder,
)
from keras_bert.tasks.pretraining import (
    ReplacedTokenSettings,
    SpanSettings,
    StaticVectorSettings,
)
from keras_bert.tasks.pretraining.features import check_sequences_fit
from keras_bert.tasks.pretraining.language_models import BidirectionalLM, CausalLM, MaskedCausalLM
from keras_bert.tasks.pretraining.pretrainer import (
    FillMask,
    Pretrainer,
    SentenceOrderPretrainer,
    SpanPretrainer,
)
from keras_bert.tasks.pretraining.replaced_tokens import ReplacedTokenPretrainer
from keras_bert.tasks.pretraining.static_vectors import Cbow, SkipGram
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.training.objective_settings import default_architecture
from keras_bert.training.settings import PretrainSettings

# The task that each objective of a data job trains.
_TASKS = {
    "mlm-nsp": Pretrainer,
    "mlm-sop": SentenceOrderPretrainer,
    "mlm": FillMask,
    "span": SpanPretrainer,
}
# Those that train on the texts of any objective.
_TASKS_OF_TEXTS = {
    CAUSAL_LM: CausalLM,
    BIDIRECTIONAL_LM: BidirectionalLM,
    REPLACED_TOKENS: ReplacedTokenPretrainer,
    **dict(zip(STATIC_VECTORS, (SkipGram, Cbow), strict=True)),
}
# The objectives that the settings of a run are for, which only some tasks have.
_OBJECTIVES_OF_SETTINGS = {
    StaticVectorSettings: STATIC_VECTORS,
    ReplacedTokenSettings: (REPLACED_TOKENS,),
}


def pretraining_task_class(folder, settings):
    """The class of task that a data folder trains.

    Raises `InputError` for settings that do not apply to it.
    """
    objective = folder.card.objective
    trained = _TASKS[objective]
    if trained is SpanPretrainer and settings.span_boundary_weight == 0:
        trained = FillMask
    chosen = settings.objective or _default_objective(objective, settings)
    if chosen in _TASKS_OF_TEXTS:
        trained = _TASKS_OF_TEXTS[chosen]
    elif settings.objective not in (None, objective):
        raise InputError.naming(
            "{objective} is {}, but {} was made for {}. Expected {}, {}, or make the data again.",
            settings.objective,
            folder.path,
            objective,
            objective,
            " or ".join(_TASKS_OF_TEXTS),
        )
    elif settings.causal_fraction:
        if objective != "mlm":
            raise InputError.naming(
                "{causal_fraction} needs data of the objective mlm. {} was made for {}.",
                folder.path,
                objective,
            )
        trained = MaskedCausalLM
    unused = ["max_span_length"] if settings.max_span_length is not None else []
    if settings.span_boundary_weight is not None and objective != "span":
        unused.append("span_boundary_weight")
    if unused and trained is not SpanPretrainer:
        why = Naming("{} was made for the objective {}", folder.path, objective)
        if objective == "span" and chosen in _TASKS_OF_TEXTS:
            why = Naming("{objective} is {}", chosen)
        elif objective == "span":
            why = Naming("{span_boundary_weight} is 0")
        raise InputError.naming(
            "{} is for span boundaries, which this run does not train: {}. Leave it out.",
            argument(unused[-1]),
            why,
        )
    for own_settings, objectives in _OBJECTIVES_OF_SETTINGS.items():
        for name in own_settings.names():
            if getattr(settings, name) is not None and trained.SETTINGS is not own_settings:
                raise InputError.naming(
                    "{} is for the objective{} {}. Leave it out.",
                    argument(name),
                    "s" * (len(objectives) > 1),
                    " and ".join(objectives),
                )
    return trained


def _default_objective(data_objective, settings):
    """Returns the objective of the data, or the first of an encoder that does not support it."""
    architecture = settings.architecture and os.fspath(settings.architecture)
    if settings.model is not None:
        path = find_model_folder(settings.model) / CONFIG
        model_type = read_config(read_json(path), source=str(path)).model_type
    elif architecture is None:
        return data_objective  # which the default architecture has
    elif not is_preset(architecture):
        model_type = read_config(read_json(architecture), source=architecture).model_type
    elif architecture in presets():
        model_type = presets()[architecture].MODEL_TYPES[0]
    else:
        return data_objective  # `read_architecture` raises the error
    supported = encoder_class(model_type).OBJECTIVES
    return data_objective if data_objective in supported else supported[0]


def new_pretraining_task(task_class, folders, tokenizer, settings, *, report):
    """-> (the task, fingerprints of what its weights depend on)."""
    make = _from_random if settings.model is None else _from_folder
    task, start = make(task_class, folders, tokenizer, settings, report)
    if settings.recompute:
        for encoder in task.encoders():
            encoder.require("recompute")
            encoder.recomputes = True
    return task, start


def _from_random(task_class, folders, tokenizer, settings, report):
    """The same with random weights."""
    architecture = settings.architecture or default_architecture(_objective(task_class))
    config = read_architecture(architecture, tokenizer.vocabulary)
    _check_objective(config, task_class)
    for folder in folders:
        check_sequences_fit(folder, config, task_class, source=architecture)
    start = {"architecture": hash_of_json(config.identity())}
    config = config.for_pretraining(task_class.TASK_TYPE)
    encoder = new_encoder(config, dtype=settings.dtype)
    if settings.initialization != "bert":
        encoder.initialize_local_attention()
    task = task_class(encoder, tokenizer, **_options(task_class, settings))
    if settings.initialization != "bert":
        for other in task.encoders()[1:]:
            other.initialize_local_attention()
    return task, start


def _from_folder(task_class, folders, tokenizer, settings, report):
    """The same from a model folder; heads that it lacks are new."""
    source = _checkpoint_for(task_class, folders, tokenizer, settings.model)
    encoder = source.encoder(dtype=settings.dtype)
    config = encoder.config.for_pretraining(task_class.TASK_TYPE)
    if config != encoder.config:
        encoder = encoder.rebuilt(config=config)
    task = task_class(encoder, tokenizer, **_options(task_class, settings, source))
    class_names = source.names.names(task.architecture)
    heads = [head for head in task.HEADS if holds_head(task, source, class_names, head)]
    if "lm_head" in heads:
        source.check_copies()
    assign_heads(task, source, class_names, heads=heads)
    start = {"model": fingerprint_of_folder(source.folder)}
    new = []
    for name in task.PARTNERS:
        if (source.folder / name).is_dir():
            assign_partner(task, source, name)
            start[name] = fingerprint_of_folder(source.folder / name)
        else:
            new.append(name)
    lacking = ["pooler"] if task.transform is not None and not source.has_pooler else []
    lacking += [head.replace("_", " ") for head in task.HEADS if head not in heads] + new
    left_out = unused_heads(source, task, class_names, heads=heads)
    report(f"Starting from the weights in {settings.model}.")
    if left_out:
        report(f"Left out, since this run does not train them: {listed(left_out)}.")
    if lacking:
        report(f"New, from random weights, since {settings.model} lacks them: {listed(lacking)}.")
    return task, start


def _checkpoint_for(task_class, folders, tokenizer, model):
    """The `PretrainedCheckpoint` of a model; `InputError` if data or task do not fit it."""
    source = PretrainedCheckpoint(find_model_folder(model))
    model_tokenizer = source.tokenizer
    if model_tokenizer is None:
        raise InputError(
            f"{source.name} has no tokenizer, so no data can be made for it. Add the tokenizer's "
            "files."
        )
    if (
        model_tokenizer.vocabulary.sha256 != tokenizer.vocabulary.sha256
        or model_tokenizer.lowercase != tokenizer.lowercase
        or model_tokenizer.template != tokenizer.template
    ):
        raise InputError(
            f"The data in {folders[0].path} has another vocabulary, case or template than the "
            f"model in {source.name}. Make the data with the model's own."
        )
    _check_objective(source.config, task_class)
    for folder in folders:
        check_sequences_fit(folder, source.config, task_class, source=source.name)
    return source


def continued_task_class(model, data):
    """The class of task that `pretrain` trains from a model folder on a data folder.

    None if it needs other settings than these two, or cannot.
    """
    try:
        folder = DataFolder.open(data)
        settings = {"data": data, "model": model, "steps": 1, "output": "unused"}
        task_class = pretraining_task_class(folder, PretrainSettings.of(settings))
        card = folder.card
        tokenizer = Tokenizer(folder.vocabulary(), lowercase=card.lowercase, template=card.template)
        with warnings.catch_warnings(action="ignore"):
            _checkpoint_for(task_class, [folder], tokenizer, model)
    except (InputError, OSError):
        return None
    return task_class


def _options(task_class, settings, source=None):
    """A task's arguments: those that are given, else those of the folder `source`."""
    if task_class is MaskedCausalLM:
        return {"causal_fraction": settings.causal_fraction}
    options = {
        name: getattr(settings, name)
        for name in task_class.SETTINGS.names()
        if getattr(settings, name) is not None
    }
    if source is None:
        return options
    if task_class.SETTINGS in _OBJECTIVES_OF_SETTINGS:
        is_same = source.stored.get("task") == task_class.TASK_TYPE
        return (source.settings(task_class) if is_same else {}) | options
    if task_class is not SpanPretrainer:
        return options
    if source.stored.get("task") == SpanPretrainer.TASK_TYPE:
        length = source.settings(SpanPretrainer).get(
            "max_span_length", SpanSettings.max_span_length
        )
        if options.setdefault("max_span_length", length) != length:
            raise InputError.naming(
                "{max_span_length} must be that of the model in {}, {}. Received: {}.",
                settings.model,
                length,
                options["max_span_length"],
            )
    return options


def _check_objective(config, task_class):
    """Raises InputError if an encoder does not support the objective of a task."""
    supported = encoder_class(config.model_type).OBJECTIVES
    objective = _objective(task_class)
    if objective not in supported:
        raise InputError.naming(
            "A {} encoder cannot be pre-trained with the objective {}. Choose {objective} from: "
            "{}.",
            config.model_type,
            objective,
            ", ".join(supported),
        )


def _objective(task_class):
    """The objective that a class of task is trained for."""
    names = {trained: name for name, trained in (_TASKS | _TASKS_OF_TEXTS).items()}
    return {**names, MaskedCausalLM: "mlm"}[task_class]
