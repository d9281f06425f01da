"""Makes tensorflow_names.json: how the weights in `tf_model.h5` are called, by `transformers` 4.

    python -m venv tf4 && tf4/bin/pip install tensorflow tf-keras 'transformers<5'
    TF_USE_LEGACY_KERAS=1 tf4/bin/python tests/reference/make_tensorflow_names.py

For a small model of each class: the path of each weight in the file -> its name in PyTorch, and
whether it is transposed there, both by the functions of that program.
"""

import json
import tempfile
from pathlib import Path

import h5py
import tensorflow as tf
import transformers
from transformers.modeling_tf_pytorch_utils import convert_tf_weight_name_to_pt_weight_name

SIZES = {"vocab_size": 15, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 6, "max_position_embeddings": 8}
FROM_2 = {**SIZES, "max_position_embeddings": 10, "pad_token_id": 1}
DISTIL = {"vocab_size": 15, "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 6}
GPT = {"vocab_size": 15, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 8}
DEBERTA = {**SIZES, "type_vocab_size": 0, "relative_attention": True, "position_buckets": 4}
DEBERTA |= {"pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm", "share_att_key": True}
DEBERTA |= {"position_biased_input": False}
CLASSES = {
    "BertForPreTraining": SIZES,
    "RobertaForSequenceClassification": FROM_2,
    "XLMRobertaForMaskedLM": FROM_2,
    "CamembertForMaskedLM": FROM_2,
    "DistilBertForSequenceClassification": {**DISTIL, "max_position_embeddings": 8},
    "ElectraForMaskedLM": {**SIZES, "embedding_size": 4},
    "AlbertForPreTraining": {**SIZES, "embedding_size": 4},
    "MPNetForMaskedLM": FROM_2,
    "DebertaV2ForSequenceClassification": DEBERTA,
    "OpenAIGPTLMHeadModel": GPT,
    "GPT2ForSequenceClassification": {**GPT, "pad_token_id": 0},
}
OUTPUT = Path(__file__).with_name("tensorflow_names.json")


def names_of(class_name, sizes):
    """-> {path in the file: [name in PyTorch, whether it is transposed there]}."""
    kind = getattr(transformers, f"TF{class_name}")
    model = kind(kind.config_class(**sizes))
    model({"input_ids": tf.ones((1, 4), tf.int32)})
    names = {}
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.loads((Path(folder) / "config.json").read_text())
        with h5py.File(Path(folder) / "tf_model.h5") as file:
            file.visititems(lambda path, item: names.update({path: item}))
            for path, item in list(names.items()):
                if not isinstance(item, h5py.Dataset):
                    del names[path]
                    continue
                name, transpose = convert_tf_weight_name_to_pt_weight_name(
                    path.partition("/")[2], tf_weight_shape=item.shape
                )
                names[path] = [name, transpose.value == "simple"]
    for key in ("transformers_version", "torch_dtype", "architectures"):
        config.pop(key, None)
    return {"sizes": {"model_type": config["model_type"], **sizes}, "names": names}


if __name__ == "__main__":
    made = {name: names_of(name, sizes) for name, sizes in CLASSES.items()}
    OUTPUT.write_text(json.dumps(made, indent=0) + "\n")
