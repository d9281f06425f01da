"""Every family's states and gradients on the backend of the process, as arrays in a folder.

`test_families.py` runs it on JAX and compares with what TensorFlow computes:

    KERAS_BACKEND=jax python -m tests.encoders.families_on_jax FOLDER

Each file of the folder is `FAMILY.npz` with the weights, which it replaces by the results.
"""

import sys
from pathlib import Path

import jax
import keras
import numpy as np
from keras import ops

from keras_bert.encoders import new_encoder, read_config
from tests.encoders.test_families import batch, config_of, mean_directions


def results(family, weights):
    """The states of a padded batch, and the gradient of a mean of them for each weight."""
    encoder = new_encoder(read_config({"model_type": family, **config_of(family)}, source="x"))
    encoder.set_weights(weights)
    inputs = batch(encoder.config)
    is_token = inputs["input_mask"] > 0
    inputs = {name: inputs[name] for name in encoder.input_names}
    directions = mean_directions(is_token, (encoder.config.hidden_size,))
    rest = [variable.value for variable in encoder.non_trainable_variables]

    def total(trainable):
        outputs, _ = encoder.stateless_call(trainable, rest, inputs, training=False)
        states = outputs["sequence_output"]
        return ops.sum(states * directions), states

    trainable = [variable.value for variable in encoder.trainable_variables]
    (_, states), gradients = jax.value_and_grad(total, has_aux=True)(trainable)
    return [np.asarray(states)[is_token], *map(np.asarray, gradients)]


if __name__ == "__main__":
    assert keras.backend.backend() == "jax"
    for path in Path(sys.argv[1]).glob("*.npz"):
        with np.load(path) as file:
            weights = [file[f"arr_{number}"] for number in range(len(file.files))]
        np.savez(path, *results(path.stem, weights))
