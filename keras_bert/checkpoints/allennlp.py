"""ELMo as AllenNLP publishes it: options in JSON and weights in HDF5 (Peters et al. 2018).

The weights are those of bilm-tf, the program that trained them. They have no vocabulary, since ELMo
reads characters, and no softmax: an encoder without a language-model head.
"""

import io
import json
from pathlib import Path

import numpy as np

from keras_bert.base import rename
from keras_bert.base.errors import InputError, input_errors, reason_of
from keras_bert.base.files import check_object, check_regular, new_folder, read_json
from keras_bert.base.ownership import check_output_folder, held_names
from keras_bert.base.rename import Rename
from keras_bert.base.version import __version__
from keras_bert.checkpoints.config_json import MARK
from keras_bert.checkpoints.pretrained_checkpoint import check_vocabulary
from keras_bert.encoders.bilm import NUM_CHARACTERS, BilmConfig
from keras_bert.encoders.bilm.encoder import BilmEncoder
from keras_bert.encoders.encoder import Encoder
from keras_bert.text.vocabulary import TOKENIZER_FILES

OPTIONS, WEIGHTS = "options.json", "weights.hdf5"
_MAX_CHARACTERS = 50  # a constant in AllenNLP

# The sizes of the options, as paths in the JSON.
_SIZES = {
    "hidden_size": "lstm.projection_dim",  # of one direction
    "lstm_size": "lstm.dim",
    "num_hidden_layers": "lstm.n_layers",
    "character_filters": "char_cnn.filters",
    "character_embedding_size": "char_cnn.embedding.dim",
    "num_highway_layers": "char_cnn.n_highway",
    "character_activation": "char_cnn.activation",
}
_OTHERS = {
    "cell_clip": "lstm.cell_clip",
    "projection_clip": "lstm.proj_clip",
    "use_residuals": "lstm.use_skip_connections",
    "hidden_dropout_prob": "dropout",
}
# bilm-tf orders the gates i, g, f, o, and adds this to f when it computes.
_GATES = (0, 2, 1, 3)
_FORGET_BIAS = 1.0


def is_allennlp(path):
    """Whether a path is a folder with `…options.json` and `…weights.hdf5`, one of each."""
    return None not in (_only(path, f"*{OPTIONS}"), _only(path, "*.hdf5"))


def _only(folder, pattern):
    """The single file of a folder whose name fits; None unless exactly one fits."""
    files = sorted(Path(folder).glob(pattern)) if Path(folder).is_dir() else []
    return files[0] if len(files) == 1 else None


def load_allennlp(path):
    """Loads an ELMo of AllenNLP.

    Its marks of a sentence's begin and end are the tokens that begin and end a sequence, [CLS] and
    [SEP]. States are zero where a sequence begins, as in AllenNLP for the first batch.

    Args:
        path: a folder with `…options.json`, `…weights.hdf5`, and a vocabulary of the words to read
            (`vocab.txt`, with the special tokens), since a model here reads tokens.

    Returns:
        (`BilmEncoder`, `Tokenizer`).

    Raises:
        InputError: a file is missing or broken, the options contradict the weights, or they ask for
            something else than a `BilmEncoder` computes.
    """
    import h5py

    from keras_bert.text.tokenizer import Tokenizer

    options_file, weights_file = _only(path, f"*{OPTIONS}"), _only(path, "*.hdf5")
    if not any((Path(path) / name).exists() for name in TOKENIZER_FILES):
        raise InputError(
            f"{path} has no vocabulary. ELMo reads characters, but a model here reads tokens. Put "
            "a vocab.txt of your words there, with [PAD], [UNK], [CLS], [SEP] and [MASK]."
        )
    tokenizer = Tokenizer.from_folder(path)
    options = read_json(options_file)
    config = _config(options, len(tokenizer), source=str(options_file))
    check_vocabulary(tokenizer, config, source=f"The vocabulary in {path}")
    check_regular(weights_file)

    def message(error):
        if isinstance(error, OSError | KeyError | RuntimeError | ValueError):
            return f"{weights_file} is not a whole HDF5 file: {reason_of(error)}."
        return None

    with input_errors(message), h5py.File(weights_file, "r") as file:
        datasets = _datasets(file, source=weights_file)
        shapes = {name: dataset.shape for name, dataset in datasets.items()}
        rename.check_shapes(
            shapes, _table(config), sizes=_sizes(config), source=f"{weights_file} ({options_file})"
        )
        tensors = {
            name: rename.numbers(np.asarray(dataset), name, source=weights_file)
            for name, dataset in datasets.items()
        }
    encoder = BilmEncoder(config)
    _assign(encoder, tensors)
    encoder.set_vocabulary(tokenizer.vocabulary)
    return encoder, tokenizer


