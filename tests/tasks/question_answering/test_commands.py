"""Question answering from files to answers: training, figures, commands and serving."""

import contextlib
import io
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import QuestionAnswerer
from keras_bert.checkpoints import load_task
from keras_bert.cli.main import main
from keras_bert.tasks.outputs import Inference
from keras_bert.training.finetune import finetune
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

KINDS = {
    "town": ["rome", "paris", "oslo", "bonn"],
    "colour": ["red", "green", "blue", "white"],
    "animal": ["cat", "dog", "cow", "hen"],
}
FILLERS = ["there", "is", "and", "so", "it", "goes"]
WORDS = [*KINDS, *(word for words in KINDS.values() for word in words), *FILLERS, "which"]


def paragraph(rng):
    """A text with a word each of some kinds, and a question after one of all kinds."""
    kinds = rng.permutation(list(KINDS))[: rng.integers(1, 4)]
    words = {kind: str(rng.choice(KINDS[kind])) for kind in kinds}
    context = " ".join(rng.permutation([*words.values(), *rng.choice(FILLERS, 7)]))
    asked = str(rng.choice(list(KINDS)))
    answers = []
    if asked in words:
        answers = [{"text": words[asked], "answer_start": context.index(words[asked])}]
    question = {"id": f"{rng.integers(2**40)}", "question": f"which {asked}"}
    return {"context": context, "qas": [{**question, "answers": answers}]}


def write(path, seed, count):
    rng = make_rng(seed)
    data = [{"paragraphs": [paragraph(rng) for _ in range(count)]}]
    path.write_text(json.dumps({"version": "v2.0", "data": data}))
    return str(path)


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    tokenizer = make_tokenizer(WORDS)
    tokenizer.vocabulary.save(folder / "vocab.txt")
    config = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 40,
        "initializer_range": 0.2,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return {
        "task": "question-answering",
        "train": write(folder / "train.json", 1, 800),
        "dev": write(folder / "dev.json", 2, 60),
        "architecture": str(folder / "config.json"),
        "vocab": str(folder / "vocab.txt"),
        "max_length": 13,  # two windows for many paragraphs
        "max_answer_length": 3,
        "batch_size": 32,
        "epochs": 3,
        "learning_rate": 0.01,
    }


@pytest.fixture(scope="module")
def run(given, tmp_path_factory):
    """(the run's folder, its metrics, what the command printed)."""
    output, printed = tmp_path_factory.mktemp("questions") / "run", io.StringIO()
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        assert main(["finetune", *flags, "--output", str(output)]) == 0
    return output, json.loads((output / "metrics.json").read_text()), printed.getvalue()


def test_it_learns_and_tunes_the_threshold(run):
    output, metrics, printed = run
    dev = metrics["dev"]
    assert f"60 dev questions ({dev['NoAns_total']} without an answer)." in printed
    assert "on the 60 dev examples: exact " in printed
    assert dev["total"] == 60 and 0 < dev["NoAns_total"] < 60
    assert dev["f1"] > 0.5 and dev["f1"] >= dev["NoAns_total"] / 60
    # The threshold is the best one, and the answers obey it.
    assert dev["f1"] == pytest.approx(dev["best_f1"])
    task = load_task(output / "model")
    assert isinstance(task.settings.null_threshold, float)
    settings = task.settings
    assert (settings.max_length, settings.max_answer_length, settings.stride) == (13, 3, None)


