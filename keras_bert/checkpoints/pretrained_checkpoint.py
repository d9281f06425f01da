"""A Hugging Face folder, read and checked as far as possible without building a model."""

import functools
import re
import warnings
from pathlib import Path

import numpy as np

from keras_bert import tasks
from keras_bert.base import rename
from keras_bert.base.errors import InputError, InputWarning
from keras_bert.base.files import check_object, read_json
from keras_bert.base.settings import checked
from keras_bert.checkpoints import tensor_files
from keras_bert.checkpoints.adapters import Adapter, check_base, is_adapter
from keras_bert.checkpoints.config_json import (
    CONFIG,
    MARK,
    class_of,
    columns_of,
    labels_from_config,
    stored,
)
from keras_bert.checkpoints.sentence_transformers import (
    PARTS_OF_MODES,
    POOLING,
    SentenceTransformer,
    cross_encoder_activation,
    cross_encoder_length,
    is_text_embedder,
    pooling_modes,
)
from keras_bert.encoders import (
    encoder_class,
    model_type_of_class,
    new_encoder,
    read_config,
)
from keras_bert.encoders.tensor_names import KEPT, PLAIN_POOLER
from keras_bert.heads import MIXES, check_layers
from keras_bert.heads.pooling import POOLINGS
from keras_bert.layers.dense import without_random_weights
from keras_bert.text.vocabulary_files import has_vocabulary

TEXT_EMBEDDING = "text-embedding"


def undetected_format(source):
    """The message for a file or folder of none of the formats of models."""
    return (
        f"Could not detect the model format of {str(source)!r}. Expected a Hugging Face folder "
        f"({CONFIG}), a Google checkpoint (bert_config.json), a keras-hub preset or an ELMo of "
        "AllenNLP (options.json and weights.hdf5)."
    )


