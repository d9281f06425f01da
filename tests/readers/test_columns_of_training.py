"""The columns that other tasks than classifiers remember, and where they are not there."""

import json

import pytest

from keras_bert.readers.choices import ChoiceSource
from keras_bert.readers.sentences import TaggedSource
from keras_bert.readers.spans import SpanPairSource
from keras_bert.readers.squad import QuestionSource
from tests.messages import raises_input_error
from tests.readers.test_labelled_texts import pipe_in

pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")


@pytest.fixture
def write(tmp_path):
    def write(name, rows):
        path = tmp_path / name
        text = rows if isinstance(rows, str) else "".join(f"{json.dumps(row)}\n" for row in rows)
        path.write_text(text)
        return path

    return write


def test_questions(write):
    answer = {"text": "ann", "answer_start": 3}
    rows = [{"query": "who?", "passage": "by ann", "replies": [answer]}]
    train = QuestionSource(
        write("a.jsonl", rows), fields="question=query,context=passage,answers=replies"
    )
    assert train.schema["context"] == ["passage"] and train.schema["id"] == ["id"]
    for data in (write("b.jsonl", rows), write("c.json", json.dumps(rows))):
        (question,) = QuestionSource(data, schema=train.schema)
        assert (question.question, question.located.text) == ("who?", "ann")
    usual = [{"question": "who?", "context": "by ann", "answers": [answer]}]
    (question,) = QuestionSource(write("d.jsonl", usual), schema=train.schema)
    assert question.context == "by ann"
    assert QuestionSource(write("d.jsonl", usual)).schema is None
    whole = {
        "data": [
            {
                "paragraphs": [
                    {"context": "by ann", "qas": [{"question": "who?", "answers": [answer]}]}
                ]
            }
        ]
    }
    (question,) = QuestionSource(write("squad.json", json.dumps(whole)), schema=train.schema)
    assert question.context == "by ann"


def test_relations(write):
    rows = [{"tokens": ["ada", "in", "rome"], "from": 0, "to": 1, "place": [2, 3], "kind": "in"}]
    fields = "words=tokens,head=from|to,tail=place,label=kind"
    train = SpanPairSource(write("a.jsonl", rows), fields=fields)
    assert train.schema["head"] == ["from", "to"]
    for data in (write("b.jsonl", rows), write("c.jsonl", [{**rows[0], "kind": None}])):
        (pair,) = SpanPairSource(data, schema=train.schema, need_labels="c." not in str(data))
        assert (pair.words, pair.head[:2]) == (("ada", "in", "rome"), (0, 1))
    usual = [{"words": ["a", "b"], "head": [0, 1], "tail": [1, 2], "label": "x"}]
    (pair,) = SpanPairSource(write("d.jsonl", usual), schema=train.schema)
    assert pair.label == "x"


def test_choices(write):
    table = "ask,a,b,right,note\n" + "which one?,red,blue,1,\n" * 2
    train = ChoiceSource(write("a.csv", table), fields="context=ask,choices=a|b,label=right")
    assert train.schema == {"context": ["ask"], "choices": ["a", "b"], "label": ["right"]}
    for data in (write("b.csv", table), pandas.read_csv(write("b.csv", table))):
        first, _ = ChoiceSource(data, schema=train.schema)
        assert (first.context, first.choices, first.label) == ("which one?", ("red", "blue"), 1)
    gaps = write("c.csv", "ask,a,b,right\nwhich?,x,y,1\n,x,y,0\nwhat?,x,y,\n")
    for data in (gaps, pandas.read_csv(gaps)):
        source = ChoiceSource(data, schema=train.schema)
        assert [(e.context, e.label) for e in source] == [("which?", 1)]
        assert [note.partition(": ")[2] for note in source.notes()] == [
            "1 row without a context, left out.",
            "1 row without a label, left out.",
        ]
        with raises_input_error("a row without a context"):
            list(ChoiceSource(data, schema=train.schema, missing="error"))
    cells = write("d.csv", """context,choices,label\nwhich?,"['x', 'y']",0\n""")
    for data in (cells, pandas.read_csv(cells)):
        (example,) = ChoiceSource(data)
        assert example.choices == ("x", "y")


def test_words_and_tags(write):
    rows = [{"w": ["ada", "ran"], "t": ["B-PER", "O"], "words": ["x"], "tags": ["O"]}]
    train = TaggedSource(write("a.jsonl", rows), word_column="w", tag_column="t")
    for data in (write("b.jsonl", rows), pandas.DataFrame(rows)):
        (sentence,) = TaggedSource(data, schema=train.schema)
        expected = ("ada", "ran") if not isinstance(data, pandas.DataFrame) else ("x",)
        assert sentence.words == expected
    line = "1\tado\tada\tPROPN\tNNP" + "\t_" * 5 + "\n"
    train = TaggedSource(write("a.conllu", line), tag_column="xpos")
    assert train.schema == {"word": ["FORM"], "tag": ["XPOS"]}
    (sentence,) = TaggedSource(write("b.conllu", line), schema=train.schema)
    assert sentence.tags == ("NNP",)
    columns = "ada NNP B-PER\nran VBD O\n"
    train = TaggedSource(write("a.conll", columns), tag_column=2)
    assert train.schema == {"word": [1], "tag": [2], "width": [3]}
    (sentence,) = TaggedSource(write("b.conll", columns), schema=train.schema)
    assert sentence.tags == ("NNP", "VBD")


