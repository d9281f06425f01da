"""Semantic roles from the command line to the server: trained, measured, asked and exported."""

import json

import numpy as np
import pytest
import tensorflow as tf

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.cli.main import main
from keras_bert.readers.predicates import PredicateSource
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.family import Family

PEOPLE, THINGS = ("ada", "max", "eva", "tom"), ("rain", "snow", "wind")
LABELS = ["O", "B-A0", "I-A0", "B-A1", "I-A1", "B-V", "I-V"]
WORDS = ["then", "said", "feared", "that"]


def sentence(rng):
    """Two predicates in one sentence, often of the same verb: who says what, and who else what."""
    one, other = rng.choice(PEOPLE, 2, replace=False)
    first, second = rng.choice(["said", "feared"], 2)
    words = ["then", one, first, "that", other, second, rng.choice(THINGS), "."]
    return words, ["* (A0*) (V*) (A1* * * *) *", "* * * * (A0*) (V*) (A1*) *"]


def write(path, count, seed):
    rng = make_rng(seed)
    lines = []
    for _ in range(count):
        words, columns = sentence(rng)
        base = ["-"] * len(words)
        base[2] = base[5] = "say"
        columns = [column.split() for column in columns]
        lines += [" ".join(row) for row in zip(words, base, *columns, strict=True)] + [""]
    path.write_text("\n".join(lines) + "\n")
    return path


FAMILY = Family(
    task="srl",
    words=[*WORDS, *PEOPLE, *THINGS],
    write=write,
    ending="props",
    train_count=60,
    dev_count=12,
    encoder={"num_hidden_layers": 1},
    flags="--epochs 6 --batch-size 8 --learning-rate 0.01 --dropout 0",
)


