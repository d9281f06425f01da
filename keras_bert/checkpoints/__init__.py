"""Model folders and other programs' checkpoints; the settings of a conversion and of a push.

Loading and saving load their module on first use: the settings need no Keras.
"""

from dataclasses import InitVar

from keras_bert.base import lazy_names
from keras_bert.base.errors import InputError
from keras_bert.base.settings import (
    PathText,
    Report,
    Settings,
    checkpoint_setting,
    data_setting,
    required,
    setting,
)
from keras_bert.readers import TextFileSettings

# Files of static vectors (see `keras_bert.checkpoints.word_vectors`).
VECTOR_FORMATS = ("word2vec", "word2vec-binary", "glove")
# Files that have to be unpacked first.
ARCHIVE_ENDINGS = (".zip", ".7z", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")
FORMATS = ("huggingface", "google", "keras-nlp", "allennlp", "model2vec", *VECTOR_FORMATS)


class ConvertSettings(TextFileSettings):
    """Settings of `keras_bert.convert`."""

    report: InitVar[Report] = None
    input: PathText = required(
        kw_only=False,
        help="a Hugging Face folder, a Google checkpoint (its folder or prefix), a keras-nlp "
        "preset, an ELMo of AllenNLP (a folder with its options, weights and a vocab.txt), "
        "hf://owner/name, or a file of word vectors (word2vec, GloVe, fastText's .vec)",
        unit="PATH",
    )
    output: PathText = required(
        kw_only=False,
        help="the folder to write, or the file of word vectors",
        unit="PATH",
    )
    to: str = setting(
        "huggingface",
        help="the format to write; every command here reads huggingface, keras-nlp and "
        "allennlp contain the encoder only, model2vec is for static text embedders, and word2vec "
        "(also fastText's .vec), word2vec-binary and glove are files of static vectors",
        choices=FORMATS,
        common=True,
    )
    vocab_from: object = data_setting(
        None,
        help="keep only the tokens that these texts need, and the model's rows for them: a file or "
        "a glob, one text per line (.txt), CSV, TSV or JSON Lines",
        unit="FILE",
        default_help="keep all tokens",
        common=True,
    )
    vocab_check: object = data_setting(
        None,
        help="other texts: counts their tokens that `vocab_from` drops",
        unit="FILE",
        default_help="count none",
        common=True,
    )
    force: bool = checkpoint_setting(False, help="replace an output that this command wrote before")

    def check(self):
        super().check()
        if self.vocab_from is None and self.vocab_check is not None:
            raise InputError.naming("{vocab_check} needs {vocab_from}.")
        if self.vocab_from is not None and self.to in VECTOR_FORMATS:
            raise InputError.naming(
                "{vocab_from} cuts models, and {to} {} is a file of word vectors. Write a model "
                "folder first, and convert that.",
                self.to,
            )


class PushSettings(Settings):
    """Settings of `keras_bert.push`."""

    model: PathText = required(help="a model folder, or the output of a run", unit="FOLDER")
    to: str = required(help="its name on the hub: owner/name", unit="OWNER/NAME")
    private: bool = setting(
        False, help="visible to you alone; an error if the repository exists and is public"
    )
    revision: str | None = setting(
        None, help="the branch to push to; created if needed", unit="BRANCH", default_help="main"
    )
    message: str = setting("A model of keras-bert", help="the commit message", unit="TEXT")


_HOMES = {
    **dict.fromkeys(("load", "load_task"), "keras_bert.checkpoints.loading"),
    "find_model_folder": "keras_bert.checkpoints.locations",
    **dict.fromkeys(("save_adapter", "save_folder"), "keras_bert.checkpoints.model_folder"),
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
