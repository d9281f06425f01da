"""ELMo from its published files in numpy and float64, word by word and gate by gate.

Nothing of the library is used: the formulas are those of the paper and of bilm-tf's cells.
"""

import json

import h5py
import numpy as np

from tests.seeds import make_rng

BEGIN, END = object(), object()  # the marks of a sentence


class Elmo:
    """Args: the paths of the options and of the weights."""

    def __init__(self, options, weights):
        self.options = json.loads(options.read_text())
        self.weights = {}
        with h5py.File(weights) as file:
            file.visititems(self._read)

    def _read(self, name, item):
        if isinstance(item, h5py.Dataset):
            self.weights[name] = item[...].astype(np.float64)

    def layers(self, words):
        """The representations of a sentence, BEGIN and END among its words: (1 + L, S, 2 P)."""
        tokens = np.stack([self.represent(word) for word in words])
        states = [np.concatenate([tokens, tokens], axis=1)]
        forward, backward = tokens, tokens[::-1]
        for layer in range(self.options["lstm"]["n_layers"]):
            forward = self.lstm(forward, 0, layer)
            backward = self.lstm(backward, 1, layer)
            states.append(np.concatenate([forward, backward[::-1]], axis=1))
        return np.stack(states)

    def represent(self, word):
        """The vector of a word (P,) from its 50 characters."""
        content = {BEGIN: [256], END: [257]}.get(word)
        content = list(word.encode()[:48]) if content is None else content
        characters = [258, *content, 259]
        characters += [260] * (50 - len(characters))
        x = self.weights["char_embed"][characters]  # (50, E)
        cnn = self.options["char_cnn"]
        activation = {"relu": lambda y: np.maximum(y, 0), "tanh": np.tanh}[cnn["activation"]]
        features = []
        for i, (width, _) in enumerate(cnn["filters"]):
            kernel = self.weights[f"CNN/W_cnn_{i}"][0]  # (width, E, n)
            windows = [x[at : at + width] for at in range(50 - width + 1)]
            scores = [np.einsum("we,wen->n", window, kernel) for window in windows]
            features.append(activation(np.max(scores, axis=0) + self.weights[f"CNN/b_cnn_{i}"]))
        y = np.concatenate(features)
        for i in range(cnn["n_highway"]):
            w = {part: self.weights[f"CNN_high_{i}/{part}"] for part in self._HIGHWAY}
            carry = sigmoid(y @ w["W_carry"] + w["b_carry"])
            y = carry * np.maximum(y @ w["W_transform"] + w["b_transform"], 0) + (1 - carry) * y
        return y @ self.weights["CNN_proj/W_proj"] + self.weights["CNN_proj/b_proj"]

    _HIGHWAY = ("W_carry", "b_carry", "W_transform", "b_transform")

    def lstm(self, inputs, direction, layer):
        """A layer over (S, P), with its skip connection -> (S, P)."""
        options = self.options["lstm"]
        cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
        kernel, bias, projection = (self.weights[cell + n] for n in ("W_0", "B", "W_P_0"))
        c, m = np.zeros(options["dim"]), np.zeros(options["projection_dim"])
        outputs = []
        for x in inputs:
            i, j, f, o = np.split(np.concatenate([x, m]) @ kernel + bias, 4)
            c = sigmoid(f + 1.0) * c + sigmoid(i) * np.tanh(j)
            c = np.clip(c, -options["cell_clip"], options["cell_clip"])
            m = (sigmoid(o) * np.tanh(c)) @ projection
            m = np.clip(m, -options["proj_clip"], options["proj_clip"])
            outputs.append(m + x if layer and options["use_skip_connections"] else m)
        return np.stack(outputs)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


OPTIONS = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 6,
        "cell_clip": 0.6,
        "proj_clip": 0.7,
        "dim": 10,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 4], [2, 5], [5, 6]],
        "n_highway": 2,
        "embedding": {"dim": 4},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}


def write_elmo(folder, options=OPTIONS, *, seed=0):
    """Writes the two files with random weights, large enough that values are clipped."""
    rng = make_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "some_options.json").write_text(json.dumps(options))
    lstm, cnn = options["lstm"], options["char_cnn"]
    filters = sum(number for _, number in cnn["filters"])
    size, units, embedding = lstm["projection_dim"], lstm["dim"], cnn["embedding"]["dim"]
    shapes = {"char_embed": (261, embedding)}
    for i, (width, number) in enumerate(cnn["filters"]):
        shapes[f"CNN/W_cnn_{i}"] = (1, width, embedding, number)
        shapes[f"CNN/b_cnn_{i}"] = (number,)
    for i in range(cnn["n_highway"]):
        for part in ("carry", "transform"):
            shapes[f"CNN_high_{i}/W_{part}"] = (filters, filters)
            shapes[f"CNN_high_{i}/b_{part}"] = (filters,)
    shapes |= {"CNN_proj/W_proj": (filters, size), "CNN_proj/b_proj": (size,)}
    for direction in (0, 1):
        for layer in range(lstm["n_layers"]):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes[f"{cell}/W_0"] = (2 * size, 4 * units)
            shapes[f"{cell}/B"] = (4 * units,)
            shapes[f"{cell}/W_P_0"] = (units, size)
    with h5py.File(folder / "some_weights.hdf5", "w") as file:
        for name, shape in shapes.items():
            weights = rng.normal(size=shape) * 0.6
            file.create_dataset(name, data=weights.astype(np.float32))
    return folder
