"""Multiple choice: any number of choices an example, each a row of the encoder."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_bert import MultipleChoice
from keras_bert.checkpoints import load_task
from keras_bert.cli.main import main
from keras_bert.inputs.framing import frame
from keras_bert.tasks.outputs import Inference
from keras_bert.training.frozen import FrozenExamples, freeze
from tests.eagerly import eagerly
from tests.messages import raises_input_error
from tests.peers import torch, transformers
from tests.seeds import make_rng
from tests.small_model import encode, make_encoder, make_tokenizer

EXAMPLES = [
    ("a man sits", ["he stands", "he flies a kite away", "it"], 1),
    ("the dog", ["runs", "a b c"], 0),
    ("x " * 100, ["good " * 80, "bad", "y", "z z"], 3),
    ("", ["it is", "is it"], 1),
]


@pytest.fixture(scope="module")
def task():
    tokenizer = make_tokenizer()
    return MultipleChoice(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, dropout=0.0)


@pytest.fixture(scope="module")
def sequences(task):
    return task.features(list(task.read(EXAMPLES)), labelled=True)


def logits_alone(task, context, choices):
    """float (n,): the head over one row at a time, without an axis of choices."""
    tokenizer, logits = task.tokenizer, []
    for choice in choices:
        tokens = [tokenizer.tokenize([text]) for text in (context, choice)]
        row = frame(
            tokens,
            tokenizer=tokenizer,
            names=task.encoder.input_names,
            max_length=task.settings.max_length,
        )
        pooled = np.asarray(encode(task.encoder, row)["pooled_output"])
        logits.append((pooled @ task.classifier.kernel + task.classifier.bias)[0, 0])
    return np.array(logits)


@pytest.fixture(scope="module")
def expected(task):
    return [logits_alone(task, context, choices) for context, choices, _ in EXAMPLES]


@pytest.mark.usefixtures("eager")
def test_choices_are_rows_and_what_is_missing_is_out_of_the_question(task, sequences, expected):
    outputs = Inference(task, batch_size=3).outputs(sequences)["logits"]
    for logits, alone in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(logits[: len(alone)], alone, atol=1e-5)
        assert (logits[len(alone) :] == -10000).all()
    predictions = task.decode({"logits": outputs}, sequences)
    for answer, alone, (_, choices, label) in zip(predictions, expected, EXAMPLES, strict=True):
        assert answer["label"] == alone.argmax() and answer["expected"] == label
        assert answer["choice"] == choices[alone.argmax()]
        np.testing.assert_allclose(
            answer["probabilities"], np.exp(alone) / np.exp(alone).sum(), atol=1e-5
        )
    measures = task.official_metrics(predictions, sequences.examples)
    is_right = [
        alone.argmax() == label for alone, (_, _, label) in zip(expected, EXAMPLES, strict=True)
    ]
    assert measures["accuracy"] == np.mean(is_right)
    json.dumps(measures)
    assert len(task.errors(predictions, sequences.examples)) == 4 - sum(is_right)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("pooling", ["cls", "last+max+mean"])
def test_a_frozen_encoder_gives_the_head_the_same(pooling, task, sequences, tmp_path):
    """The head reads every choice's [CLS] or tokens, here of all layers, which it mixes."""
    mixed_task = MultipleChoice(
        make_encoder(task.tokenizer),
        task.tokenizer,
        dropout=0.0,
        pooling=pooling,
        layer_mix={"layer_norm_eps": None, "l2": 0.0},
    )
    features, head = freeze(mixed_task)
    frozen = FrozenExamples(sequences, features, head, batch_size=2, folder=tmp_path)
    (batch, _), (inputs, labels) = (
        next(iter(source.evaluation_batches(batch_size=4))) for source in (sequences, frozen)
    )
    order = np.argsort(sequences.lengths, kind="stable")
    assert labels["logits"].numpy().tolist() == [EXAMPLES[number][2] for number in order]
    whole = np.asarray(mixed_task(batch, training=False)["logits"])
    np.testing.assert_allclose(head(inputs)["logits"], whole, atol=1e-5)
    head.compile("sgd", mixed_task.default_losses(), jit_compile=False)
    losses = head.fit(inputs, labels, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.peers
def test_it_opens_in_transformers_with_the_same_logits_and_back(task, sequences, tmp_path):
    task.save(tmp_path / "ours")
    kind = transformers.BertForMultipleChoice
    their_model, info = kind.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    their_model.eval().save_pretrained(tmp_path / "theirs")
    task.tokenizer.save(tmp_path / "theirs")
    again = load_task(tmp_path / "theirs")
    assert type(again) is MultipleChoice
    (batch, _) = sequences.batch(tf.constant([0, 0]))
    arrays = {name: torch.tensor(x.numpy()).long() for name, x in batch.items()}
    with torch.no_grad():
        logits = their_model(
            arrays["input_ids"],
            attention_mask=arrays["input_mask"],
            token_type_ids=arrays["segment_ids"],
        ).logits.numpy()
    for model in (task, again):
        np.testing.assert_allclose(model(batch)["logits"], logits, atol=1e-5)


def test_bad_input(task, tmp_path):
    for item, message in (
        (("a", ["b"], 0), "Example 1 of those given: an example needs two or more choices"),
        (("a", ["b", " "], 0), "a choice without a word"),
        (("a", ["b", "c"], 2), "the label is 2, but there are 2 choices, numbered from 0"),
        (("a", ["b", "c"], "x"), "the label 'x'. It should be the number"),
        (("a", ["b", "c"]), "no label. It should be the number"),
    ):
        with raises_input_error(message):
            list(task.read([item]))
    with raises_input_error("room for 2 texts"):
        task.features(list(task.read(EXAMPLES)), max_length=4)


def test_a_run_learns_which_choice_is_right_and_is_measured_by_command(tmp_path, capsys):
    tokenizer = make_tokenizer(["good", "bad", "film", "plot"])
    tokenizer.vocabulary.save(tmp_path / "vocab.txt")
    config = make_encoder(tokenizer, num_hidden_layers=1, initializer_range=0.1).config
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    rng = make_rng(4)
    for name, count in (("train", 64), ("dev", 17)):
        records = []
        for _ in range(count):
            choices = [f"bad {rng.choice(['film', 'plot'])}"] * rng.integers(2, 4)
            label = int(rng.integers(len(choices)))
            choices[label] = f"good {rng.choice(['film', 'plot'])}"
            records.append({"context": "film", "choices": choices, "label": label})
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
    run, dev = str(tmp_path / "run"), str(tmp_path / "dev.jsonl")
    command = [
        *("finetune", "--task", "multiple-choice", "--train", str(tmp_path / "train.jsonl")),
        *("--dev", dev, "--output", run, "--architecture", str(tmp_path / "config.json")),
        *("--vocab", str(tmp_path / "vocab.txt"), "--max-length", "8", "--batch-size", "8"),
        *("--epochs", "2", "--learning-rate", "0.01"),
    ]
    assert main(command) == 0
    capsys.readouterr()
    with eagerly():
        assert main(["evaluate", "--json", "--model", run, "--data", dev]) == 0
    measures = json.loads(capsys.readouterr().out)
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert measures["accuracy"] == metrics["dev"]["accuracy"]
    with eagerly():
        assert main(["predict", "--model", run, "--data", dev]) == 0
    predictions = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    is_right = [answer["label"] == answer["expected"] for answer in predictions]
    assert len(is_right) == 17 and measures["accuracy"] == np.mean(is_right) > 0.8