class PretrainedCheckpoint:
    """A Hugging Face folder: its config, its tensors under plain names, its tokenizer.

    The folder of an adapter has those of its base model, with the adapter merged.

    Args:
        folder: the path.
        tokenizer: False does not read the tokenizer's files.

    Attributes:
        folder: the path.
        name: its name in messages.
        config_json: the dictionary of `config.json`.
        class_name: the class of `transformers` that `config.json` names first, or None.
        config: an `EncoderConfig`.
        encoder_class: the encoder of that config.
        names: the encoder's `TensorNames`.
        class_names: the `ClassNames` of the folder's class.
        shapes: the shape of each tensor, by plain name.
        tokenizer: the `Tokenizer`, or None.

    Raises:
        InputError: see `keras_bert.checkpoints.load`.
    """

    def __init__(self, folder, *, tokenizer=True):
        self.folder = Path(folder)
        # For messages: a folder in the cache has the name of the file that it was converted from.
        self.name = getattr(folder, "given", None) or self.folder
        if not self.folder.exists():
            raise InputError(
                f"There is no model folder {folder}. Give another path, or run the command that "
                "writes it first."
            )
        if not self.folder.is_dir():
            raise InputError(f"{folder} is a file. Expected a model folder.")
        adapter = Adapter(self.folder) if is_adapter(self.folder) else None
        self._weights = weights = self.folder if adapter is None else adapter.base
        path = self.folder / CONFIG
        if adapter is not None and not path.exists():
            path = weights / CONFIG
        self.source = str(path if self.name == self.folder else self.name)
        if not path.exists():
            message = undetected_format(folder)
            if any(self.folder.glob("*.safetensors")):
                message = f"{folder} is not a model folder: it has no {CONFIG}."
            if (self.folder / "saved_model.pb").exists():
                message += (
                    " It contains a SavedModel, which lacks the sizes of its encoder. Use the "
                    "folder or the checkpoint that it was exported from."
                )
            raise InputError(message)
        self.config_json = read_json(path)
        self.config = config = read_config(self.config_json, source=self.source)
        self._tensors = tensor_files.open_folder(weights)
        if adapter is not None and "base_sha256" in self.stored:
            check_base(weights, self.stored["base_sha256"], adapter=self.folder)
        self.encoder_class = encoder_class(config.model_type)
        self.names = self.encoder_class.tensor_names(config)
        self._remove_prefix()
        self.class_name = class_of(self.config_json)
        if adapter is not None:
            self._tensors = adapter.over(self._tensors, self.names.plain)
            if path.parent == weights:  # which says nothing of the adapter's class and labels
                self._take_class(adapter)
        model_type = model_type_of_class(self.class_name or "")
        if model_type not in (None, config.model_type):
            raise InputError(
                f"{path} has the model type {config.model_type!r} but names the class "
                f"{self.class_name}, whose model type is {model_type!r}."
            )
        self.class_names = self.names.names(self.class_name)
        self._names = self._plain_names()
        self.shapes = {plain: self._tensors.shapes[name] for plain, name in self._names.items()}
        self._check_encoder()
        self.config.report_extra_keys(source=path)
        has_own = adapter is None or has_vocabulary(self.folder)
        has_tokenizer = self.folder if has_own else weights
        self.tokenizer = self._load_tokenizer(has_tokenizer) if tokenizer else None

    def _take_class(self, adapter):
        """Sets the class that an adapter of another program is for, and its number of labels."""
        self.class_name = adapter.class_name(self.names) or self.class_name
        self.config_json = {**self.config_json, "architectures": [self.class_name]}
        lines = [n for head in self.names.names(self.class_name).heads.values() for n in head]
        counts = {
            shape[0]
            for line in lines
            if line.shape.endswith("C") and (shape := self._tensors.shapes.get(line.theirs))
        }
        if counts and counts != {len(self.config_json.get("id2label") or ())}:
            self.config_json |= {"id2label": None, "num_labels": min(counts)}

    def _remove_prefix(self):
        """Removes, and reports, the prefix that a wrapper has put before the names of all tensors.

        PyTorch's DataParallel writes `module.`, other programs `model.` or `0.auto_model.`.
        """
        # Not those of the layers, of which a config may claim any number.
        expected = {line.theirs for line in self.names.encoder if "{i}" not in line.theirs}
        shapes = self._tensors.shapes
        if any(self.names.plain(name) in expected for name in shapes):
            return
        prefixes = set()
        for name in shapes:
            ends = (place.end() for place in re.finditer(r"\.", name))
            fitting = (end for end in ends if self.names.plain(name[end:]) in expected)
            if (end := next(fitting, None)) is not None:
                prefixes.add(name[:end])
        if len(prefixes) != 1:
            return  # `_check_encoder` names what is missing
        prefix = prefixes.pop()
        self._tensors.remove_prefix(prefix)
        warnings.warn(
            f"{self.name}: the names of the tensors begin with {prefix!r}, which was ignored.",
            InputWarning,
            stacklevel=4,
        )

    def _plain_names(self):
        """The names of the file's tensors by their names in `TensorNames`.

        The pooler is under its plain name, wherever the class has it. One that is in the encoder
        as well as in the head (files of 2019) was never used.
        """
        plain = {}
        table, in_class = self.names.pooler_table(), self.class_names.transform
        in_head = {f"{in_class}{line.theirs.removeprefix(PLAIN_POOLER)}": line for line in table}
        heads = {line.theirs for lines in self.class_names.heads.values() for line in lines}
        for name in self._tensors.shapes:
            short = self.names.plain(name)
            if short is None:
                continue
            if in_class not in (None, PLAIN_POOLER):
                if short.startswith(PLAIN_POOLER):
                    continue
                if short in in_head:
                    if short in heads:  # a masked LM's transform, from which others begin
                        plain[short] = name
                    short = in_head[short].theirs
            elif short.startswith(KEPT + PLAIN_POOLER):
                short = short.removeprefix(KEPT)
            if short in plain:
                raise InputError(
                    f"{self.name} contains {plain[short]} and {name}, two tensors for one "
                    "weight. Remove one of them."
                )
            plain[short] = name
        return plain

    def _check_encoder(self):
        shapes = {
            name: shape
            for name, shape in self.shapes.items()
            if not name.startswith(self.names.head_prefixes)
        }
        table = self.names.table() + (self.names.pooler_table() if self.has_pooler else [])
        rename.check_shapes(shapes, table, sizes=self.names.sizes, source=str(self.name))

    @property
    def has_pooler(self):
        """Whether the folder has weights of `Encoder.pooler`."""
        is_possible = self.encoder_class.POOLER_ACTIVATION is not None
        return is_possible and any(name.startswith(PLAIN_POOLER) for name in self.shapes)

    @functools.cached_property
    def pooling(self):
        """One of `POOLINGS`, which the folder gives for vectors of whole texts, or None.

        It is that of the file POOLING, or else the one that `save_folder` has stored. A pooling
        that does not exist here is reported.
        """
        path = self._weights / POOLING
        if not path.exists():
            name = self.stored.get("default_pooling")
            if name not in (None, *POOLINGS):
                raise InputError(
                    f"{self.source}, under {MARK}: invalid default_pooling {name!r}. Choose from: "
                    f"{', '.join(POOLINGS)}."
                )
            return name
        modes = pooling_modes(read_json(path), source=path)
        parts = {PARTS_OF_MODES.get(mode) for mode in modes}
        for name, pooled_parts in POOLINGS.items():
            if set(pooled_parts) == parts:
                return name
        warnings.warn(
            f"{path} asks for the pooling {' with '.join(modes)}, which only text embedders may "
            "have. Classifiers, regressions and multiple choice ignore it and take "
            f"`pooling` (--pooling): {', '.join(POOLINGS)}.",
            InputWarning,
            stacklevel=4,
        )
        return None

    def _load_tokenizer(self, folder):
        if not self.config.REQUIRES_TOKENIZER and not has_vocabulary(folder):
            warnings.warn(
                f"{self.name} has no tokenizer (no vocab.json, merges.txt, tokenizer.json or "
                "vocab.txt), so the encoder takes token ids only.",
                InputWarning,
                stacklevel=3,
            )
            return None
        from keras_bert.text.tokenizer import Tokenizer

        tokenizer = Tokenizer.from_folder(folder)
        check_vocabulary(tokenizer, self.config, source=f"The vocabulary in {self.name}")
        return tokenizer

    def read(self, plain):
        """The tensor of that plain name; InputError unless it contains finite numbers."""
        name = self._names[plain]
        return rename.numbers(self._tensors.read(name), name, source=self.name)

    def encoder(self, *, dtype=None, takes_pooling=True):
        """The encoder with the folder's weights; and `came_with_pooling` if it `takes_pooling`."""
        with without_random_weights():
            encoder = new_encoder(self.config, dtype=dtype)
        rename.assign(encoder, self.names.table(), self.read)
        encoder.came_with_pooler = self.has_pooler
        encoder.came_with_pooling = self.pooling if takes_pooling else None
        if self.has_pooler:
            rename.assign(encoder.new_pooler(), self.names.pooler_table(), self.read)
        encoder.is_pretrained = True
        if self.tokenizer is not None:
            encoder.set_vocabulary(self.tokenizer.vocabulary)
            self.tokenizer.input_names = encoder.input_names
        return encoder

    def check_copies(self):
        """Compares tensors that some writers store twice; InputError if they differ.

        Only a task with a language-model head needs them.
        """
        output = self.names.output_embedding
        untied = self.config_json.get("tie_word_embeddings") is False
        if output and untied and not any(name in self.shapes for name in output):
            raise InputError(
                f"{self.source} contains tie_word_embeddings: false, but the folder has no output "
                f"embedding ({' or '.join(output)}). Set tie_word_embeddings to true if the "
                "output embedding is the token embedding."
            )
        for copy, original in self.names.copies.items():
            if copy not in self.shapes:
                continue
            if original not in self.shapes:
                self.shapes[original], self._names[original] = self.shapes[copy], self._names[copy]
            elif not np.array_equal(self.read(copy), self.read(original)):
                raise InputError(
                    f"{self.name}: {copy} differs from {original}, but this model shares the "
                    "two. Weights that are not tied cannot be loaded."
                )

    @functools.cached_property
    def stored(self):
        """The object under this library's own key of `config.json`."""
        return stored(self.config_json, source=self.source)

    @functools.cached_property
    def sentence_transformer(self):
        """The `SentenceTransformer` of a folder whose modules make a vector of a text, or None."""
        is_one = self.class_name in (None, self.names.base_class) and is_text_embedder(self.folder)
        if not is_one:
            return None
        is_static = self.names.is_static_embedding
        return SentenceTransformer(self.folder, self.config, is_static=is_static)

    @property
    def is_text_embedder(self):
        """Whether the folder is a text embedder, of this or of another program."""
        is_stored = self.stored.get("task") == TEXT_EMBEDDING
        return self.sentence_transformer is not None or is_stored

    def holds(self, task_type):
        """Whether the folder contains a task's head, or is a text embedder of another program.

        The latter only if the `task_type` is that: other tasks take its encoder alone.
        """
        if self.class_name in self.names.classes or "task" in self.stored:
            return True
        return task_type == TEXT_EMBEDDING and is_text_embedder(self.folder)

    def task_class(self, task_type=None):
        """The class of the task in the folder.

        Our own key decides between several task types that one class of `transformers` serves, or
        else `task_type`. If another program has since saved the model as another class, that class
        decides. Raises InputError if `config.json` names no class, one without a task, or one that
        does not serve `task_type`.
        """
        name, names, source = self.class_name, self.names, self.source
        if task_type in (None, TEXT_EMBEDDING) and self.sentence_transformer is not None:
            return tasks.task_class(TEXT_EMBEDDING)
        supported = ", ".join(names.classes) or "none"
        if name is None:
            raise InputError(
                f"{source} does not name its class: `architectures` should be a list with one of "
                f"{supported}."
            )
        if "task" in self.stored:
            try:
                task = tasks.task_class(str(self.stored["task"]))
            except InputError as error:
                raise InputError.naming("{}: {}", source, error) from None
            if name in (names.class_of(task.TASK_TYPE), names.base_class):
                if task_type not in (None, task.TASK_TYPE):
                    raise InputError.naming(
                        "{} contains a model of the task {}, not {}. Leave {task} out.",
                        self.name,
                        task.TASK_TYPE,
                        task_type,
                    )
                return task
        if name == names.base_class:
            raise InputError(
                f"{source} describes a {name}: an encoder without a task. Fine-tune it first."
            )
        if name not in names.classes:
            raise InputError(
                f"{source} describes a model of the class {name}, whose head is not supported. "
                f"Fine-tune its encoder first. Supported heads: {supported}."
            )
        task_types = names.classes[name].task_types
        if "regression" in task_types and self._is_regression():
            task_types = ("regression",)
        if task_type is not None and task_type not in task_types:
            raise InputError.naming(
                "{} describes a {}, which serves the task {}. Received: {task} {!r}.",
                source,
                name,
                " or ".join(task_types),
                task_type,
            )
        return tasks.task_class(task_type or task_types[0])

    def _is_regression(self):
        """Whether a sequence classification class gives one score, as in `transformers`."""
        count = len(self.labels())
        if count > 1 and self.config_json.get("problem_type") == "regression":
            raise InputError(
                f"{self.source} describes a regression to {count} numbers. Only one is supported."
            )
        return count == 1

    def activation(self, task):
        """The activation of a score, one of those of a class of task, or None.

        A cross-encoder of sentence-transformers has one (see `cross_encoder_activation`).
        """
        if "task" in self.stored:
            name = self.stored.get("activation")
            if name not in (None, *task.ACTIVATIONS):
                raise InputError(
                    f"{self.source}, under {MARK}: invalid activation {name!r}. Choose from: "
                    f"{', '.join(task.ACTIVATIONS)}."
                )
            return name
        return cross_encoder_activation(self.folder, self.config_json, source=self.source)

    def labels(self):
        """The labels of the task in the folder, in order."""
        return labels_from_config(self.config_json, source=self.source)

    def settings(self, task):
        """The stored settings of a class of task, as far as the folder has them."""
        given = task.settings_in_config(self.config_json)
        if "pooling" in given and self.class_names.pooling is not None:
            given["pooling"] = self.class_names.pooling
        given |= self.stored
        if task.TASK_TYPE == TEXT_EMBEDDING and self.sentence_transformer is not None:
            given |= self.sentence_transformer.settings
        if task.ACTIVATIONS and "task" not in self.stored:
            given["max_length"] = cross_encoder_length(self.folder, self.config)
        settings = {name: given[name] for name in task.stored_settings() if name in given}
        for name, value in settings.items():
            try:
                settings[name] = checked(task.stored_settings()[name], value)
            except InputError as error:
                raise InputError.naming("{}, under {}: {}", self.source, MARK, error) from None
        length, longest = settings.get("max_length"), self.config.max_length
        if None not in (length, longest) and length > longest:
            raise InputError.naming(
                "{}, under {}: {max_length} is {}. Expected at most the {} positions of the model.",
                self.source,
                MARK,
                length,
                longest,
            )
        return task.with_effect(settings)

    def tokenizer_of(self, task):
        """The tokenizer by which a class of task reads words as the folder's model was trained.

        A model without the key of this library was trained on words with the space before them, as
        `transformers` reads them. An earlier version also read a space before the first one.
        """
        tokenizer = self.tokenizer
        if tokenizer is None or not task.READS_WORDS or not tokenizer.vocabulary.OWN_SPACES:
            return tokenizer
        skips_spaces = self.stored.get("skips_spaces")
        if not isinstance(skips_spaces, bool | None):
            raise InputError(
                f"{self.source}, under {MARK}: `skips_spaces` should be true or false."
            )
        if skips_spaces is None and "task" in self.stored:
            tokenizer = tokenizer.with_vocabulary(tokenizer.vocabulary.with_prefix_space())
            warnings.warn(
                f"{self.name} was written by an earlier version of keras-bert, which read the "
                "words of a text in another way than given words. Both are read now as given words "
                "were. Train it again for better predictions, above all if it was trained on "
                "texts.",
                InputWarning,
                stacklevel=4,
            )
        tokenizer.skips_spaces = skips_spaces is True
        return tokenizer

    def static_vectors(self):
        """A new encoder of the task's static vectors; None if it has none."""
        vectors_config = self.stored.get("static_vectors")
        if vectors_config is None:
            return None
        source = f"{self.source}, under {MARK}: `static_vectors`"
        check_object(vectors_config, source=source)
        config = read_config(vectors_config, source=source)
        if config.num_hidden_states != 1:
            raise InputError(f"{source} describes an encoder that is not static.")
        with without_random_weights():
            return new_encoder(config)

    def layer_options(self):
        """The task's arguments `layers` and `layer_mix`, as far as the folder has them."""
        layers, mix = self.stored.get("layers"), self.stored.get("scalar_mix")
        options = {}
        if layers is not None:
            try:
                check_layers(str(layers), learned=True)
            except InputError as error:
                raise InputError.naming("{}, under {}: {}", self.source, MARK, error) from None
            options["layers"] = str(layers)
        if mix is None:
            return options
        types = {"layer_norm_eps": (int, float, type(None)), "l2": (int, float)}
        valid = isinstance(mix, dict) and mix.keys() == types.keys()
        valid = valid and all(isinstance(mix[name], kind) for name, kind in types.items())
        if not valid or not all(value is None or 0 <= value < 1e30 for value in mix.values()):
            raise InputError(
                f"{self.source}, under {MARK}: invalid scalar_mix {mix!r}. Expected an object "
                "with layer_norm_eps and l2."
            )
        if options.get("layers", "mix-all") not in MIXES:
            raise InputError(
                f"{self.source}, under {MARK}: scalar_mix is for a learned mix of layers. "
                f"Received: layers {layers}."
            )
        return {**options, "layer_mix": mix}

    def columns(self):
        """{part of an example: its columns} in the data that the task was trained on, or None."""
        return columns_of(self.stored, source=self.source)

    def tuned(self, task):
        """The names of the stored settings that training has tuned."""
        names = self.stored.get("tuned", [])
        if not isinstance(names, list) or not set(map(str, names)) <= set(task.stored_settings()):
            raise InputError(f"{self.source}, under {MARK}: `tuned` should be a list of settings.")
        return tuple(names)


def may_be_text_embedder(folder):
    """Whether a folder may be a text embedder, by its small files alone."""
    config = Path(folder) / CONFIG
    if is_text_embedder(folder) or not config.exists():
        return is_text_embedder(folder)
    return stored(read_json(config), source=config).get("task") == TEXT_EMBEDDING


def check_vocabulary(vocabulary, config, *, source):
    """Raises InputError if a vocabulary has more tokens than the model's token embedding."""
    if len(vocabulary) > config.vocab_size:
        raise InputError(
            f"{source} has {len(vocabulary)} tokens, more than the {config.vocab_size} rows of the "
            "model's token embedding."
        )