def save_allennlp(model, tokenizer, folder, *, overwrite=False):
    """Writes a `BilmEncoder`, or that of a task, and the tokenizer; as `save_folder`.

    Raises:
        InputError: another encoder, or one without a character CNN over 50 characters.
    """
    import h5py

    encoder = model if isinstance(model, Encoder) else model.encoder
    config = encoder.config
    if not isinstance(config, BilmConfig) or encoder.characters is None:
        raise InputError(
            "AllenNLP's format is for a bilm encoder that reads characters. Received: a "
            f"{config.model_type} encoder."
        )
    if config.max_characters != _MAX_CHARACTERS:
        raise InputError(
            f"AllenNLP reads {_MAX_CHARACTERS} characters of a token. Received: max_characters "
            f"{config.max_characters}."
        )
    check_output_folder(folder, is_ours=_is_own, force=overwrite)
    tensors = _tensors(encoder)
    with new_folder(folder) as temporary:
        # In memory: HDF5 ends the process if a disk is full.
        content = io.BytesIO()
        with h5py.File(content, "w") as file:
            for name, array in tensors.items():
                file.create_dataset(name, data=array)
        (temporary / WEIGHTS).write_bytes(content.getbuffer())
        tokenizer.save(temporary)
        text = json.dumps(_options(config), indent=2)
        (temporary / OPTIONS).write_text(text + "\n", encoding="utf-8")


def _is_own(folder):
    """Whether a folder contains what `save_allennlp` wrote, and nothing else."""
    written, names = {OPTIONS, WEIGHTS}, set(held_names(folder))
    only_written = written <= names <= written | set(TOKENIZER_FILES)
    return only_written and MARK in read_json(Path(folder) / OPTIONS)


def _config(options, vocab_size, *, source):
    """The `BilmConfig` of the options."""
    check_object(options, source=source)
    fields = {name: _at(options, path, source=source) for name, path in _SIZES.items()}
    for name, path in _OTHERS.items():
        value = _at(options, path, source=source, default=None)
        if value is not None or "clip" in name:
            fields[name] = value
    size = fields["hidden_size"]
    fields["hidden_size"] = 2 * size if type(size) is int else size
    expected = {
        "bidirectional": (True,),
        "char_cnn.n_characters": (NUM_CHARACTERS - 1, NUM_CHARACTERS),
        "char_cnn.max_characters_per_token": (_MAX_CHARACTERS,),
    }
    for path, supported in expected.items():
        value = _at(options, path, source=source, default=supported[0])
        if value not in supported:
            choices = " or ".join(map(repr, supported))
            raise InputError(f"{source} has {path} = {value!r}. Supported: {choices}.")
    fields |= {"vocab_size": vocab_size, "max_characters": _MAX_CHARACTERS}
    return BilmConfig.from_dict(fields, source=source)


_REQUIRED = object()


def _at(options, path, *, source, default=_REQUIRED):
    """The value at a dotted path of the options; a required value must not be null."""
    value = options
    for name in path.split("."):
        value = value.get(name, default) if isinstance(value, dict) else default
    if value is _REQUIRED or (value is None and default is _REQUIRED):
        raise InputError(f"{source} lacks {path}. Expected the options of an ELMo of AllenNLP.")
    return value


def _options(config):
    """The options of a config; a reader ignores unknown keys."""
    options = {MARK: {"version": __version__}}
    for name, path in {**_SIZES, **_OTHERS}.items():
        *groups, last = path.split(".")
        inner = options
        for group in groups:
            inner = inner.setdefault(group, {})
        value = getattr(config, name)
        if value is not None:
            inner[last] = value
    options["lstm"]["projection_dim"] = config.direction_size
    options["char_cnn"] |= {
        "n_characters": NUM_CHARACTERS,
        "max_characters_per_token": _MAX_CHARACTERS,
    }
    return options


# The weights.


