"""What a fine-tuning run starts from: a model folder, or an architecture with random weights."""

import hashlib
import json

from keras_bert.checkpoints import find_model_folder, load
from keras_bert.checkpoints.named_models import is_name
from keras_bert.encoders import new_encoder
from keras_bert.errors import InputError
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary_files import open_vocabulary
from keras_bert.train.architecture import read_architecture


class StartingPoint:
    """Either `model`, or `architecture` with `vocab` (and `cased`), checked and ready to build.

    Args:
        model: a model folder, or the output folder of a run.
        architecture: "tiny" … "large", or the path of a config.json: random weights.
        vocab: the vocabulary of an architecture: a vocab.txt, or a folder.
        cased: the vocabulary of an architecture keeps capitals and accents; a folder may say so
            itself.
        dtype: a dtype policy's name, such as "mixed_bfloat16".

    Attributes: `fingerprint`, a hash of everything that the weights and ids depend on but the seed;
    `description`, a line for the user.

    Raises InputError where the arguments do not go together or a file is missing or broken.
    """

    def __init__(self, *, model=None, architecture=None, vocab=None, cased=False, dtype="float32"):
        self._dtype = dtype
        if (model is None) == (architecture is None):
            raise InputError(
                "Give either a model folder to start from, or an architecture (with a vocabulary) "
                "to start from random weights."
            )
        if model is not None and (vocab is not None or cased):
            raise InputError(
                "A model folder has its own vocabulary; leave the vocabulary and its case out."
            )
        if architecture is not None and vocab is None:
            raise InputError("An architecture needs a vocabulary; give a vocab.txt or a folder.")
        if model is not None:
            self._folder = find_model_folder(model)
            said = model if is_name(model) else self._folder
            self.description = f"Starting from the weights in {said}."
            self.fingerprint = fingerprint_of_folder(self._folder)
            return
        self._folder = None
        self._vocabulary, self._lowercase = open_vocabulary(
            vocab, lowercase=False if cased else None
        )
        self._config = read_architecture(architecture, self._vocabulary)
        self.description = f"Starting from random weights ({architecture})."
        described = [self._config.to_dict(), self._vocabulary.sha256, not self._lowercase]
        self.fingerprint = hashlib.sha256(json.dumps(described).encode()).hexdigest()

    def build(self):
        """Returns (encoder, `Tokenizer`); random weights draw on Keras's global seed."""
        if self._folder is None:
            tokenizer = Tokenizer.from_vocab(self._vocabulary, lowercase=self._lowercase)
            return new_encoder(self._config, dtype=self._dtype), tokenizer
        encoder, tokenizer = load(self._folder, dtype=self._dtype)
        if tokenizer is None:
            raise InputError(
                f"{self._folder} has RoBERTa's byte-level tokenizer, which is not part of "
                "keras-bert, so it cannot be fine-tuned on text."
            )
        return encoder, tokenizer


def fingerprint_of_folder(folder):
    """A hash of all files of a model folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.suffix in (".json", ".safetensors", ".txt", ".bin") and path.is_file():
            digest.update(path.name.encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
