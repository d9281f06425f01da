"""Reading tagged words: every form, every rule for columns, every sentence about a bad line."""

import pytest

from keras_bert.readers.sentences import TaggedSource
from tests.messages import raises_input_error
from tests.readers.test_labelled_texts import pipe_in
from tests.readers.test_tfds import LABEL, TEXT, prepare, several

CONLL_2003 = """\
-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
German JJ B-NP B-MISC
call NN I-NP O

Peter NNP B-NP B-PER
Blackburn NNP I-NP I-PER

-DOCSTART- -X- -X- O

BRUSSELS NNP B-NP B-LOC
1996-08-22 CD I-NP O
"""
SENTENCES = [
    (("EU", "rejects", "German", "call"), ("B-ORG", "O", "B-MISC", "O")),
    (("Peter", "Blackburn"), ("B-PER", "I-PER")),
    (("BRUSSELS", "1996-08-22"), ("B-LOC", "O")),
]


@pytest.fixture
def read(tmp_path):
    def read(content, **options):
        path = tmp_path / "file"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return TaggedSource(path, **options)

    return read


def pairs(source):
    return [(example.words, example.tags) for example in source]


def columns(*order, tabs=False):
    """CONLL_2003 with its columns in another order."""
    lines = [line.split() for line in CONLL_2003.splitlines()]
    split = "\t" if tabs else " "
    return "".join(split.join(line[i] for i in order if line) + "\n" for line in lines)


def test_conll_with_its_documents_and_the_line_of_every_word(read):
    source = read(CONLL_2003, tag_column=4)
    examples = list(source)
    assert [(e.words, e.tags) for e in examples] == SENTENCES
    assert [e.document for e in examples] == [0, 0, 1]
    assert examples[1].line == 8 and examples[1].lines == (8, 9)
    assert str(examples[1].error("no.", word=1)).endswith("file, line 9: no.")
    assert source.description.endswith("CoNLL with spaces, word in column 1, tag in column 4")


@pytest.mark.parametrize("tabs", [True, False])
@pytest.mark.parametrize("order", [(0, 3), (3, 0), (3, 1, 0), (1, 0, 3)])
def test_the_only_column_of_tags_of_chunks_is_read_whatever_the_order(order, tabs, read):
    examples = list(read(columns(*order, tabs=tabs)))
    assert [(e.words, e.tags) for e in examples] == SENTENCES
    assert [e.document for e in examples] == [0, 0, 1]


def test_documents_may_be_named_and_what_stands_before_the_first_mark_is_one(read):
    text = "a\tO\n\n-DOCSTART- (1 EU)\n\n-DOCSTART- (2)\nb\tB-X\nc\tO\n\nd\tO\n"
    examples = list(read(text))
    assert [(e.words, e.document) for e in examples] == [(("a",), 0), (("b", "c"), 1), (("d",), 1)]
    row = "1" + "\tx" * 9 + "\n\n"
    examples = list(read(f"{row}# newdoc\n{row}# newdoc\n# newdoc id = 3\n{row}"))
    assert [e.document for e in examples] == [0, 1, 2]


def test_columns_can_be_given_and_a_models_tags_are_recognised(read):
    assert pairs(read(CONLL_2003, tag_column="2"))[1] == (("Peter", "Blackburn"), ("NNP", "NNP"))
    assert pairs(read(columns(0, 1)))[0][1] == ("NNP", "VBZ", "JJ", "NN")
    source = read(CONLL_2003, labels=["NNP", "VBZ", "JJ", "NN", "CD"])
    assert pairs(source)[0][1] == ("NNP", "VBZ", "JJ", "NN")
    unlabelled = read(columns(0, 1), labels=["O", "B-X", "I-X"], need_labels=False, word_column=1)
    assert pairs(unlabelled)[2] == (("BRUSSELS", "1996-08-22"), None)


def test_a_dev_file_is_read_like_the_training_file(read):
    train = read(CONLL_2003, tag_column=3)
    assert pairs(read("a A B-X B-Y\nb B O O\n", schema=train.schema))[0][1] == ("B-X", "O")


