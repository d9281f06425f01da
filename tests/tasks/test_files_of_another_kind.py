"""Every task type names a file or folder of another kind, and reads long texts."""

import json

import pytest

from keras_bert import FillMask, Pretrainer, evaluate, finetune, predict
from keras_bert.base.errors import InputError
from keras_bert.tasks import finetuned_task_types, task_class
from tests.pretraining_folder import make_data_folder
from tests.small_model import make_encoder, make_tokenizer

_QUESTION = {"id": "1", "question": "who?", "answers": [{"text": "Ann", "answer_start": 3}]}
_PARAGRAPH = {"context": "by Ann Lee", "qas": [_QUESTION]}
FILES = {
    "classifier": "text\tlabel\na good film\tgood\na bad film\tbad\n",
    "pair-classifier": "text_a\ttext_b\tlabel\na man sits\ta man\tyes\na dog\ta cat\tno\n",
    "regression": "text_a\ttext_b\tscore\na man sits\ta man\t3.5\na dog\ta cat\t1\n",
    "multiple-choice": '{"context": "he", "choices": ["sits", "runs"], "label": 0}\n',
    "tagger": "anna B-PER\nruns O\n\nrome B-LOC\n",
    "semantic-roles": "anna - (A0*)\nruns run (V*)\n\nrome -\n",
    "question-answering": json.dumps({"data": [{"paragraphs": [_PARAGRAPH]}]}),
    "span-classifier": '{"words": ["in", "rome"], "spans": [[1, 2, "LOC"]]}\n',
    "coreference": '{"words": ["ada", "saw", "her"], "clusters": [[[0, 1], [2, 3]]]}\n',
    "text-embedding": "anchor\tpositive\na man sits\ta man\na dog\ta cat\n",
    "relation-classifier": (
        '{"words": ["ada", "in", "rome"], "head": [0, 1], "tail": [2, 3], "label": "in"}\n'
        '{"words": ["ada", "in", "rome"], "head": [2, 3], "tail": [0, 1], "label": "of"}\n'
    ),
}
# (the kind of the task, that of the file, the message).
REJECTED = [
    (
        "classifier",
        "pair-classifier",
        "no column has a usual name for the text. The possible columns are .*`text_column=",
    ),
    ("classifier", "tagger", "^Could not read FILE as labelled text: line 1 has one column"),
    (
        "pair-classifier",
        "classifier",
        "^Could not read FILE as pairs of texts: line 1 has 2 columns",
    ),
    ("pair-classifier", "regression", 'line 2: unknown label "3.5"'),
    ("regression", "pair-classifier", 'line 2: "yes" is not a score, a number'),
    ("multiple-choice", "question-answering", "line 1: no context, choices, label among the"),
    ("tagger", "classifier", 'line 2: the word "a good film" contains spaces, as most do'),
    ("tagger", "span-classifier", "line 1: no tags among the keys"),
    (
        "semantic-roles",
        "tagger",
        "line 1: the sentence has 2 predicates in column 2 and 0 columns of arguments",
    ),
    ("semantic-roles", "span-classifier", 'line 1: no "predicate" among the keys'),
    ("question-answering", "tagger", "line 1: not JSON .*. Expected SQuAD's JSON, or JSON Lines"),
    ("question-answering", "multiple-choice", 'line 1: no text under "question"'),
    ("span-classifier", "classifier", 'line 2: the word "a good film" contains spaces'),
    ("span-classifier", "relation-classifier", 'line 1: no "spans" among the keys'),
    ("coreference", "tagger", "^Could not read FILE as documents with coreference: line 1"),
    ("coreference", "span-classifier", 'line 1: no "clusters" among the keys'),
    ("text-embedding", "tagger", "has plain texts, which have no metric"),
    ("text-embedding", "multiple-choice", "the columns do not say what the texts are"),
    ("relation-classifier", "span-classifier", 'line 1: no "head" among the keys'),
]


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(["good", "film"])


@pytest.fixture(scope="module")
def files(tokenizer, tmp_path_factory):
    """The folder of a file a kind, an architecture and its vocabulary."""
    folder = tmp_path_factory.mktemp("files")
    for kind, content in FILES.items():
        (folder / kind).write_text(content)
    tokenizer.vocabulary.save(folder / "vocab.txt")
    config = make_encoder(tokenizer, num_hidden_layers=1).config
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    return folder


@pytest.fixture(scope="module")
def made(tokenizer, files):
    """A function that makes the untrained task of a kind, each once."""
    tasks = {}

    def make(kind):
        if kind not in tasks:
            resolved = task_class(kind).infer_arguments(list(task_class(kind).read(files / kind)))
            encoder = make_encoder(tokenizer, num_hidden_layers=1)
            tasks[kind] = task_class(kind)(encoder, tokenizer, **resolved)
        return tasks[kind]

    return make


