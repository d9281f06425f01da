"""What an `architecture` means: the name of a published size, or the path of a config.json."""

import os

from keras_bert.base.errors import InputError
from keras_bert.base.files import read_json
from keras_bert.encoders import presets, read_config

# A layer of any size is some hundred objects of Keras: 50 ms and 1 MB, whatever its weights take.
_MOST_LAYERS = 1000


def is_path(architecture):
    """Whether an architecture is the path of a config.json, not a preset's name."""
    text = os.fspath(architecture)
    return text.endswith(".json") or os.sep in text


def read_architecture(architecture, vocabulary):
    """Returns the `EncoderConfig` of new weights for a vocabulary.

    Raises `InputError` where there is no such architecture, its file is not a config, it has fewer
    rows than the vocabulary has pieces, more than a thousand layers, or weights that are more than
    this machine's memory.
    """
    if not is_path(architecture):
        known = presets()
        if str(architecture) not in known:
            raise InputError(
                f"There is no architecture {str(architecture)!r}. Choose from {', '.join(known)}, "
                "or pass the path of a config.json."
            )
        return known[str(architecture)].preset(str(architecture), vocab_size=len(vocabulary))
    config = read_config(read_json(architecture), source=str(architecture))
    if config.vocab_size < len(vocabulary):
        raise InputError(
            f"{architecture} has vocab_size {config.vocab_size}, fewer rows than the vocabulary's "
            f"{len(vocabulary)} pieces."
        )
    _check_memory(config, source=architecture)
    layers = config.num_hidden_states - 1
    if layers > _MOST_LAYERS:
        raise InputError(
            f"{architecture} describes a model of {layers:,} layers; at most {_MOST_LAYERS:,} can "
            "be built."
        )
    config.report_extra_keys(source=architecture)
    return config


def _check_memory(config, *, source):
    """Refuses what could not even be saved: a folder's float32 weights pass through the memory."""
    needed, there = 4 * config.parameter_count(), _memory()
    if needed > there:
        raise InputError(
            f"{source} describes a model of {config.parameter_count():,} parameters, whose weights "
            f"take {needed >> 30:,} GiB; this machine has {there >> 30:,} GiB of memory."
        )


def _memory():
    """The bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