def test_a_run_learns_whose_arguments_are_asked_for(run, files, capsys):
    """Two equal verbs in a sentence have each its own."""
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["labels"] == LABELS and metrics["best_metric"] == "f1"
    assert metrics["dev"]["f1"] > 0.95 and metrics["dev"]["examples"] == 24
    assert set(metrics["dev"]["labels"]) == {"A0", "A1"}
    assert main(["evaluate", "--json", "--model", str(run), "--data", str(files["dev"])]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == metrics["dev"]
    config = json.loads((run / "model" / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]
    assert config["keras_bert"]["task"] == "semantic-roles"


TEXT = "Then  Éva said that max said snow."


@pytest.mark.usefixtures("eager")
def test_predict_gives_the_arguments_with_their_places(run, tmp_path, capsys):
    asked = tmp_path / "asked.jsonl"
    questions = [{"text": TEXT, "predicate": [start, start + 4]} for start in (10, 24)]
    asked.write_text("".join(json.dumps(question) + "\n" for question in questions))
    assert main(["predict", "--model", str(run), "--data", str(asked)]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["predicate"] == {"start": 10, "end": 14, "words": [2, 3], "text": "said"}
    arguments = [
        [(argument["label"], argument["text"]) for argument in answer["arguments"]]
        for answer in (first, second)
    ]
    assert arguments == [
        [("A0", "Éva"), ("A1", "that max said snow")],
        [("A0", "max"), ("A1", "snow")],
    ]
    assert first["tags"][2] == second["tags"][5] == "B-V" and second["tags"][2] == "O"
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({**second, "expected": None}) + "\n")
    (again,) = kb.predict(model=run, data=answers)
    assert again["tags"] == second["tags"] == again["expected"]


def test_an_export_answers_as_predict_does_in_texts_of_any_length(run, tmp_path):
    long = f"{TEXT[:-1]} " + "rain and " * 40 + "."
    places = [(TEXT, 10), (TEXT, 24), (long, 24), (long, long.index("and rain and"))]
    examples = [{"text": text, "predicate": [start, start + 3]} for text, start in places]
    for example in examples[:3]:
        example["predicate"][1] += 1
    expected = list(kb.predict(model=run, data=examples))
    version = kb.export(model=run, output=tmp_path / "served")
    serve = tf.saved_model.load(str(version)).signatures["serving_default"]
    outputs = serve(
        text=tf.constant([text for text, _ in places]),
        predicate_start=tf.constant([start for _, start in places]),
        predicate_end=tf.constant([start + 1 for _, start in places]),  # widened to whole words
    )
    for number, answer in enumerate(expected):
        length = int(outputs["lengths"][number])
        assert length == len(answer["words"])
        tags = [tag.decode() for tag in outputs["tags"][number].numpy()[:length]]
        assert tags == answer["tags"]
        np.testing.assert_allclose(outputs["scores"][number][:length], answer["scores"], atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="A span must hold a word"):
        serve(text=["a  b"], predicate_start=[1], predicate_end=[2])


def test_sequences_repeat_the_predicate_and_find_it_in_every_window():
    tokenizer = make_tokenizer(["said", "rain"])
    words = ["rain"] * 30
    words[4], words[20] = "said", "unheard"  # of one token, and of seven
    tags = ["O"] * 30
    tags[4], tags[20] = "B-V", "B-A0"
    data = [
        {"words": words, "predicate": [place, place + 1], "tags": tags} for place in (4, 20)
    ] + [{"words": ["said"], "predicate": [0, 1], "tags": ["B-V"]}]
    for crf in (False, True):
        task = kb.SemanticRoleTagger(
            make_encoder(tokenizer, num_hidden_layers=1),
            tokenizer,
            labels=LABELS,
            max_length=20,
            crf=crf,
        )
        sequences = task.features(list(task.read(data)), labelled=True)
        assert sequences.weight_totals == {"logits": 61.0}  # every word once
        inputs, labels, weights = sequences.batch(np.arange(len(sequences)))
        ids, mask = inputs["input_ids"].numpy(), inputs["input_mask"].numpy()
        assert ids.shape[1] <= 20 and labels["logits"].shape == weights["logits"].shape == ids.shape
        vocabulary = tokenizer.vocabulary
        for row in range(len(sequences)):
            example = sequences.example_of_sequence[row]
            word = data[example]["words"][data[example]["predicate"][0]]
            pieces = list(tokenizer.tokenize([word])[0].numpy())
            start, end = (int(inputs[f"marked_{name}"][row, 0]) for name in ("starts", "ends"))
            separators = np.flatnonzero(ids[row] == vocabulary.sep_id)
            assert separators[-1] == mask[row].sum() - 1 and len(separators) == 2
            second = list(ids[row, separators[0] + 1 : separators[1]])
            assert second == pieces[: len(second)] and len(second) == min(len(pieces), 4)
            assert list(ids[row, start:end]) == (pieces if start < separators[0] else second)
            counted = ids[row][weights["logits"][row].numpy() > 0]
            assert vocabulary.sep_id not in counted and vocabulary.cls_id not in counted


@pytest.mark.usefixtures("eager")
def test_bad_input_is_named(run, files, tmp_path):
    for predicate, message in (
        ([1, 4], r'line 1: the span \[1, 4\], "hen", begins inside the word "Then"'),
        ([4, 6], r"line 1: the span \[4, 6\], .* has no word"),
    ):
        path = tmp_path / "asked.jsonl"
        path.write_text(json.dumps({"text": TEXT, "predicate": predicate}))
        with pytest.raises(InputError, match=message):
            list(kb.predict(model=run, data=path))
    with pytest.raises(InputError, match="`max_length` leaves no room for a text and its marked"):
        list(kb.predict(model=run, data=files["dev"], max_length=4))
    tags = tmp_path / "tags.jsonl"
    tags.write_text(json.dumps({"words": ["a", "b"], "predicate": [0, 1], "tags": ["X", "Y"]}))
    given = {"task": "srl", "model": files["encoder"], "output": tmp_path / "run"}
    with pytest.raises(InputError, match="has tags that do not name arguments, as O, B-A0"):
        kb.finetune(**given, train=tags, dev=tags)
    without_predicates = tmp_path / "none.props"
    without_predicates.write_text("rain -\n")
    with pytest.raises(InputError, match="no predicates|no examples|empty"):
        kb.finetune(**given, train=without_predicates, dev=without_predicates)
    with pytest.raises(ValueError, match="`labels` must be tags such as O, B-A0 and I-A0"):
        kb.SemanticRoleTagger(make_encoder(make_tokenizer()), labels=["NOUN", "VERB"])


def test_a_file_is_read_for_a_model_in_its_own_scheme(files):
    examples = list(PredicateSource(files["train"]))
    assert len(examples) == 120
    arguments = kb.SemanticRoleTagger.infer_arguments(examples)
    assert sorted(arguments["labels"]) == sorted(LABELS)