def test_every_kind_is_looked_at():
    assert set(FILES) == {kind for kind, _, _ in REJECTED} == set(finetuned_task_types())


@pytest.mark.parametrize("kind, other, message", REJECTED)
def test_a_file_of_another_task_is_rejected_with_its_line(
    kind, other, message, files, made, tmp_path
):
    path = str(files / other)
    message = message.replace("FILE", path) if "FILE" in message else f"^{path}[,:]? {message}"
    with pytest.raises(InputError, match=message):
        finetune(
            task=kind,
            train=files / kind,
            dev=files / other,
            architecture=files / "config.json",
            vocab=files / "vocab.txt",
            output=tmp_path / "run",
        )
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match=message):
        evaluate(model=made(kind), data=files / other)


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory):
    return make_data_folder(
        tmp_path_factory.mktemp("rows") / "data", rows=4, eval_examples=2, shards=1
    )


NOT_PRE_TRAINED = (
    "contains a model of the task {}, but a data folder is for pre-trained models. Pass a file of "
    "labelled examples."
)


@pytest.mark.parametrize("kind", FILES)
def test_a_data_folder_is_not_for_a_model_of_labels(kind, made, data_folder):
    with pytest.raises(InputError, match=NOT_PRE_TRAINED.format(kind)):
        evaluate(model=made(kind), data=data_folder)


def test_a_data_folder_is_not_for_a_folder_of_such_a_model_which_is_named(
    made, data_folder, tmp_path
):
    made("tagger").save(tmp_path / "model")
    said = f"^{tmp_path / 'model'} {NOT_PRE_TRAINED.format('tagger')}"
    with pytest.raises(InputError, match=said):
        evaluate(model=tmp_path / "model", data=data_folder)


@pytest.mark.parametrize("kind", [FillMask, Pretrainer])
def test_labelled_files_are_not_for_a_model_that_was_pre_trained(kind, tokenizer, files, tmp_path):
    kind(make_encoder(tokenizer, num_hidden_layers=1), tokenizer).save(tmp_path / "model")
    for ask in (evaluate, predict):
        with pytest.raises(
            InputError,
            match=f"^{tmp_path / 'model'} contains a model of the task {kind.TASK_TYPE}, which "
            "does not read labelled files. Fine-tune it first.",
        ):
            ask(model=tmp_path / "model", data=files / "classifier")


LONG = "good film " * 10_000
ONE_WORD = "x" * 100_000


def test_a_tagger_tags_every_word_of_a_text_of_100000_characters(made):
    whole, part, word = predict(model=made("tagger"), text=[LONG, LONG[:1000], ONE_WORD])
    assert whole["words"] == LONG.split() and len(whole["tags"]) == 20_000
    assert whole["scores"][:100] == pytest.approx(part["scores"][:100], abs=1e-5)
    assert whole["ends"][-1] == len(LONG) - 1
    assert (word["words"], word["starts"], word["ends"]) == ([ONE_WORD], [0], [100_000])
    assert len(word["tags"]) == 1


def test_an_answer_is_a_token_of_a_context_of_100000_characters(made):
    contexts, questions = [LONG, ONE_WORD, "good film"], ["which film?", "which?", LONG]
    predictions = predict(model=made("question-answering"), question=questions, context=contexts)
    for answer, context in zip(predictions, contexts, strict=True):
        assert answer["answer"] == context[answer["start"] : answer["end"]] != ""


def test_spans_are_found_in_all_of_a_text_of_100000_characters(tokenizer):
    task = task_class("span-classifier")(
        make_encoder(tokenizer, num_hidden_layers=1),
        tokenizer,
        labels=["LOC"],
        flat=True,
        threshold=1e-6,
    )
    whole, word = predict(model=task, text=[LONG, ONE_WORD])
    assert whole["words"] == LONG.split()
    assert all(LONG[span["start"] : span["end"]] == span["text"] for span in whole["spans"])
    assert whole["spans"][0]["start"] < 100 and whole["spans"][-1]["end"] > len(LONG) - 100
    assert [span["words"] for span in word["spans"]] == [[0, 1]]


def test_choices_of_100000_characters_are_cut_and_answered(made):
    short = LONG[:1000]
    whole, part, _ = predict(
        model=made("multiple-choice"),
        data=[(LONG, [LONG, "film"]), (short, [short, "film"]), (ONE_WORD, [ONE_WORD, "film"])],
    )
    assert whole["probabilities"] == pytest.approx(part["probabilities"], abs=1e-5)