LONG = "Sentence #,Word,POS,Tag\nSentence: 1,Ann,NNP,B-PER\n,left,VBD,O\nSentence: 2,Bo,NNP,B-PER\n"


def test_one_word_per_row(write, monkeypatch):
    expected = [(("Ann", "left"), ("B-PER", "O")), (("Bo",), ("B-PER",))]
    path = write("a.csv", LONG)
    tabs = write("a.tsv", LONG.replace(",", "\t"))
    bare = write("a", LONG)
    for data in (
        path,
        tabs,
        bare,
        pandas.read_csv(path),
        pandas.read_csv(path).ffill().to_dict("records"),
    ):
        source = TaggedSource(data)
        sentences = [*source]
        assert [(s.words, s.tags) for s in sentences] == expected
        assert 'one word per row in "Word"' in source.description
        assert source.schema == {"word": ["Word"], "tag": ["Tag"], "sentence": ["Sentence #"]}
        of_pos = TaggedSource(data, tag_column="POS")
        assert [s.tags for s in of_pos] == [("NNP", "VBD"), ("NNP",)]
        assert [s.tags for s in TaggedSource(data, schema=of_pos.schema)][1] == ("NNP",)
    assert sentences[0].lines == (1, 2)
    assert [s.lines for s in TaggedSource(path)] == [(2, 3), (4,)]
    other = LONG.replace("Sentence #", "no").replace("Word", "form")
    path = write("b.csv", other)
    for data in (path, pandas.read_csv(path)):
        assert [s.words for s in TaggedSource(data, sentence_column="no")] == [
            w for w, _ in expected
        ]
    for lines in (LONG, LONG.replace(",", "\t")):
        pipe_in(monkeypatch, (line.encode() for line in lines.splitlines(keepends=True)))
        assert [(s.words, s.tags) for s in TaggedSource("-")] == expected
    of_lists = write("d.csv", """words\n"['Ann', 'left']"\n"['Bo']"\n""")
    source = TaggedSource(of_lists, need_labels=False)
    assert [(s.words, s.tags) for s in source] == [(words, None) for words, _ in expected]
    unlabelled = write("c.csv", "sentence_id,word\n1,Ann\n1,left\n2,Bo\n")
    source = TaggedSource(unlabelled, need_labels=False)
    assert [(s.words, s.tags) for s in source] == [(words, None) for words, _ in expected]


@pytest.mark.parametrize(
    "content, message",
    [
        ("sentence_id,word,tag\n1,a,O\n2,b,O\n1,c,O\n", "line 4: sentence 1 comes again after"),
        ("sentence_id,word,tag\n1,a,O\n1,,O\n", 'line 3: no word in "word"'),
        ("sentence_id,word,tag\n1,a,O\n1,b,\n", 'line 3: no tag in "tag"'),
        ("sentence_id,word,kind\n1,a,O\n", 'no column with the tag among "sentence_id", "word"'),
        ("sentence_id,word,ner,tag\n1,a,O,O\n", 'the tag could be in "ner", "tag". Give the right'),
    ],
)
def test_bad_tables_of_words(content, message, write):
    with raises_input_error(message):
        list(TaggedSource(write("a.csv", content)))


CHUNKS = "the DT B-NP {}\nman NN I-NP {}\n\n"


def test_the_tag_column_is_chosen_from_the_whole_file(write):
    late = CHUNKS.format("O", "O") * 800 + CHUNKS.format("O", "B-PER")
    source = TaggedSource(write("a.conll", late))
    assert source.description.endswith("tag in column 4")
    with raises_input_error(
        "a.conll: the tag could be in column 3, or in column 4, which has O for all words"
    ):
        TaggedSource(write("a.conll", CHUNKS.format("O", "O") * 3))


GOLD = "ann NNP B-PER {}\nleft VBD O {}\nrome NNP B-LOC {}\n\n"


@pytest.mark.parametrize(
    "predicted", [("O", "O", "O"), ("B-PER", "O", "O"), ("B-LOC", "B-PER", "B-LOC")]
)
def test_predictions_in_the_last_column_are_not_read(predicted, write):
    path = write("a.conll", GOLD.format(*predicted) * 2)
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    for options in (
        {"labels": labels},
        {"schema": {"word": [1], "tag": [3], "width": [3]}, "labels": labels},
    ):
        source = TaggedSource(path, **options)
        assert [s.tags for s in source][0] == ("B-PER", "O", "B-LOC")
    if set(predicted) == {"O"}:
        with raises_input_error("the tag could be in column 3, or in column 4"):
            TaggedSource(path)
    else:
        source = TaggedSource(path)
        assert "tag in column 3 (not the predictions in column 4)" in source.description
        assert [s.tags for s in source][0] == ("B-PER", "O", "B-LOC")


def test_a_txt_has_sentences_or_conll(write):
    path = write("a.txt", "Ann left Rome .\nBo came .\n")
    source = TaggedSource(path, need_labels=False)
    assert [s.text for s in source] == ["Ann left Rome .", "Bo came ."]
    assert "plain lines, one sentence per line" in source.description
    path = write("b.txt", "ann B-PER\nleft O\n")
    assert [s.tags for s in TaggedSource(path)] == [("B-PER", "O")]
    with raises_input_error(
        "b.txt could be CoNLL or plain text...Name it .conll, or give `word_column`"
    ):
        TaggedSource(path, need_labels=False)
    assert [s.words for s in TaggedSource(path, need_labels=False, word_column=1)] == [
        ("ann", "left")
    ]
