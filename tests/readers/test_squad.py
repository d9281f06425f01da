"""Reading questions: every form, every sentence about a bad one, and answers at wrong offsets."""

import json

import pytest

from keras_bert.readers.sources import parsed_json
from keras_bert.readers.squad import QuestionSource, nearest, question_warnings
from tests.messages import raises_input_error
from tests.readers.test_labelled_texts import pipe_in
from tests.readers.test_tfds import NUMBER, TEXT, prepare, several

CONTEXT = "The cat saw the dog. The dog ran."
DOG = {"text": "dog", "answer_start": 16}


def qa(**changes):
    return {"id": "q1", "question": "Who ran?", "answers": [DOG], **changes}


def squad(*questions, context=CONTEXT, **top):
    return {
        "version": "1.1",
        **top,
        "data": [{"paragraphs": [{"context": context, "qas": questions}]}],
    }


@pytest.fixture
def write(tmp_path):
    def write(content, name="train.json"):
        path = tmp_path / name
        if isinstance(content, dict):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def read(path, **options):
    return list(QuestionSource(path, **options))


def as_tuples(examples):
    return [
        (e.id, e.question, e.context, e.answers and [(a.text, a.start) for a in e.answers])
        for e in examples
    ]


EXPECTED = [("q1", "Who ran?", CONTEXT, [("dog", 16)])]


def test_squad_on_one_line_or_indented_and_json_lines_give_the_same(write):
    whole = squad(qa())
    row = {**qa(), "context": CONTEXT}
    for content in (
        json.dumps(whole),
        "\n" + json.dumps(whole, indent=2),
        '{"data":\n' + json.dumps(whole["data"]) + "}\r\n",
        b"\xef\xbb\xbf" + json.dumps(whole).encode(),
        json.dumps(row),
        f"\n{json.dumps(row)}\r\n\n",
    ):
        assert as_tuples(read(write(content))) == EXPECTED
    columns = {"text": ["dog"], "answer_start": [16]}
    assert as_tuples(read(write({**row, "answers": columns}))) == EXPECTED


def test_a_file_on_one_line_is_parsed_once(write, monkeypatch):
    """SQuAD's files are, of up to 42 MB; a text as an object takes several times as much memory."""
    parsed = []
    monkeypatch.setattr(
        "keras_bert.readers.squad.parsed_json",
        lambda text: parsed.append(text) or parsed_json(text),
    )
    assert as_tuples(read(write(json.dumps(squad(qa())) + "\n\n"))) == EXPECTED
    assert len(parsed) == 1


def test_what_a_file_was_taken_for_is_said(write):
    assert QuestionSource(write(squad(qa()))).description.endswith("SQuAD JSON (version 1.1)")
    source = QuestionSource(write({**qa(), "context": CONTEXT}))
    assert source.description.endswith("JSON Lines, a question and its context per line")
    assert source.kind == "jsonl"


def test_version_2_with_questions_without_an_answer(write):
    unanswerable = qa(id="q2", answers=[], is_impossible=True, plausible_answers=[DOG])
    examples = read(write(squad(qa(is_impossible=False), unanswerable, version="v2.0")))
    assert [example.answers for example in examples][1] == ()
    assert examples[0].located.start == 16 and examples[1].located is None
    # Other programs leave the word out, or the empty list.
    assert read(write(squad(qa(answers=[]))))[0].answers == ()
    without = {"id": 7, "question": "?", "is_impossible": True}
    question = read(write(squad(without)))[0]
    assert (question.id, question.answers) == ("7", ())


def test_json_lines_are_read_line_by_line(monkeypatch):
    def lines():
        yield json.dumps({"question": "a?", "context": "b"}).encode() + b"\n"
        raise AssertionError("a second line was asked for")

    pipe_in(monkeypatch, lines())
    source = QuestionSource("-", need_labels=False)
    assert source.name == "standard input"
    assert next(iter(source)).question == "a?"