@pytest.mark.usefixtures("eager")
def test_evaluate_and_predict_from_the_command_line(run, given, capsys):
    output, metrics, _ = run
    model = ["--model", str(output)]
    assert main(["evaluate", "--json", *model, "--data", given["dev"], "--show-errors", "2"]) == 0
    evaluation, expected = json.loads(capsys.readouterr().out), dict(metrics["dev"])
    assert sum(one["examples"] for one in evaluation.pop("calibration")) == 60
    assert sum(one["examples"] for one in expected.pop("calibration")) == 60
    assert evaluation == pytest.approx(expected)
    context = "There is a GREEN cat, and so it goes: Rome!"
    flags = ["--question", "which Town?", "--context", context]
    assert main(["predict", *model, *flags]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert context[answer["start"] : answer["end"]] == answer["answer"]
    assert set(answer) == {*("question", "answer", "start", "end", "score", "null_score", "n_best")}


def test_the_command_has_the_flags_of_the_kind(given, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["finetune", "--task", "question-answering", "--help-all"])
    shown = capsys.readouterr().out
    for flag in ("--stride", "--n-best", "--max-question-length", "--null-threshold"):
        assert flag in shown
    assert "384, or the positions" in " ".join(shown.split()) and "--label-column" not in shown


def test_bad_files_are_sentences(given, tmp_path, capsys):
    flags = {"task": "question-answering", "output": tmp_path / "run"}
    flags |= {name: given[name] for name in ("train", "dev", "architecture", "vocab")}
    without = tmp_path / "without.json"
    question = {"id": "q", "question": "a"}
    paragraphs = [{"context": "b", "qas": [question]}]
    without.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    with raises_input_error('without.json, article 1, ..., id q: no "answers"'):
        finetune(**{**flags, "train": without})
    question["answers"] = []
    without.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    with raises_input_error("without.json has no question with an answer in its"):
        finetune(**{**flags, "train": without})
    with raises_input_error("`max_length` must be at least 5. Received: 4."):
        finetune(**{**flags, "max_length": 4})
    command = [f"--{name}={value}" for name, value in flags.items()]
    assert main(["finetune", *command, "--wrong-offsets", "keep"]) == 2
    assert "--wrong-offsets is 'keep'. It should be move or drop." in capsys.readouterr().err


HARD = [
    ("which é town?", "Zoë and Łukasz live in 北京 😀, the ｆｕｌｌ-width ＴＯＷＮ. " * 6),
    ("where", "in rome"),
    ("", ""),
    ("which animal", "there is a red dog and it goes to oslo " * 40),
    (
        "a question of far too many words to leave a row any room for its text " * 3,
        "in Cafe\u0301s",
    ),
    ("where", " \u00a0\u200b"),
    ("who", "naïve 👩‍👩‍👧 emoji\u0301 x"),
]


def random_task(**settings):
    tokenizer = make_tokenizer(WORDS)
    settings = {"max_length": 24, "stride": 6, "max_answer_length": 4, **settings}
    return QuestionAnswerer(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, **settings)


def asked(inference, questions):
    """The answers to (question, context) pairs, by what `predict` is made of."""
    task = inference.task
    return inference.predict_sequences(task.features(list(task.read(questions, labelled=False))))


@pytest.fixture(scope="module")
def served():
    """The `Inference` of a task with random weights, and its signatures; tests/exports has more."""
    task = random_task(null_threshold=-0.5)
    return Inference(task, batch_size=32), task.signatures()


def check_served(served, inference, questions):
    """Compares what the function of a signature says with what `predict` does."""
    expected = asked(inference, questions)
    texts = [tf.constant([pair[part] for pair in questions], tf.string) for part in (0, 1)]
    outputs = {name: x.numpy() for name, x in served(question=texts[0], context=texts[1]).items()}
    assert set(outputs) == {"answer", "start", "end", "score", "null_score"}
    assert outputs["start"].shape == (len(questions),)
    assert [text.decode() for text in outputs["answer"]] == [a["answer"] for a in expected]
    for name in ("start", "end"):
        assert outputs[name].tolist() == [answer[name] for answer in expected]
    for name in ("score", "null_score"):
        np.testing.assert_allclose(outputs[name], [answer[name] for answer in expected], atol=2e-5)
    return expected


def test_what_is_served_is_what_predict_answers(served):
    inference, signatures = served
    function = signatures["serving_default"].function
    answers = check_served(function, inference, HARD)
    assert {bool(answer["answer"]) for answer in answers} == {True, False}
    for questions in (HARD[:1], HARD[2:3], []):
        check_served(function, inference, questions)


@pytest.mark.usefixtures("eager")
def test_serving_without_a_threshold_always_answers():
    inference = Inference(random_task(), batch_size=32)
    function = inference.task.signatures()["serving_default"].function
    answers = check_served(function, inference, HARD)
    without_a_token = [bool(answer["answer"]) for answer in answers]
    assert without_a_token == [number not in (2, 5) for number in range(len(HARD))]


@pytest.mark.usefixtures("eager")
def test_ids_give_the_logits_of_windows(served):
    inference, signatures = served
    task = inference.task
    sequences = task.features(list(task.read(HARD[:1], labelled=False)))
    by_ids = signatures["ids"].function(
        **sequences.inputs(*sequences.take(tf.range(len(sequences))))
    )
    for name, logits in inference.outputs(sequences).items():
        for row, length in enumerate(sequences.lengths):
            np.testing.assert_allclose(by_ids[name][row, :length], logits[row][:length], atol=2e-5)


def test_a_context_a_question_is_asked_for(served):
    _, signatures = served
    with pytest.raises(tf.errors.InvalidArgumentError, match="Give a context for each question"):
        signatures["serving_default"].function(
            question=tf.constant(["a", "b"]), context=tf.constant(["c"])
        )


def test_settings_live_through_keras_own_file(served, tmp_path):
    task = served[0].task
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    assert again.get_config() == task.get_config()
    assert (again.settings.stride, again.settings.null_threshold) == (
        6,
        task.settings.null_threshold,
    )


@pytest.fixture(scope="module")
def labelled():
    """A task, rows of a question with and one without an answer, and logits out of the air."""
    task = random_task()
    context = "in oslo there is a red dog " * 3
    gold = {"text": "oslo", "answer_start": 3}
    questions = [
        {"id": "a", "question": "which town", "context": context, "answers": [gold]},
        {"id": "b", "question": "which animal", "context": "so", "answers": []},
    ]
    sequences = task.features(list(task.read(questions)), labelled=True)
    rng = make_rng(0)
    outputs = {
        name: [rng.normal(size=length + 3).astype(np.float32) for length in sequences.lengths]
        for name in ("start_logits", "end_logits")
    }
    return task, sequences, outputs


def test_n_best_answers_are_tokens_of_the_context_by_their_scores(labelled):
    task, sequences, outputs = labelled
    task.update_settings(n_best=4)
    try:
        answers = task.decode(outputs, sequences)
    finally:
        task.update_settings(n_best=1)
    for answer, example in zip(answers, sequences.examples, strict=True):
        best = answer["n_best"]
        assert (answer["id"], answer["question"]) == (example.id, example.question)
        assert answer["expected"] == [gold.text for gold in example.answers]
        assert answer["score"] == best[0]["score"]
        assert [b["score"] for b in best] == sorted((b["score"] for b in best), reverse=True)
        for token in best:
            assert example.context[token["start"] : token["end"]] == token["answer"]
    assert [len(answer["n_best"]) for answer in answers] == [4, 1]  # one token has one piece
    assert "n_best" not in task.decode(outputs, sequences)[0]


def test_the_threshold_is_tuned_unless_it_was_given(labelled):
    task, sequences, outputs = labelled
    for given in (None, 0.5):
        other = random_task(null_threshold=given)
        other.tune_threshold(outputs, sequences)
        other.tune_threshold(outputs, sequences)  # after another epoch, say
        assert (other.settings.null_threshold == 0.5) == (given is not None)
        answers = other.decode(outputs, sequences)
        assert [not a["answer"] for a in answers] == [
            a["null_score"] > other.settings.null_threshold for a in answers
        ]
        metrics = other.official_metrics(answers, sequences.examples)
        assert metrics["NoAns_total"] == 1 and metrics["best_f1"] >= metrics["f1"]
    some = [sequences.examples[0]]
    task.tune_threshold(outputs, task.features(some))  # every question has an answer
    assert task.settings.null_threshold is None


def test_version_1_is_told_by_its_questions(labelled):
    task, sequences, _ = labelled
    answers = [{"answer": "the Oslo", "score": 1.0, "null_score": 0.0}]
    metrics = task.official_metrics(answers, sequences.examples[:1])
    bins = metrics.pop("calibration")
    assert metrics == {"exact": 1.0, "f1": 1.0, "total": 1, "examples": 1}
    assert bins[-1] == {"confidence": 1.0, "accuracy": 1.0, "examples": 1}


def test_errors_are_told_the_most_confident_first():
    task = random_task()
    examples = list(
        task.read(
            [
                {
                    "question": "which?",
                    "context": "a cat",
                    "answers": [{"text": "cat", "answer_start": 2}],
                },
                {"question": "who?", "context": "a cat", "answers": []},
                {"question": "right?", "context": "a cat", "answers": []},
            ]
        )
    )
    answers = [{"answer": "cat", "score": 0.9}, {"answer": "a cat", "score": 0.5}]
    answers += [{"answer": "", "score": 0.8}]
    (error,) = task.errors(answers, examples)
    assert error == {
        **{"line": "question 2", "question": "who?", "expected": [], "predicted": "a cat"},
        **{"f1": 0.0, "score": 0.5},
    }
    shown = 'question 2: who?\n  true: no answer, predicted: "a cat" (0.50)'
    assert task.describe_error(error) == shown
