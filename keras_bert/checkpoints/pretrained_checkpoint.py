"""A Hugging Face folder, read and checked as far as one can without building a model."""

import warnings
from pathlib import Path

import numpy as np

from keras_bert.base import rename
from keras_bert.base.errors import InputError
from keras_bert.base.files import read_json
from keras_bert.base.settings import checked
from keras_bert.checkpoints import labels as labels_format
from keras_bert.checkpoints import safetensors_files
from keras_bert.checkpoints.kinds import MARK, check_class, class_of, stored
from keras_bert.encoders import encoder_class, new_encoder, read_config
from keras_bert.encoders.tensor_names import KEPT
from keras_bert.text.vocabulary_files import has_supported_vocabulary

CONFIG = "config.json"


class PretrainedCheckpoint:
    """A Hugging Face folder: its config, its tensors under plain names, its tokenizer.

    Attributes: `folder` (a path), `values` (the dictionary of `config.json`), `config` (an
    `EncoderConfig`), `encoder_class`, `names` (its `TensorNames`), `class_names` (the `ClassNames`
    of the folder's class), `shapes` (of every tensor, by plain name), `tokenizer` (or None).

    Args:
        folder: the path.

    Raises:
        InputError: see `keras_bert.checkpoints.load`.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        if not self.folder.exists():
            raise InputError(
                f"There is no model folder {folder}; give another path, or run what makes it first."
            )
        if not self.folder.is_dir():
            raise InputError(f"{folder} is no folder; give a model folder.")
        path = self.folder / CONFIG
        if not path.exists():
            google = " but a checkpoint of Google's, of which keras-bert convert makes one"
            found = google if (self.folder / "bert_config.json").exists() else ""
            raise InputError(f"{folder} is not a model folder: it holds no {CONFIG}{found}.")
        self.values = read_json(path)
        config = read_config(self.values, source=str(path))
        self._tensors = safetensors_files.open_folder(self.folder)
        self.encoder_class = encoder_class(config.model_type)
        self.config = self.encoder_class.completed_config(
            config, given=self.values, tensors=self._tensors.shapes
        )
        self.names = self.encoder_class.tensor_names(self.config)
        check_class(self.values, self.names, source=str(path))
        self.class_names = self.names.names(class_of(self.values))
        self._names = self._plain_names()
        self.shapes = {plain: self._tensors.shapes[name] for plain, name in self._names.items()}
        self._check_encoder()
        self.config.report_extra_keys(source=path)
        self.tokenizer = self._load_tokenizer()

    def _plain_names(self):
        """The names of the file's tensors by their names in `TensorNames`.

        The head transform is under its plain name, wherever the class has it. One that is in the
        encoder as well as in the head (files of 2019) was never used.

        Raises:
            InputError: two names in the file are one.
        """
        plain = {}
        place = self.class_names.transform
        in_head = {
            f"{place}.{line.theirs}": f"pooler.{line.theirs}" for line in self.names.transform
        }
        for name in self._tensors.shapes:
            short = self.names.plain(name)
            if short is None:
                continue
            if place not in (None, "pooler"):
                if short.startswith("pooler."):
                    continue
                short = in_head.get(short, short)
            elif short.startswith(f"{KEPT}pooler."):
                short = short.removeprefix(KEPT)
            if short in plain:
                raise InputError(
                    f"{self.folder} contains {plain[short]} and {name}, two tensors for one "
                    "weight. Remove one of them."
                )
            plain[short] = name
        return plain

    def read(self, plain):
        """The tensor of that plain name; InputError unless it holds finite numbers."""
        name = self._names[plain]
        return rename.numbers(self._tensors.read(name), name, source=self.folder)

    def _check_encoder(self):
        shapes = {
            name: shape
            for name, shape in self.shapes.items()
            if not name.startswith(self.names.head_prefixes)
        }
        rename.check_layers(shapes, self.names.layers, source=str(self.folder))
        rename.check_shapes(
            shapes, self.names.table(), sizes=self.names.sizes, source=str(self.folder)
        )

    def encoder(self, *, dtype=None):
        """The encoder with the folder's weights."""
        encoder = new_encoder(self.config, dtype=dtype)
        rename.assign(encoder, self.names.table(), self.read)
        return encoder

    def check_copies(self, *, needed):
        """Compares tensors that some writers store in addition with those that they repeat.

        Args:
            needed: whether the task has the language-model head that these belong to.

        Raises:
            InputError: two that should be the same differ.
        """
        if not needed:
            return
        output = self.names.output_embedding
        untied = self.values.get("tie_word_embeddings") is False
        if output and untied and not any(name in self.shapes for name in output):
            raise InputError(
                f"{self.folder / CONFIG} says tie_word_embeddings: false, but the folder has no "
                f"output embedding ({' or '.join(output)}). Set tie_word_embeddings to true if "
                "the output embedding is the token embedding."
            )
        for copy, original in self.names.copies.items():
            if copy not in self.shapes:
                continue
            if original not in self.shapes:
                self.shapes[original], self._names[original] = self.shapes[copy], self._names[copy]
            elif not np.array_equal(self.read(copy), self.read(original)):
                raise InputError(
                    f"{self.folder}: {copy} differs from {original}, but this model shares the "
                    "two. Weights that are not tied cannot be loaded."
                )

    def settings(self, task):
        """The stored settings of a class of task, as far as the folder has them."""
        source = self.folder / CONFIG
        held = task.settings_in_config(self.values) | stored(self.values, source=str(source))
        settings = {name: held[name] for name in task.stored_settings() if name in held}
        for name, value in settings.items():
            try:
                settings[name] = checked(task.stored_settings()[name], value)
            except InputError as error:
                raise InputError(f"{source}, under {MARK}: {error}") from None
        length = settings.get("max_length")
        longest = self.config.max_length
        if None not in (length, longest) and length > longest:
            raise InputError(
                f"{source}, under {MARK}: `max_length` is {length}; it should be at most the "
                f"{longest} positions of the model."
            )
        return settings

    def layer_mix(self):
        """The arguments of the task's layer mix; None where it has none."""
        held = stored(self.values, source=str(self.folder / CONFIG)).get("scalar_mix")
        if held is None:
            return None
        sizes = {"layer_norm_eps": (int, float, type(None)), "l2": (int, float)}
        right = isinstance(held, dict) and held.keys() == sizes.keys()
        right = right and all(isinstance(held[name], kind) for name, kind in sizes.items())
        if not right or held["l2"] < 0:
            raise InputError(
                f"{self.folder / CONFIG}, under {MARK}: invalid scalar_mix {held!r}. Expected an "
                "object with layer_norm_eps and l2."
            )
        return held

    def tuned(self, task):
        """Those of the `settings` that training found, as nobody gave them."""
        source = self.folder / CONFIG
        names = stored(self.values, source=str(source)).get("tuned", [])
        if not isinstance(names, list) or not set(map(str, names)) <= set(task.stored_settings()):
            raise InputError(f"{source}, under {MARK}: `tuned` should be a list of settings.")
        return tuple(names)

    def labels(self):
        """The labels of the task in the folder, in order."""
        return labels_format.from_config(self.values, source=str(self.folder / CONFIG))

    def _load_tokenizer(self):
        if self.config.model_type == "roberta" and not has_supported_vocabulary(self.folder):
            warnings.warn(
                f"{self.folder}: RoBERTa's byte-level tokenizer is not part of keras-bert, so the "
                "encoder takes token ids that another program made.",
                stacklevel=3,
            )
            return None
        from keras_bert.text.tokenizer import Tokenizer

        tokenizer = Tokenizer.from_folder(self.folder)
        if len(tokenizer) > self.config.vocab_size:
            raise InputError(
                f"The vocabulary in {self.folder} has {len(tokenizer)} pieces, more than the "
                f"{self.config.vocab_size} rows of the model's token embedding."
            )
        return tokenizer