def test_questions_from_python():
    pairs = [("who?", "a text"), ("where?", "")]
    examples = list(QuestionSource(pairs, need_labels=False))
    assert as_tuples(examples) == [(None, "who?", "a text", None), (None, "where?", "", None)]
    rows = [{**qa(), "context": CONTEXT}]
    assert as_tuples(QuestionSource(rows)) == EXPECTED
    with raises_input_error('the given questions, question 1: no "answers"'):
        QuestionSource(pairs)
    for bad in (["text"], [("a", "b", "c")], [("a", 1)]):
        with pytest.raises(ValueError, match="must be pairs of a question and its context"):
            QuestionSource(bad, need_labels=False)


@pytest.mark.parametrize(
    ("start", "moved"), [(0, 16), (17, 16), (-5, 16), (24, 25), (29, 25), (1000, 25)]
)
def test_an_answer_at_a_wrong_offset_is_moved_or_dropped(write, start, moved):
    path = write(squad(qa(answers=[{"text": "dog", "answer_start": start}])))
    assert read(path)[0].located.start == moved
    (dropped,) = read(path, wrong_offsets="drop")
    assert dropped.located is None and dropped.answers[0].text == "dog"
    for examples, said in ((read(path), "1 moved"), ([dropped], "0 moved")):
        (note,) = question_warnings(examples)
        assert "article 1, paragraph 1, question 1, id q1: 1 answer not at" in note and said in note


def test_nearest_is_what_a_search_through_all_places_finds():
    text, context = "ab", "abab  ab aab"
    places = [place for place in range(len(context)) if context.startswith(text, place)]
    for start in range(-2, 15):
        position = nearest(text, start, context)
        assert abs(position - max(0, start)) == min(abs(place - max(0, start)) for place in places)
    assert nearest("ba ", 0, context) is None


def test_an_answer_that_stands_nowhere_is_kept_to_compare_with(write):
    answers = [{"text": "a horse", "answer_start": 4}, {"text": " ", "answer_start": 3}]
    (example,) = read(write(squad(qa(answers=answers))))
    assert [answer.start for answer in example.answers] == [None, None]
    assert question_warnings([example])[0].endswith("2 not used in training.")
    (example,) = read(write(squad(qa(answers=[*answers, DOG]))))
    assert example.located.text == "dog"


def test_warnings_are_told_with_place_and_count(write):
    questions = [qa(), qa(), qa(id="q2", question=" "), qa(id="q3")]
    lines = question_warnings(read(write(squad(*questions))))
    assert [line.partition("train.json, ")[2] for line in lines] == [
        "article 1, paragraph 1, question 3, id q2: 1 question without a word, or about a context "
        "without one.",
        'article 1, paragraph 1, question 1, id q1: 1 id of several questions ("q1").',
    ]
    assert question_warnings(read(write(squad(qa())))) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty. At least one line of text is needed"),
        (b'{"data": [\n{]}', "line 2: not JSON ... Expected SQuAD's JSON, or JSON Lines"),
        (b"\n\nwords\n", "line 3: not JSON"),
        (b"[1]", 'the file has no list of objects under "data"'),
        (b'{"data": 3}', 'the file has no list of objects under "data"; SQuAD\'s JSON is'),
        (b'{"data": [{}]}', 'article 1 has no list of objects under "paragraphs"'),
        (b'{"data": [{"paragraphs": [{"context": "a"}]}]}', 'paragraph 1 has no list of ..."qas"'),
        (b'{"data": [{"paragraphs": [{"qas": []}]}]}', 'paragraph 1: no text under "context"'),
        (squad({"id": "x"}), 'question 1, id x: no text under "question"'),
        (squad(qa(id=[])), '"id" should be a string or a number'),
        (squad(qa(question="\ud800")), '"question" contains a NUL or half a surrogate pair'),
        (squad({"id": "x", "question": "?"}), 'id x: no "answers"; for training and evaluation'),
        (squad(qa(answers="dog")), '"answers" should be a list of'),
        (squad(qa(answers=[7])), 'an answer should be {"text"'),
        (squad(qa(answers=[{"text": "dog", "answer_start": "4"}])), 'an answer should be {"text"'),
        (squad(qa(is_impossible=True)), '"is_impossible" is true, but there are answers'),
        (squad(qa(answers=[], is_impossible=False)), "is false, but there are no answers"),
        (b'{"question": "a", "context": "b", "answers": []}\n[]', "line 2: not a JSON object"),
        (b'{"question": "a"}\n', 'line 1: no text under "context"'),
        (b'{"question": "a"}\n\xff', "line 1: no text"),
    ],
)
def test_a_bad_file_is_a_sentence_with_its_place(write, content, message):
    with raises_input_error(f"train.json...{message}"):
        read(write(content))


