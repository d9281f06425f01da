"""What an `architecture` means: the name of a published size, or the path of a config.json."""

import dataclasses
import os

from keras_bert.config import BertConfig
from keras_bert.errors import InputError

# A block of any width is some hundred objects of Keras: 50 ms and 1 MB, whatever its weights take.
_MOST_BLOCKS = 1000


def is_path(architecture):
    """Whether an architecture is the path of a config.json, not a preset's name."""
    text = os.fspath(architecture)
    return text.endswith(".json") or os.sep in text


def read_architecture(architecture, vocabulary):
    """Returns the `BertConfig` of new weights for a vocabulary; it has a pooler in any case.

    Raises `InputError` where there is no such architecture, its file is not a config, it has fewer
    rows than the vocabulary has pieces, more than a thousand blocks, or weights that are more than
    this machine's memory.
    """
    if not is_path(architecture):
        return BertConfig.preset(str(architecture), vocab_size=len(vocabulary))
    config = dataclasses.replace(BertConfig.from_file(architecture), add_pooling_layer=True)
    if config.vocab_size < len(vocabulary):
        raise InputError(
            f"{architecture} has vocab_size {config.vocab_size}, fewer rows than the vocabulary's "
            f"{len(vocabulary)} pieces."
        )
    _check_memory(config, source=architecture)
    if config.num_hidden_layers > _MOST_BLOCKS:
        raise InputError(
            f"{architecture} describes a model of {config.num_hidden_layers:,} blocks; at most "
            f"{_MOST_BLOCKS:,} can be built."
        )
    config.report_extra_keys(source=architecture)
    return config


def _check_memory(config, *, source):
    """Refuses what could not even be saved: a folder's float32 weights pass through the memory."""
    needed, there = 4 * config.parameters, _memory()
    if needed > there:
        raise InputError(
            f"{source} describes a model of {config.parameters:,} parameters, whose weights take "
            f"{needed >> 30:,} GiB; this machine has {there >> 30:,} GiB of memory."
        )


def _memory():
    """The bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