def test_a_line_of_white_space_parts_sentences_and_a_bare_number_sign_comments(read):
    text = "#\thttp://x\t2009\na\tO\n#tag\tB-X\n#\tO\n\t\nb\tO\r\n \n\n# id 7\nc d\tO"
    assert pairs(read(text)) == [
        (("a", "#tag", "#"), ("O", "B-X", "O")),
        (("b",), ("O",)),
        (("c d",), ("O",)),
    ]
    text = "1 a\u00a0b O\n2 c\u2028d\t  B-X\n"  # neither parts words or lines
    assert pairs(read(text.replace("\t", " "))) == [(("a\u00a0b", "c\u2028d"), ("O", "B-X"))]


CONLLU = """\
# newdoc id = one
# text = I don't.
1\tI\tI\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tsee\tsee\tVERB\tVB\t_\t_\t_\t2:conj\t_

# newdoc id = two
1\tNew York\tNew York\tPROPN\tNNP\t_\t0\troot\t_\t_
"""


def test_conllu_gives_the_syntactic_words_and_any_column(read):
    source = read(CONLLU)
    assert pairs(source) == [
        (("I", "do", "n't"), ("PRON", "AUX", "PART")),
        (("New York",), ("PROPN",)),
    ]
    assert source.description.endswith("CoNLL-U, word in FORM, tag in UPOS")
    examples = list(read(CONLLU, tag_column="xpos", word_column="3"))
    assert (examples[0].words, examples[0].tags) == (("I", "do", "not"), ("PRP", "VBP", "RB"))
    assert [e.document for e in examples] == [0, 1] and examples[0].lines == (3, 5, 6)
    blank = CONLLU.replace("PRON", "_").replace("AUX", "_").replace("PART", "_")
    untagged = pairs(read(blank, need_labels=False))
    assert [tags for _, tags in untagged] == [None, ("PROPN",)]


def test_json_lines(read):
    lines = (
        '{"words": ["a", 7], "tags": ["O", "B-X"], "document": "d"}\n\n'
        '{"tags": ["O"], "words": ["c"]}\n{"words": ["e"], "tags": ["O"], "document": "d"}'
    )
    examples = list(read(lines))
    assert [(e.line, e.words, e.tags) for e in examples] == [
        (1, ("a", "7"), ("O", "B-X")),
        (3, ("c",), ("O",)),
        (4, ("e",), ("O",)),
    ]
    assert [e.document for e in examples] == [0, 1, 0]
    assert pairs(read('{"tokens": ["a"], "ner_tags": [3]}')) == [(("a",), ("3",))]
    other = read('{"w": ["a"], "t": ["O"]}', word_column="w", tag_column="t")
    assert pairs(other) == [(("a",), ("O",))]
    mixed = read('{"text": "One two."}\n{"words": ["a"]}', need_labels=False)
    first, second = mixed
    assert first.text == "One two." and first.words is None and second.words == ("a",)


def test_what_has_no_tags_is_plain_text_unless_it_looks_like_words(read):
    def kind(text, **options):
        return read(text, need_labels=False, **options).kind

    assert kind("One two.\n\nThree four.\n") == "lines"
    assert kind("One\nTwo\n") == "lines"  # no sentences apart
    assert kind("One\ntwo\n\nthree\n") == "conll"
    assert kind("One two\n\nthree four\n") == "lines"
    assert kind("One O\n\nthree B-X\n") == "conll"
    assert kind("One N\n\nthree V\n", labels=["N", "V"]) == "conll"
    assert kind("O come all ye faithful\n", labels=["O", "B-X"]) == "lines"
    assert kind("One N\n\nthree V\n", word_column=1) == "conll"
    assert kind("-DOCSTART-\n\nOne two\n") == "conll"
    assert kind("# Title\n\nOne two\n") == "lines"
    assert kind("{curly} text") == "lines"
    sentences = list(read(" One\u3000two \n\n", need_labels=False, pretokenized=True))
    assert [(e.words, e.starts, e.document) for e in sentences] == [
        (("One", "two"), (1, 5), 0),
        ((), (), 1),
    ]
    (sentence,) = read("One two.\n", need_labels=False)
    assert (sentence.words, sentence.text) == (None, "One two.")


