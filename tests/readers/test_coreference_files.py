"""Documents with clusters of mentions: CoNLL-2012, CorefUD, JSON Lines, plain lines and Python."""

import json

import pytest

from keras_bert.base.errors import InputError
from keras_bert.readers.coreference import CoreferenceSource

OF_2012 = """\
#begin document (bn/a/00/a_0001); part 000
bn/a/00/a_0001  0  0  Ada    NNP  *  -  -  -  -  *  (3|(5
bn/a/00/a_0001  0  1  Lane   NNP  *  -  -  -  -  *  5)
bn/a/00/a_0001  0  2  knows  VBZ  *  -  -  -  -  *  3)
bn/a/00/a_0001  0  3  her    PRP  *  -  -  -  -  *  (5)

bn/a/00/a_0001  0  0  That   DT   *  -  -  -  -  *  (3)|(8)
bn/a/00/a_0001  0  1  helps  VBZ  *  -  -  -  -  *  -

#end document
#begin document (bn/a/00/a_0001); part 001
bn/a/00/a_0001  1  0  Rain   NN   *  -  -  -  -  *  -
#end document
"""


def row(id, form, misc="_"):
    return "\t".join([str(id), form, *"_" * 7, misc]) + "\n"


COREFUD = (
    "# newdoc id = a\n# global.Entity = eid-etype-head-other\n# sent_id = 1\n"
    + row("1-2", "dello")
    + row(1, "the", "Entity=(e1-person-2-1(e2-x--")
    + row(2, "old", "SpaceAfter=No|Entity=e2)")
    + row(3, "king", "Entity=e1)")
    + row("3.1", "he", "Entity=(e1--1-)")
    + row(4, "left", "Entity=(e3[1/2]--1-)")
    + row(5, "off", "Entity=(e3[2/2]--1-)(e9-place-1-)")
    + "\n# sent_id = 2\n"
    + row(1, "He", "Entity=(e1--1-)(e2--1-)")
    + row(2, "saw")
    + row(3, "him", "Bridge=e1<e2|Entity=(e1--1-)")
    + row(4, "old", "Entity=(e2--1-)")
    + "\n# newdoc id = b\n"
    + row(1, "Rain")
    + "\n"
)


def read(tmp_path, content, **options):
    path = tmp_path / "file"
    path.write_text(content)
    source = CoreferenceSource(path, **options)
    return source, list(source)


def test_conll_2012(tmp_path):
    source, (first, second) = read(tmp_path, OF_2012)
    assert first.words == ("Ada", "Lane", "knows", "her", "That", "helps")
    assert first.text == "Ada Lane knows her That helps" and (first.line, second.line) == (2, 12)
    # In the order of the text, without the single mention of 8, which has the words of another.
    assert first.spans == ((0, 2, "0"), (0, 3, "1"), (3, 4, "0"), (4, 5, "1"))
    assert second.spans == ()
    assert source.notes() == [
        f"{tmp_path / 'file'}: 1 mention left out, with the words of another one."
    ]


def test_corefud(tmp_path):
    source, (first, second) = read(tmp_path, COREFUD)
    assert first.words == ("the", "old", "king", "left", "off", "He", "saw", "him", "old")
    assert first.spans == (*((0, 2, "0"), (0, 3, "1"), (5, 6, "1"), (7, 8, "1"), (8, 9, "0")),)
    assert second.words == ("Rain",) and second.spans == ()
    reasons = [note.split(": ")[1] for note in source.notes()]
    assert sorted(reasons) == [
        "1 mention left out, as they have no word.",
        "1 mention left out, with the words of another one.",
        "2 mentions left out, as they are discontinuous.",
    ]


def test_the_field_of_the_cluster_is_that_of_the_header(tmp_path):
    content = "# global.Entity = etype-eid\n" + row(1, "a", "Entity=(person-e1)(x-e2)")
    content = content + row(2, "b", "Entity=(person-e1)(x-e2)")
    with pytest.raises(AssertionError):
        assert not read(tmp_path, content)[1][0].spans
    _, (document,) = read(tmp_path, content)
    assert document.spans == ((0, 1, "0"), (1, 2, "0"))


def test_json_lines_python_and_plain_lines(tmp_path):
    records = [
        {"words": ["ada", "saw", "her"], "clusters": [[[2, 3], [0, 1]], [[1, 2]]]},
        {"text": "ada saw her", "clusters": [[[0, 3], {"start": 8, "end": 11}]]},
        {"words": ["rain"], "clusters": []},
    ]
    _, examples = read(tmp_path, "".join(json.dumps(record) + "\n" for record in records))
    assert examples == list(CoreferenceSource(records))
    assert examples[0].spans == ((0, 1, "0"), (2, 3, "0"))
    assert (examples[1].words, examples[1].spans) == (None, ((0, 3, "0"), (8, 11, "0")))
    answer = {"words": ["a", "b"], "clusters": [[{"start": 0, "end": 1, "words": [0, 1]}] * 1]}
    assert list(CoreferenceSource([answer]))[0].spans == ()
    _, lines = read(tmp_path, "Ada saw her.\nRain.\n", need_labels=False)
    assert [(line.text, line.words, line.spans) for line in lines] == [
        ("Ada saw her.", None, None),
        ("Rain.", None, None),
    ]
    assert list(CoreferenceSource(["Rain."], need_labels=False))[0].text == "Rain."
    with pytest.raises(ValueError, match="A document must be a string, or a dictionary"):
        CoreferenceSource([("a", "b")])


def conll_2012(*cells, end="#end document\n"):
    words = "".join(f"d 0 {n} w{n} {cell}\n" for n, cell in enumerate(cells))
    return f"#begin document (d); part 000\n{words}{end}"


@pytest.mark.parametrize(
    "content, message",
    [
        ("Ada saw her\n", "^Could not read FILE as documents with coreference: line 1 is not"),
        (conll_2012("(1", "-"), "line 2: a mention of 1 begins that does not end"),
        (conll_2012("-", "1)"), "line 3: a mention of 1 ends that has not begun"),
        (conll_2012("1"), 'line 2: "1" cannot be read as mentions'),
        (conll_2012("(1)", end=""), 'line 1: the document has no "#end document"'),
        # Not the last one, which would disappear.
        (2 * conll_2012("(1)", end=""), 'line 1: the document has no "#end document"'),
        (conll_2012("(1)") + "d 0 0 w -\n", "line 4: the word is not between"),
        (conll_2012("(1)").replace(" w0", ""), "line 2: 4 columns. Expected at least 5"),
        (row(1, "a", "Entity=(e1-x"), "line 1: a mention of e1 begins that does not end"),
        (row(1, "a", "Entity=e1"), 'line 1: "Entity=e1" cannot be read as mentions'),
        (row(1, "a") + "2\tb\n", "line 2: 2 columns; a word of CoNLL-U has 10"),
        (json.dumps({"words": ["a"]}), 'line 1: no "clusters" among the keys'),
        (json.dumps({"words": ["a"], "clusters": [0]}), 'line 1: "clusters" should be a list'),
        (json.dumps({"words": ["a"], "clusters": [[[0, 2]]]}), "line 1: the mention .* beyond the"),
        (json.dumps({"clusters": []}), 'line 1: no "words" and no "text" among the keys'),
    ],
)
def test_bad_files_are_named_with_the_line(content, message, tmp_path):
    path = tmp_path / "file"
    message = message.replace("FILE", str(path)) if "FILE" in message else f"^{path}, .*{message}"
    with pytest.raises(InputError, match=message):
        read(tmp_path, content)