def test_a_missing_file_is_a_sentence(tmp_path):
    with raises_input_error("does not exist"):
        QuestionSource(tmp_path / "none.json")


def test_answers_are_not_asked_for_where_one_predicts(write):
    examples = read(write(squad({"id": "x", "question": "?"})), need_labels=False)
    assert examples[0].answers is None
    assert read(write(squad(qa())), need_labels=False)[0].located.text == "dog"


def test_xquad_is_read_whole_and_its_offsets_are_right(shared_data):
    examples = read(shared_data / "xquad" / "en.json")
    assert len(examples) == 1190 and len({example.context for example in examples}) == 240
    for example in examples:
        answer = example.located
        assert example.context.startswith(answer.text, answer.start)
    assert question_warnings(examples) == []


def test_other_names_are_said_by_fields(write):
    row = {"key": "q1", "query": "Who ran?", "passage": CONTEXT, "gold": [DOG]}
    fields = "id=key,question=query,context=passage,answers=gold"
    assert as_tuples(read(write(row), fields=fields)) == EXPECTED
    with raises_input_error('line 1: no text under "query"'):
        read(write({"passage": "a"}), fields="question=query,context=passage")
    with raises_input_error("is SQuAD's JSON, whose names are known"):
        read(write(squad(qa())), fields=fields)
    with raises_input_error("`fields` is for files; the given questions"):
        QuestionSource([("a", "b")], fields=fields)


def test_a_prepared_tfds_split(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    answers = {"text": TEXT, "answer_start": NUMBER}
    features = {
        "id": TEXT,
        "question": TEXT,
        "context": TEXT,
        "answers": several({"featuresDict": {"features": answers}}),
    }
    row = {"id": "q1", "question": "Who ran?", "context": CONTEXT}
    rows = [
        {**row, "answers/text": ["dog", "dog"], "answers/answer_start": [16, 25]},
        {**row, "id": "q2", "answers/text": [], "answers/answer_start": []},
    ]
    prepare(tmp_path, "squad", features, rows)
    source = QuestionSource("tfds:squad:train")
    assert "a prepared tfds split" in source.description
    examples = list(source)
    assert [answer.start for answer in examples[0].answers] == [16, 25]
    assert (examples[1].id, examples[1].answers) == ("q2", ())
    assert "tfds:squad:train, record 2, id q2: bad" in str(examples[1].error("bad"))


def test_an_answer_without_a_start_is_found_if_it_is_there_once(write):
    answers = ["saw", {"text": "The dog ran"}]
    (example,) = read(write(squad(qa(answers=answers))))
    assert [a.start for a in example.answers] == [8, 21]
    assert question_warnings([example]) == []
    (example,) = read([{**qa(answers={"text": ["saw"]}), "context": CONTEXT}])
    assert example.located.start == 8


def test_an_answer_without_a_start_that_is_there_twice_is_counted_or_an_error(write):
    path = write(squad(qa(answers=["dog"]), qa(id="q2", answers=["saw", "bird"])))
    source = QuestionSource(path)
    first, second = source
    assert [a.start for e in (first, second) for a in e.answers] == [None, 8, None]
    assert [a.text for a in first.answers] == ["dog"]  # predictions are compared with it
    (note,) = source.notes()
    assert '2 answers without "answer_start" not used in training (' in note
    assert "question 1, id q1: in its context at characters 16 and 25; " in note
    assert "question 2, id q2: not in its context)" in note
    with raises_input_error('the answer "dog" has no "answer_start", and is in its context at'):
        read(path, missing="error")