def test_a_pipe_of_plain_lines_is_read_line_by_line(monkeypatch):
    pipe = pipe_in(monkeypatch, [b"line\n"] * 8)
    source = iter(TaggedSource("-", need_labels=False))
    assert next(source).text == "line" and pipe.given == 1
    assert next(source).text == "line" and pipe.given == 2


def test_sentences_from_python():
    given = ["He said so.", ["He", "said"], (["so"], ["O"]), {"words": ["x"], "tags": ["B"]}]
    sentences = list(TaggedSource(given, need_labels=False))
    assert [(e.text, e.words, e.tags) for e in sentences] == [
        ("He said so.", None, None),
        (None, ("He", "said"), None),
        (None, ("so",), ("O",)),
        (None, ("x",), ("B",)),
    ]
    assert [e.document for e in sentences] == [0, 1, 2, 3]
    rows = [{"tokens": ["in", "Rome"], "ner_tags": ["O", "B-LOC"]}, {"text": "in Rome"}]
    words, text = TaggedSource(rows, need_labels=False)
    assert (words.words, words.tags, text.text) == (("in", "Rome"), ("O", "B-LOC"), "in Rome")
    assert list(TaggedSource(["a b"], need_labels=False, pretokenized=True))[0].words == (
        "a",
        "b",
    )
    for bad in ([[1, 2]], [[""]], ["a", {"text": 5}], [([], "O")], [None], [5]):
        with pytest.raises(ValueError, match="A sentence must be"):
            TaggedSource(bad, need_labels=False)
    with raises_input_error('the given table, row 1: no text under "text"'):
        TaggedSource([{"text": 5}], need_labels=False)


def test_real_files(shared_data):
    sizes = {"train": (3394, 62730), "dev": (1009, 15733), "test": (1287, 23394)}
    for split, (sentences, words) in sizes.items():
        examples = list(TaggedSource(shared_data / "wnut17" / f"{split}.conll"))
        assert (len(examples), sum(len(e.words) for e in examples)) == (sentences, words)
    examples = list(TaggedSource(shared_data / "ud_english_ewt" / "dev.conllu"))
    assert (len(examples), examples[-1].document) == (2001, 317)


def test_a_prepared_dataset_names_its_tags(tmp_path, monkeypatch):
    features = {"tokens": several(TEXT), "ner": several(LABEL), "pos": several(LABEL)}
    rows = [
        {"tokens": ["EU", "rejects"], "ner": [1, 0], "pos": [0, 1]},
        {"tokens": ["Peter"], "ner": [2], "pos": [0]},
    ]
    labels = {"ner": ["O", "B-ORG", "B-PER"], "pos": ["NNP", "VBZ"]}
    prepare(tmp_path, "conll2003", features, rows, labels=labels)
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    with raises_input_error('the tag could be in "ner", "pos". Give the right one as `tag_column`'):
        TaggedSource("tfds:conll2003:train")
    source = TaggedSource("tfds:conll2003:train", tag_column="ner")
    assert pairs(source) == [(("EU", "rejects"), ("B-ORG", "O")), (("Peter",), ("B-PER",))]
    assert source.description.endswith('words in "tokens", tags in "ner"')
    other = TaggedSource("tfds:conll2003:train", tag_column="pos")
    assert pairs(other)[1] == (("Peter",), ("NNP",))
    with raises_input_error('has no column "chunks". Its columns are "tokens", "ner", "pos"'):
        TaggedSource("tfds:conll2003:train", tag_column="chunks")


_REST = "\t_" * 6 + "\n"
LABELLED = "We meet at noon .\tham\nWin a prize now !\tspam\nSee you there .\tham\n"


