"""Predicates and their arguments: CoNLL-2005, CoNLL-2012, JSON Lines and Python."""

import json

import pytest

from keras_bert.base.errors import InputError
from keras_bert.readers.predicates import PredicateSource
from keras_bert.readers.spans import LabelledSpan

# Word, part of speech, chunk, then the predicates and the arguments of each.
OF_2005 = """\
Ada   NNP (NP*)  -     (A0*)  *
saw   VBD (VP*)  see   (V*)   *
that  IN  *      -     (A1*   *
Max   NNP (NP*)  -     *      (A0*)
left  VBD (VP*)  leave *)     (V*)
.     .   *      -     *      *

Rain  NN  (NP*)  -
.     .   *      -
"""
TAGS_2005 = [
    "B-A0 B-V B-A1 I-A1 I-A1 O",
    "O O O B-A0 B-V O",
]


def row_2012(number, word, base, frame, *arguments):
    return f"bn/a/00/a_0001 0 {number} {word} NN * {base} {frame} - - * {' '.join(arguments)} -\n"


OF_2012 = (
    "#begin document (bn/a/00/a_0001); part 000\n"
    + row_2012(0, "She", "-", "-", "(ARG0*)")
    + row_2012(1, "gave", "give", "01", "(V*)")
    + row_2012(2, "it", "-", "-", "(ARG1*)")
    + row_2012(3, "up", "-", "-", "(C-V*)")
    + row_2012(4, "work", "work", "-", "*")
    + "\n#end document\n#begin document (bn/b/00/b_0001); part 000\n"
    + "bn/b/00/b_0001 0 0 Rain NN * - - - - * -\n\n"
    + "bn/b/00/b_0001 0 0 fell VB * fall 01 - - * (V*) -\n\n#end document\n"
)


def read(tmp_path, content, **options):
    path = tmp_path / "file"
    path.write_text(content)
    return list(PredicateSource(path, **options))


def test_conll_2005(tmp_path):
    examples = read(tmp_path, OF_2005)
    assert [" ".join(example.tags) for example in examples] == TAGS_2005
    assert [example.predicate[:2] for example in examples] == [(1, 2), (4, 5)]
    assert examples[0].words == ("Ada", "saw", "that", "Max", "left", ".")
    assert [example.line for example in examples] == [1, 1] and examples[0].line_of(4) == 5
    assert PredicateSource(tmp_path / "file").description.endswith(
        "CoNLL-2005, one example per predicate"
    )


def test_conll_2012(tmp_path):
    first, second = read(tmp_path, OF_2012)
    assert first.words == ("She", "gave", "it", "up", "work")
    assert first.tags == ("B-ARG0", "B-V", "B-ARG1", "B-C-V", "O")
    assert (first.predicate.start, first.document, second.document) == (1, 0, 1)
    assert (second.words, second.predicate.start) == (("fell",), 0)


def test_predicates_without_arguments_are_read_to_predict(tmp_path):
    lines = [line.split() for line in OF_2005.splitlines()]
    unlabelled = "\n".join(" ".join(cells[:4]) for cells in lines) + "\n"
    examples = read(tmp_path, unlabelled, need_labels=False)
    assert [(example.predicate.start, example.tags) for example in examples] == [
        (1, None),
        (4, None),
    ]
    with pytest.raises(
        InputError, match=r"line 1: the sentence has 2 predicates in column 4 and 0"
    ):
        read(tmp_path, unlabelled)
    rows = row_2012(0, "fell", "fall", "01") + row_2012(1, "work", "work", "-")
    (only,) = read(tmp_path, rows, need_labels=False)
    assert (only.words, only.predicate.start) == (("fell", "work"), 0)
    assert read(tmp_path, rows) == []


def test_json_lines_and_python_are_the_same(tmp_path):
    records = [
        {"words": ["she", "left"], "predicate": [1, 2], "tags": ["B-A0", "B-V"]},
        {"text": "she left", "words": ["she", "left"], "predicate": [1, 2], "tags": ["O", "B-V"]},
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    examples = read(tmp_path, lines)
    assert examples == list(PredicateSource(records))
    assert examples[0].predicate == LabelledSpan(1, 2) and examples[0].text == "she left"
    (text,) = PredicateSource([{"text": "she left", "predicate": [4, 8]}], need_labels=False)
    assert (text.words, text.predicate, text.tags) == (None, LabelledSpan(4, 8), None)
    answer = {"words": ["a", "b"], "predicate": {"start": 2, "end": 3, "words": [1, 2]}}
    (again,) = PredicateSource([answer], need_labels=False)
    assert again.predicate == LabelledSpan(1, 2)


WORDS = {"words": ["she", "left"], "tags": ["O", "B-V"]}


@pytest.mark.parametrize(
    "content, message",
    [
        ("she\nleft\n", "^Could not read FILE as predicates and their arguments: line 1 has one"),
        ("she - *\nleft leave\n", r"line 2: 2 columns, but the sentence's first word has 3"),
        ("a -\n\nb - *)\nc d (V*)\n", r'line 3: "\*\)" cannot be read as part of a chunk'),
        ("a - (A0*\nb c (V*)\n", r'line 2: "\(V\*\)" cannot be read as part of a chunk'),
        ("a - (A0*)\nb c (V*\n", r"line 2: the chunk \(V\* is not closed"),
        ("a - (A0*) *\nb c (V*) *\n", "line 1: the sentence has 1 predicate in column 2 and 2 col"),
        (row_2012(0, "a", "b", "01", "(A0*)"), r"line 1: column 12, of arguments, does not have"),
        (OF_2012 + "\na b - (V*)\n", r"line 16: 4 columns, where CoNLL-2012 has 12 or more"),
        (json.dumps(WORDS), 'line 1: no "predicate" among the keys'),
        (json.dumps({"words": ["a"], "predicate": [0, 1]}), 'line 1: no "tags" among the keys'),
        (json.dumps({**WORDS, "predicate": [1, 1]}), "line 1: predicate .* ends before it begins"),
        (json.dumps({**WORDS, "predicate": [2, 3]}), "line 1: predicate .* beyond the text"),
        (json.dumps({**WORDS, "predicate": [0, 1], "tags": ["O"]}), "2 words and 1 tag;"),
        (json.dumps({**WORDS, "predicate": [0, 1], "tags": "OO"}), '"tags" should be a list of'),
        (
            json.dumps({"text": "a b", "predicate": [0, 1], "tags": ["O", "O"]}),
            'tags need "words", a list',
        ),
    ],
)
def test_bad_files_are_named_with_the_line(content, message, tmp_path):
    path = tmp_path / "file"
    message = message.replace("FILE", str(path)) if "FILE" in message else f"^{path}, .*{message}"
    with pytest.raises(InputError, match=message):
        read(tmp_path, content)


def test_a_sentence_that_is_no_dictionary():
    with pytest.raises(ValueError, match="A sentence must be a dictionary with"):
        PredicateSource(["she left"])
