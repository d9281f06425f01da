"""A Hugging Face folder, read and checked as far as one can without building a model."""

import warnings
from pathlib import Path

import numpy as np

from keras_bert.checkpoints import hugging_face, rename, safetensors_files
from keras_bert.checkpoints import labels as labels_format
from keras_bert.checkpoints.kinds import MARK, architecture_of, stored
from keras_bert.config import BertConfig, read_json
from keras_bert.encoder import BertEncoder
from keras_bert.errors import InputError
from keras_bert.mixed_encoder import MixedEncoder
from keras_bert.settings import checked
from keras_bert.text.vocabulary_files import holds_own_kind

CONFIG = "config.json"


class OpenedFolder:
    """A Hugging Face BERT or RoBERTa folder: its config, tensors under plain names, tokenizer.

    Attributes: `folder` (a path), `values` (the dictionary of `config.json`), `config` (a
    `BertConfig`), `architecture` (an `Architecture`), `shapes` (of every tensor, by plain name),
    `tokenizer` (or None).

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
        config = BertConfig.from_dict(self.values, source=str(path))
        self._tensors = safetensors_files.open_folder(self.folder)
        self.architecture = architecture_of(
            self.values, model_type=config.model_type, source=str(path)
        )
        self._names = hugging_face.plain_names(
            self._tensors.shapes,
            config.model_type,
            pooler=self.architecture.pooler,
            source=self.folder,
        )
        self.shapes = {plain: self._tensors.shapes[name] for plain, name in self._names.items()}
        if "add_pooling_layer" not in self.values:
            # Hugging Face's config does not say; the tensors do.
            pooler = any(name.startswith("pooler.") for name in self.shapes)
            config = BertConfig(**{**config.to_dict(), "add_pooling_layer": pooler})
        self.config = config
        self._check_encoder()
        self.tokenizer = self._load_tokenizer()

    def read(self, plain):
        """The tensor of that plain name; InputError where it is none of finite numbers."""
        name = self._names[plain]
        return rename.numbers(self._tensors.read(name), name, source=self.folder)

    def _check_encoder(self):
        shapes = {
            name: shape
            for name, shape in self.shapes.items()
            if not name.startswith(hugging_face.HEAD_PREFIXES)
        }
        rename.check_blocks(shapes, self.config.num_hidden_layers, source=str(self.folder))
        rename.check_shapes(
            shapes,
            hugging_face.encoder_table(self.config),
            sizes=rename.sizes_of(self.config),
            source=str(self.folder),
        )

    def encoder(self, *, dtype=None):
        """The encoder with the folder's weights."""
        encoder = BertEncoder(self.config, dtype=dtype)
        rename.assign(encoder, hugging_face.encoder_table(self.config), self.read)
        return encoder

    def task_encoder(self):
        """What the task in the folder stands on: the encoder, or a `MixedEncoder` of it."""
        encoder = self.encoder()
        mix = stored(self.values, source=str(self.folder / CONFIG)).get("scalar_mix")
        if mix is None:
            return encoder
        table = hugging_face.SCALAR_MIX
        names = {line.theirs for line in table}
        shapes = {name: shape for name, shape in self.shapes.items() if name in names}
        sizes = rename.sizes_of(self.config)
        rename.check_shapes(shapes, table, sizes=sizes, source=str(self.folder))
        try:
            mixed = MixedEncoder(encoder, **mix)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{self.folder / CONFIG}: the scalar_mix under {MARK} cannot be: {error}"
            ) from error
        rename.assign(mixed, table, self.read)
        return mixed

    def settle_decoder(self, *, needed):
        """Takes away the copies of the token embedding, having seen that they are copies.

        Raises:
            InputError: an output embedding of its own, which a tied head cannot hold, or one that
                the config says there is and that is not there.
        """
        weights = [f"{decoder}.weight" for decoder in hugging_face.DECODERS]
        untied = self.values.get("tie_word_embeddings") is False
        if needed and untied and not any(weight in self.shapes for weight in weights):
            raise InputError(
                f"{self.folder / CONFIG} says tie_word_embeddings: false, and the folder holds no "
                f"output embedding ({' or '.join(weights)}); say true where it is the token "
                "embedding."
            )
        for decoder, weight in zip(hugging_face.DECODERS, weights, strict=True):
            bias, ours = f"{decoder}.bias", hugging_face.DECODER_BIAS[decoder]
            if needed and weight in self.shapes:
                tied = self.read(hugging_face.TOKEN_EMBEDDING)
                if not np.array_equal(self.read(weight), tied):
                    raise InputError(
                        f"{self.folder}: {weight} differs from the token embedding; this head "
                        "shares the two and cannot hold an output embedding of its own."
                    )
            if needed and bias in self.shapes:
                if ours not in self.shapes:
                    self.shapes[ours], self._names[ours] = self.shapes[bias], self._names[bias]
                elif not np.array_equal(self.read(bias), self.read(ours)):
                    raise InputError(f"{self.folder}: {bias} and {ours} differ; they are one bias.")

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
        if length is not None and length > self.config.max_length:
            raise InputError(
                f"{source}, under {MARK}: `max_length` is {length}; it should be at most the "
                f"{self.config.max_length} positions of the model."
            )
        return settings

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
        if self.config.model_type == "roberta" and not holds_own_kind(self.folder):
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
