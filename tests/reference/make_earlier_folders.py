"""Makes earlier_folders/: model folders as an earlier version wrote them, and what they answered.

Run with the code of commit 2366966, in its checkout:

    PYTHONPATH=. python …/tests/reference/make_earlier_folders.py --output …/earlier_folders

Each folder has beside its model `outputs.json`: `inputs`, arrays by name, the model's `outputs` for
them, also by name, and for a task that was fine-tuned the `data` that `predict` was given and its
`answers`. Weights are random.
"""

import argparse
import json
from pathlib import Path

import keras
import numpy as np

import keras_bert as kb
from keras_bert.inference.predict import predict
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS

TOKENS = [*SPECIAL_TOKENS, *"the film was good bad in rome oslo".split(), "##s", "."]
TEXTS = ["the film was good", "Rome. bad films in Oslo, Rome"]
MIX = {"layer_norm_eps": 1e-6, "l2": 0.01}


def config(**changes):
    sizes = {
        "vocab_size": len(TOKENS),
        "hidden_size": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 4,
        "max_position_embeddings": 12,
        "initializer_range": 0.5,
    }
    return kb.BertConfig(**{**sizes, **changes})


def makers():
    """Name -> (what makes the task of an encoder and a tokenizer, changes of the config, data)."""
    questions = [("was the film good", 2 * f"{text} ") for text in TEXTS]
    return {
        "regression": (
            lambda *given: kb.Regressor(*given, one_text=True, scale=4.0, mean=2.0, pooling="cls"),
            {},
            TEXTS,
        ),
        "multi-label": (
            lambda *given: kb.Classifier(
                *given, labels=["x", "ÿ", "z"], multi_label=True, threshold=0.3, max_length=8
            ),
            {},
            TEXTS,
        ),
        "tagger": (
            lambda encoder, tokenizer: kb.Tagger(
                kb.MixedEncoder(encoder, **MIX),
                tokenizer,
                labels=["B-LOC", "I-LOC", "O"],
                max_length=8,
                crf=True,
                bilstm=2,
            ),
            {},
            TEXTS,
        ),
        "question-answering": (
            lambda *given: kb.QuestionAnswerer(
                *given, max_length=12, stride=2, n_best=3, null_threshold=0.5
            ),
            {},
            questions,
        ),
        "span-classifier": (
            lambda *given: kb.SpanClassifier(
                *given, labels=["LOC", "PER"], max_span_length=2, threshold=0.2
            ),
            {},
            TEXTS,
        ),
        "causal-lm": (kb.CausalLM, {"is_decoder": True}, None),
        "fill-mask": (kb.FillMask, {}, None),
        "roberta": (
            lambda *given: kb.Classifier(*given, labels=["x", "y"]),
            {"model_type": "roberta", "type_vocab_size": 1, "layer_norm_eps": 1e-5},
            TEXTS,
        ),
    }


def inputs_of(task, rng):
    """Two rows of ids, one of them padded, with whatever else the task reads."""
    ids = rng.integers(5, len(TOKENS), (2, 6))
    mask = np.array([[1] * 6, [1] * 4 + [0] * 2])
    every = {
        "input_ids": ids * mask,
        "input_mask": mask,
        "segment_ids": np.array([[0, 0, 0, 1, 1, 1], [0] * 6]) % task.config.type_vocab_size,
        "masked_lm_positions": np.array([[1, 3], [2, 0]]),
        "word_starts": np.array([[1, 2, 4], [1, 2, 3]]),
        "word_ends": np.array([[2, 4, 5], [2, 3, 4]]),
    }
    return {name: every[name].astype("int32") for name in task.input}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    for name, (make, changes, data) in makers().items():
        keras.utils.set_random_seed(1)
        rng = np.random.default_rng(1)
        tokenizer = Tokenizer.from_vocab(WordPieceVocabulary(TOKENS))
        task = make(kb.BertEncoder(config(**changes)), tokenizer)
        for variable in task.trainable_weights:
            variable.assign(rng.normal(0, 1, variable.shape))
        task.save(output / name)
        inputs = inputs_of(task, rng)
        outputs = {k: np.asarray(v, np.float64) for k, v in task(inputs).items()}
        saved = {
            "inputs": {k: v.tolist() for k, v in inputs.items()},
            "outputs": {k: v.round(5).tolist() for k, v in outputs.items()},
        }
        if data is not None:
            saved["data"] = data
            saved["answers"] = list(predict(model=output / name, data=data))
        text = json.dumps(saved, ensure_ascii=False, separators=(",", ":"))
        (output / name / "outputs.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
