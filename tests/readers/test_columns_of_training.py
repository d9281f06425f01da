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
        for columns in ({"schema": train.schema}, {"word_column": "w", "tag_column": "t"}):
            (sentence,) = TaggedSource(data, **columns)
            assert (sentence.words, sentence.tags) == (("ada", "ran"), ("B-PER", "O"))
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
        pos_source = TaggedSource(data, tag_column="POS")
        assert [s.tags for s in pos_source] == [("NNP", "VBD"), ("NNP",)]
        assert [s.tags for s in TaggedSource(data, schema=pos_source.schema)][1] == ("NNP",)
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
    lists_file = write("d.csv", """words\n"['Ann', 'left']"\n"['Bo']"\n""")
    source = TaggedSource(lists_file, need_labels=False)
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
        ("sentence_id,word,kind\n1,a,O\n", 'no tags among the columns ("sentence_id", "word"'),
        ("sentence_id,word,ner,tag\n1,a,O,O\n", 'the tag could be in "ner", "tag". Give the right'),
    ],
)
def test_bad_tables_of_words(content, message, write):
    with raises_input_error(message):
        list(TaggedSource(write("a.csv", content)))


CHUNKS = "the DT B-NP {}\nman NN I-NP {}\n\n"


def test_two_columns_of_tags_are_a_question(write):
    gold = "ann NNP B-PER {}\nleft VBD O {}\nrome NNP B-LOC {}\n\n"
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    late = CHUNKS.format("O", "O") * 800 + CHUNKS.format("O", "B-PER")
    files = [late, CHUNKS.format("O", "O")]
    for predicted in (("O", "O", "O"), ("B-PER", "O", "O"), ("B-LOC", "B-PER", "B-LOC")):
        files.append(gold.format(*predicted) * 2)  # as the input of conlleval
    for content in files:
        path = write("a.conll", content)
        with raises_input_error(
            'a.conll: the tag could be in column 3 ("B-...") or in column 4 (...). Give the right '
            "one, such as `tag_column=4`."
        ):
            TaggedSource(path)
        schema = TaggedSource(path, tag_column=3).schema
        assert schema == {"word": [1], "tag": [3], "width": [4]}
        assert "tag in column 3" in TaggedSource(path, schema=schema, labels=labels).description
        assert [*TaggedSource(path, need_labels=False)][0].tags is None


def test_numbers_and_empty_columns_are_no_tags(write):
    scores = "Lamp\tTHING\t0.91\nfell\tO\t0.99\n\n"
    offsets = "Lamp 0 4 _ THING -\nfell 5 9 _ O -\n\n"
    for content, column in ((scores, 2), (offsets, 5)):
        source = TaggedSource(write("a.conll", content * 2))
        assert source.description.endswith(f"word in column 1, tag in column {column}")
        assert source.shown() == "First example: Lamp (THING) fell (O)"
    with raises_input_error('the tag could be in column 2 ("N", "V") or in column 3 ("a", "b")'):
        TaggedSource(write("a.conll", "Lamp N a\nfell V b\n\ndoor N a\n"))


def test_a_header_of_conll_names_its_columns(write):
    rows = "Lamp\tNN\tB-THING\nfell\tVB\tO\n\nRiver\tNN\tB-PLACE\n"
    expected = [("B-THING", "O"), ("B-PLACE",)]
    for header, given in (
        ("word\tpos\ttag", {}),
        ("Token\tx\tNER", {}),
        ("token\tpos\tner", {"tag_column": "ner"}),
        ("token\tpos\tner", {"tag_column": 3}),
    ):
        for name in ("a.conll", "a.tsv", "a"):
            for lines in (rows, rows.replace("\t", " ")):
                lines = (
                    f"{header}\n{lines}"
                    if "\t" in lines
                    else f"{header.replace(chr(9), ' ')}\n{lines}"
                )
                source = TaggedSource(write(name, lines), **given)
                assert [s.tags for s in source] == expected, source.description
                assert "and a header line" in source.description
    with raises_input_error('the tag could be in column 2 ("NN", "VB") or in column 3 ("B-PLACE"'):
        TaggedSource(write("a.conll", f"token\tpos\tner\n{rows}"))


def test_comments_and_the_parts_of_conll_2012(write):
    row = "nw/x 0 {} {} NN (NP*) - - - - {} * -\n"
    sentence = (
        row.format(0, "Green", "(ORG*") + row.format(1, "Works", "*)") + row.format(2, "fell", "*")
    )
    sentence += row.format(3, "Rome", "(LOC)")
    content = f"#begin document (nw/x); part 000\n{sentence}\n{sentence}\n#end document\n"
    path = write("a.conll", content + content)
    source = TaggedSource(path, tag_column=11)
    sentences = [*source]
    assert {s.tags for s in sentences} == {("B-ORG", "I-ORG", "O", "B-LOC")}
    assert [s.document for s in sentences] == [0, 0, 1, 1]
    assert sentences[0].words == ("Green", "Works", "fell", "Rome")
    with raises_input_error(
        'column 6 ("(NP*)") or in column 11 ("(LOC)", "(ORG*", "*", … and 1 more)'
    ):
        TaggedSource(path)
    broken = write("b.conll", "a (X*\nb (Y*)\n\n")
    with raises_input_error('line 2: "(Y*)" cannot be read as part of a chunk'):
        list(TaggedSource(broken))
    lines = "# id x0\tdomain=train\ngreen _ _ B-ORG\nworks _ _ I-ORG\n\n"
    source = TaggedSource(write("a.conll", lines * 2))
    assert [s.tags for s in source] == [("B-ORG", "I-ORG")] * 2


def test_tables_of_words_without_sentences_are_told_so(write):
    path = write("a.csv", "word,tag\nGreen,B-ORG\nfell,O\n\nGreen,B-ORG\n")
    for data in (path, pandas.read_csv(path), pandas.read_csv(path).to_dict("records")):
        with raises_input_error(
            'has one word per row in "word", and no column with the number of its sentence '
            "(sentence_id). Name that as `sentence_column`"
        ):
            TaggedSource(data)


def test_several_keys_of_tags_are_a_question(write):
    rows = [{"tokens": ["ada"], "pos_tags": ["N"], "ner": ["B-PER"]}]
    for data in (write("a.jsonl", rows), rows, pandas.DataFrame(rows)):
        with raises_input_error(
            'the tag could be in "pos_tags", "ner". Give the right one as `tag_'
        ):
            TaggedSource(data)
        (sentence,) = TaggedSource(data, tag_column="ner")
        assert sentence.tags == ("B-PER",)
    tokens = [{"tokens": ["ada", "ran"], "ner_tags": [1, -100]}]
    for data in (write("a.jsonl", tokens), tokens, pandas.DataFrame(tokens)):
        with raises_input_error('"ner_tags" has -100, by which transformers marks tokens'):
            list(TaggedSource(data))


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