@pytest.mark.parametrize(
    "content, message",
    [
        ("a\tO\nb\n", "line 2: 1 column, but the first word's line has 2; ... by single tabs"),
        ("a O\nb c O\n", "line 2: 3 columns, but ... by spaces"),
        ("a\tO\nb\t\n", "line 2: no tag in column 2"),
        ("a\tB-X\n\tO\n", "line 2: no word in column 1"),
        ("a\n\nb\n", "Could not read ...file as tagged words: line 1 has one column"),
        ("\n \n", "is empty"),
        ("a\tO\n\xff\tO".encode("latin-1"), "line 2: byte 1 is not UTF-8"),
        (b"a\tO\nb\0\tO", "line 2: contains a NUL byte"),
        ('{"words": ["a"], "tags": ["O", "O"]}', "line 1: 1 word and 2 tags"),
        ('{"words": ["a"], "tags": ["O"]}\n{"words": ["a"], "tags": 1}', 'line 2: "tags" should'),
        ('{"words": [], "tags": []}', 'has no word in "words" of any record (line 1), so there is'),
        ('{"words": ["a", ""], "tags": ["O", "O"]}', 'line 1: "words" should be a list of strings'),
        ('{"words": ["a"]}', 'line 1: no tags among the keys ("words"); give them as `tag_column`'),
        ('{"words": ["a"], "tags": ["O"]}\n[]', "line 2: not a JSON object"),
        (LABELLED, 'line 1: the word "We meet at noon ." contains spaces, as most do'),
        (f"{CONLLU}\n2\tx\n", "line 12: 2 columns; a word of CoNLL-U has 10"),
        (f"{CONLLU}\nx" + "\t_" * 9, 'line 12: the ID is "x"'),
        (f"{CONLLU}\n1\tx\tx\tX{_REST}2\tx\tx\t{_REST}", "line 13: UPOS is empty; write _ for"),
    ],
)
def test_bad_lines_are_named(read, content, message):
    with raises_input_error(message):
        list(read(content))


@pytest.mark.parametrize(
    "content, options, message",
    [
        (CONLL_2003, {"tag_column": "5"}, 'has no column "5". Its columns are 1 to 4.'),
        (CONLL_2003, {"tag_column": "word"}, 'has no column "word". Its columns are 1 to 4.'),
        (CONLL_2003, {"tag_column": "0"}, 'has no column "0". Its columns are 1 to 4.'),
        (CONLL_2003, {"tag_column": "1", "word_column": 1}, "cannot be the same column"),
        (CONLLU, {"tag_column": "pos"}, 'no column "pos". Its columns are "ID", "FORM", "LEMMA"'),
        (LABELLED, {"need_labels": False}, "line 1: ...such as classifier"),
    ],
)
def test_bad_columns_are_named(read, content, options, message):
    with raises_input_error(message):
        read(content, **options)


@pytest.mark.parametrize(
    "given, options, message",
    [
        ("/nowhere/file", {}, "does not exist"),
        ([["a"]], {}, "Sentence 1 of those given: no tags"),
        ([(["a"], ["O"]), (["a", "b"], ["O"])], {}, "Sentence 2 ...: 2 words and 1 tag;"),
        ([([], [])], {}, 'the given sentences have no word in "words" of any record (sentence 1)'),
        ([(["a"], ["O"])], {"tag_column": 1}, "`tag_column` is for files"),
    ],
)
def test_bad_sentences_are_named(given, options, message):
    with raises_input_error(message):
        TaggedSource(given, **options)


def test_words_of_a_treebank_may_have_spaces(read):
    treebank = "1\t1 000\t_\tNUM" + "\t_" * 6 + "\n\n"
    assert pairs(read(treebank)) == [(("1 000",), ("NUM",))]
    assert pairs(read("a\u00a0b\tX\nc\tY\n")) == [(("a\u00a0b", "c"), ("X", "Y"))]
