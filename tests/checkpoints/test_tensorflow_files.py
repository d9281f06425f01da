"""`tf_model.h5` of `transformers` 4: the same weights, bit for bit; what else is refused."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert.base.errors import InputError
from keras_bert.checkpoints import tensor_files
from keras_bert.checkpoints.model_folder import to_hugging_face
from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint
from keras_bert.encoders import new_encoder, read_config
from keras_bert.tasks import task_class
from tests.checkpoints.conftest import shake
from tests.seeds import make_rng

# What a class of TensorFlow does not store twice, or never had.
COPIES = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "lm_head.decoder.bias"}
COPIES |= {"lm_head.decoder.weight", "generator_lm_head.weight", "predictions.decoder.weight"}
COPIES |= {"lm_head.weight"}
NAMES = json.loads((Path(__file__).parents[1] / "reference" / "tensorflow_names.json").read_text())


def saved(class_name, folder):
    """A task of a class with random weights, as a folder without a tokenizer -> its tensors."""
    config = read_config(NAMES[class_name]["sizes"], source="x")
    encoder = new_encoder(config)
    kind = task_class(encoder.tensor_names(config).classes[class_name].task_types[0])
    labels = {"labels": ["a", "b"]} if kind.MIN_LABELS else {}
    task = shake(kind(encoder, **labels))
    config_json, tensors = to_hugging_face(task)
    copies = encoder.tensor_names(config).copies
    tensors |= {copy: tensors[one] for copy, one in copies.items() if one in tensors}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config_json))
    return task, tensors


def write(names, tensors, path):
    """Writes the file as that program does: transposed kernels, and GPT's biases as (1, E)."""
    with h5py.File(path, "w") as file:
        for name, (pytorch_name, is_transposed) in names.items():
            array = tensors[pytorch_name]
            array = array.T if is_transposed else array
            if ".c_" in pytorch_name and pytorch_name.endswith("bias"):
                array = array[None]
            file.create_dataset(name, data=array)


@pytest.mark.parametrize("class_name", NAMES)
def test_a_file_of_tensorflow_has_the_weights_bit_for_bit(class_name, tmp_path):
    names = NAMES[class_name]["names"]
    task, tensors = saved(class_name, tmp_path / "model")
    pytorch_names = {pytorch_name for pytorch_name, _ in names.values()}
    for name in pytorch_names - tensors.keys():  # of a pooler that nothing reads
        assert ".pooler.dense." in name
        shape = (8, 8) if name.endswith("weight") else (8,)
        tensors[name] = make_rng(3).normal(size=shape).astype("float32")
    more = {name for name in tensors.keys() - pytorch_names if "pooler" not in name} - COPIES
    assert not more
    write(names, tensors, tmp_path / "model" / "tf_model.h5")
    read = tensor_files.open_folder(tmp_path / "model")
    assert set(read.shapes) == pytorch_names
    for name in pytorch_names:
        assert read.shapes[name] == tensors[name].shape
        np.testing.assert_array_equal(read.read(name), tensors[name], err_msg=name)
    encoder = PretrainedCheckpoint(tmp_path / "model", tokenizer=False).encoder()
    for one, other in zip(encoder.weights, task.encoder.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_other_files_of_tensorflow_are_refused_with_the_way_out(good_folder, tmp_path, folder):
    (folder / "model.safetensors").unlink()
    for name in ("bert_model.ckpt.index", "tf_model.h5.index.json"):
        (folder / name).write_bytes(b"")
        with pytest.raises(InputError, match="from_tf=True.*save_pretrained"):
            PretrainedCheckpoint(folder)
        (folder / name).unlink()
    (folder / "tf_model.h5").write_bytes(b"no HDF5")
    with pytest.raises(InputError, match="tf_model.h5 is not a whole HDF5 file"):
        PretrainedCheckpoint(folder)
    (folder / "tf_model.h5").unlink()
    with pytest.raises(InputError, match="no supported weights"):
        PretrainedCheckpoint(folder)
    weights = load_file(good_folder / "model.safetensors")
    with h5py.File(folder / "tf_model.h5", "w") as file:
        name = "embeddings.word_embeddings.weight"
        file.create_dataset(
            f"bert/model/bert/{name[:-7].replace(chr(46), chr(47))}/weight:0", data=weights[name]
        )
    with pytest.raises(InputError, match="lacks the tensor|has \\d+ tensors"):
        PretrainedCheckpoint(folder)