def _datasets(file, *, source):
    """The datasets of a file by name, without the links to others."""
    import h5py

    datasets = {}

    def add(name, item):
        if isinstance(item, h5py.Dataset):
            if item.external or item.is_virtual:
                raise InputError(f"{source}: {name} is stored in another file. Expected numbers.")
            datasets[name] = item

    file.visititems(add)
    return datasets


def _lstms(config):
    """(the path of an `Lstm` in the encoder, the name of its cell)."""
    for direction, ours in enumerate(("forward_lstms", "backward_lstms")):
        for layer in range(config.num_hidden_layers):
            yield f"{ours}.{layer}", f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def _plain_weights(config):
    """The rename table of the weights that are stored as they are."""
    lines = [
        Rename("characters.projection.kernel", "CNN_proj/W_proj", "F P"),
        Rename("characters.projection.bias", "CNN_proj/b_proj", "P"),
    ]
    for i, (width, number) in enumerate(config.character_filters):
        ours, shape = f"characters.convolutions.{i}", f"{width} E {number}"
        lines.append(Rename(f"{ours}.kernel", f"CNN/W_cnn_{i}", shape, folded=f"1 {shape}"))
        lines.append(Rename(f"{ours}.bias", f"CNN/b_cnn_{i}", f"{number}"))
    for i in range(config.num_highway_layers):
        for part, gate in (("transform", "transform"), ("gate", "carry")):
            ours = f"characters.highways.{i}.{part}"
            lines.append(Rename(f"{ours}.kernel", f"CNN_high_{i}/W_{gate}", "F F"))
            lines.append(Rename(f"{ours}.bias", f"CNN_high_{i}/b_{gate}", "F"))
    lstms = _lstms(config)
    return lines + [Rename(f"{ours}.projection", f"{cell}/W_P_0", "U P") for ours, cell in lstms]


def _table(config):
    """Each tensor's name and shape."""
    shapes = {"char_embed": "N E"}
    for _, cell in _lstms(config):
        shapes |= {f"{cell}/W_0": "D G", f"{cell}/B": "G"}
    others = [Rename(name, name, shape) for name, shape in shapes.items()]
    return _plain_weights(config) + others


def _sizes(config):
    return {
        "N": NUM_CHARACTERS - 1,
        "E": config.character_embedding_size,
        "F": config.num_filters,
        "P": config.direction_size,
        "D": config.hidden_size,  # the input and the last output
        "U": config.lstm_size,
        "G": 4 * config.lstm_size,
    }


def _assign(encoder, tensors):
    """Gives an encoder its weights from the tensors by name."""
    rename.assign(encoder, _plain_weights(encoder.config), tensors.get)
    # The padding of sequences has the row 0.
    embedding = np.pad(tensors["char_embed"], [(1, 0), (0, 0)])
    encoder.characters.embedding.embeddings.assign(embedding)
    for path, cell in _lstms(encoder.config):
        lstm = rename.variable(encoder, path)
        kernel, recurrent_kernel = np.split(_reordered(tensors[f"{cell}/W_0"]), 2)
        lstm.kernel.assign(kernel)
        lstm.recurrent_kernel.assign(recurrent_kernel)
        lstm.bias.assign(_reordered(tensors[f"{cell}/B"]) + _forget_bias(lstm.units))


def _tensors(encoder):
    """The tensors of an encoder by name."""
    config, to_numpy = encoder.config, rename.to_numpy
    tensors = rename.gather(encoder, _plain_weights(config), sizes=_sizes(config))
    tensors["char_embed"] = to_numpy(encoder.characters.embedding.embeddings)[1:]
    for path, cell in _lstms(config):
        lstm = rename.variable(encoder, path)
        kernel = np.concatenate([to_numpy(lstm.kernel), to_numpy(lstm.recurrent_kernel)])
        tensors[f"{cell}/W_0"] = _reordered(kernel)
        tensors[f"{cell}/B"] = _reordered(to_numpy(lstm.bias) - _forget_bias(lstm.units))
    return tensors


def _reordered(array):
    """The four parts of the last axis in the other order, from here to there or back."""
    parts = np.split(array, 4, axis=-1)
    return np.concatenate([parts[k] for k in _GATES], axis=-1)


def _forget_bias(units):
    """The summand by which `_FORGET_BIAS` raises a bias whose parts are i, f, g, o."""
    return np.repeat(np.float32([0, _FORGET_BIAS, 0, 0]), units)
