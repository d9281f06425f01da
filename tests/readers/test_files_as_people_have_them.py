"""Files as people have them, on which a choice by content goes wrong, as files and as tables.

Each is read rightly or is one sentence that says what to give. The texts are invented. The last
test reads the files of ../shared/cases, which are of the same forms.
"""

import itertools
import json

import pytest

from keras_bert.base.errors import InputError
from keras_bert.readers.choices import ChoiceSource
from keras_bert.readers.labels import score, several_labels
from keras_bert.readers.sentences import TaggedSource
from keras_bert.readers.spans import SpanPairSource, SpanSource
from keras_bert.readers.squad import QuestionSource
from keras_bert.readers.text_notes import text_warnings
from keras_bert.readers.texts import PAIR, TextSource
from keras_bert.tasks.tagging.tagger import Tagger
from tests.messages import raises_input_error
from tests.readers.forms import TEXTS, columns, cycle

pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")

# A label, a score or a text is never chosen because another column cannot be one.


@pytest.mark.parametrize(
    "names, more, options, message",
    [
        (  # an export of Label Studio
            ("text", "annotator", "id", "choice"),
            (cycle(1, 2), lambda n: 100 + n, lambda n: json.dumps({"choices": [f"long{n}", "b"]})),
            {},
            'for the label. The possible...are "annotator" (2 different: "1", "2"), "id" (24 '
            'different: "100", "101", …), "choice" (24 different: "{"choices": ["long0"...',
        ),
        (
            ("comment_text", "is_train", "rude", "long"),
            (cycle(0, 1), cycle(0, 0, 1), cycle(1, 0)),
            {"form": several_labels},
            'for the label. The possible...are "is_train" ...`label_columns="is_train,rude,long"`',
        ),
        (
            ("text", "helpful_votes", "stars_given"),
            (cycle(0, 1, 2), lambda n: f"{n % 5 + 1} stars"),
            {"form": score},
            'for the score. The possible...are "helpful_votes" (3 ...), "stars_given" (5 ...',
        ),
        (
            ("text", "rows", "price"),
            (cycle(7, 8), lambda n: f"1,{n:03}"),
            {"form": score},
            'for the score. The possible...are "rows" ...), "price" (24 different: "1,000"',
        ),
        (
            ("sentence1", "sentence2", "index", "judgement"),
            (cycle(*TEXTS[:5]), lambda n: n, cycle("low", "mid", "high")),
            {"form": score, "texts": PAIR},
            'for the score. The possible...are "index" ...), "judgement" ...label=…"`',
        ),
        (
            ("claim", "label", "checked"),
            (cycle("YES", "NO"), lambda n: "CHECKED"),
            {"texts": PAIR},
            "no column has a usual name for the two texts...",
        ),
    ],
)
def test_columns_that_are_left_are_listed(names, more, options, message, both):
    rows = columns(*more)
    for name in ("a.csv", "a.jsonl"):
        for data in both(names, rows, name=name):
            with raises_input_error(message):
                list(TextSource(data, **options))


def test_usual_names_choose_whatever_another_column_holds(both):
    more = (cycle("en", "de"), lambda n: f"intent{n}")
    for data in both(("utterance", "lang", "intent"), columns(*more)):
        source = TextSource(data)
        assert source.shown().startswith(
            f'First example: text: "{TEXTS[0]}", label: "intent0". Not read: "lang".'
        )
        examples = [*source]
        assert [e.label for e in examples] == [f"intent{n}" for n in range(24)]
        assert "each of the 24 labels occurs only once" in text_warnings(examples)[0]


def test_a_file_name_under_a_usual_name_is_told(both):
    names, rows = ("document", "page", "label"), columns(cycle("a", "b"))
    rows = [(f"doc{n}.txt", *row) for n, row in enumerate(rows)]
    for data in both(names, rows):
        source = TextSource(data)
        assert 'text: "doc0.txt", label: "a". Not read: "page".' in source.shown()
        assert 'the texts in "page" are longer than those in "document"' in source.notes()[0]
    for data in both(("document", "passage", "label"), rows):
        with raises_input_error("several columns have a usual name for the text"):
            TextSource(data)


def test_decimal_commas_are_named(both):
    names = ("sentence1", "sentence2", "year", "judgement")
    rows = columns(cycle(*TEXTS[:5]), cycle(2012, 2013), lambda n: f"{n % 3},5")
    given = {"texts": PAIR, "form": score}
    for data in both(names, rows, sep=";"):
        with raises_input_error('"year" ..."judgement" ...Give `fields="label=judgement"`'):
            TextSource(data, **given)
        with raises_input_error('"0,5" has a comma. Write a number with a point, such as 1.5.'):
            list(TextSource(data, **given, fields="label=judgement"))
    path, _ = both(names, rows, sep=";")
    frame = pandas.read_csv(path, sep=";", decimal=",")
    scores = [e.label for e in TextSource(frame, **given, fields="label=judgement")]
    assert scores[:3] == [0.5, 1.5, 2.5]


def test_points_that_could_separate_thousands_are_a_question(both):
    for prices, is_question in (
        (["1.200", "950", "2.000"], True),
        (["1.200", "0.5", "2.25"], False),
    ):
        path, _ = both(("text", "score"), columns(cycle(*prices)), sep=";")
        if is_question:
            with raises_input_error(
                'line 2: "1.200", in a file with semicolons, could be 1.2 or 1200'
            ):
                list(TextSource(path, form=score))
        else:
            assert [e.label for e in TextSource(path, form=score)][:2] == [1.2, 0.5]
        path, _ = both(("text", "score"), columns(cycle(*prices)))
        assert [e.label for e in TextSource(path, form=score)][0] == 1.2


# Headers.


def test_a_first_line_of_data_is_a_question_and_integer_columns_are_none(both, tmp_path):
    rows = columns(cycle(*TEXTS[:5]), lambda n: n % 4 / 4)
    path, _ = both(rows[0], rows[1:])
    frame = pandas.read_csv(path, header=None)
    given = {"texts": PAIR, "form": score}
    with raises_input_error("line 1: the first line could be an example or name the columns"):
        TextSource(path, **given)
    fields = "text_a=1,text_b=2,label=3"
    file_source = TextSource(path, **given, header=False, fields=fields)
    frame_source = TextSource(frame, **given, fields=fields)
    assert [e.label for e in file_source] == [e.label for e in frame_source] == [r[2] for r in rows]
    assert (
        file_source.schema
        == frame_source.schema
        == {"text_a": ["1"], "text_b": ["2"], "label": ["3"]}
    )
    # A model that was trained on the table reads the same columns of the file.
    again = TextSource(path, **given, header=False, schema=frame_source.schema)
    assert [e.texts for e in again] == [e.texts for e in frame_source]


# Schemes of tags.

CHUNKS = [[("green", "ORG"), ("works", "ORG")], [("fell", None)], [("oslo", "LOC")]]


def sentences(form):
    """Sentences in CoNLL, whose tags `form` makes of a chunk's kind, length and words."""
    for order in itertools.permutations(CHUNKS):
        for chunk in order:
            for number, (word, kind) in enumerate(chunk):
                tag = "O" if kind is None else form(kind, number, len(chunk))
                yield f"{word}\t{tag}\n"
        yield "\n"


IOE2 = lambda kind, n, count: f"{'E' if n + 1 == count else 'I'}-{kind}"  # noqa: E731
BIO = lambda kind, n, count: f"{'I' if n else 'B'}-{kind}"  # noqa: E731
BIOES = lambda kind, n, count: f"{'S' if count == 1 else 'BE'[n]}-{kind}"  # noqa: E731


def respelled(form, spell):
    return lambda kind, n, count: spell(*form(kind, n, count).split("-"))


@pytest.mark.parametrize("form", [IOE2, BIO, BIOES, lambda kind, n, count: f"I-{kind}"])
@pytest.mark.parametrize(
    "spell",
    [
        None,
        lambda letter, kind: f"{letter}_{kind}",
        lambda letter, kind: f"{letter.lower()}-{kind}",
        lambda letter, kind: f"{kind}-{letter}",
        lambda letter, kind: f"{kind}_{letter.lower()}",
    ],
)
def test_every_spelling_of_a_scheme_has_the_same_chunks(form, spell, tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("".join(sentences(BIO)))
    expected = [s.spans for s in SpanSource(path)]
    path.write_text("".join(sentences(form if spell is None else respelled(form, spell))))
    source = Tagger.read(path)
    tagged = [*source]
    labels = Tagger.infer_arguments(tagged)["labels"]
    assert set(itertools.chain(*(s.tags for s in tagged))) <= set(labels)
    spans = SpanSource(path)
    assert [s.spans for s in spans] == expected
    notes = [note for note in source.notes() if "are written as" in note]
    assert len(notes) == (spell is not None) and notes == spans.notes()[: len(notes)]
    scheme = "bioes" if form is BIOES else "bio"
    assert f"chunks of the scheme {scheme}" in Tagger.describe_examples(
        tagged, tagged, {"labels": labels}
    )


def test_letters_that_fit_no_scheme_are_one_sentence(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("a\tL-X\nb\tB-X\n\nc\tE-X\nd\tM-Y\ne\tO\n\nf\tI-X\ng\tU-Y\n")
    for read in (Tagger.read, SpanSource):
        with raises_input_error(
            'the tags "B-X", "E-X", ...have the letters of chunks, but most are invalid in every '
            "scheme (BIO, IOB1, IOE1, IOE2, BIOES, BILOU, BMES, BMEWO)"
        ):
            list(read(path))
    path.write_text("a\tN_S\nb\tN_P\n\nc\tV_S\n")  # parts of speech
    assert [s.tags for s in Tagger.read(path)] == [("N_S", "N_P"), ("V_S",)]


# Multiple choice and questions.


def test_parts_of_a_question_are_not_dropped(both):
    names = ("premise", "choice1", "choice2", "question", "label")
    rows = columns(cycle("it rained"), cycle("it shone"), cycle("cause", "effect"), cycle(0, 1))
    for data in both(names, rows, name="a.jsonl"):
        with raises_input_error(
            'the context could be in "premise", "question". Give one, or several that are joined, '
            'such as `fields="context=premise+question"`.'
        ):
            ChoiceSource(data)
        source = ChoiceSource(data, fields="context=premise+question")
        assert source.shown() == (
            f'First example: context: "{TEXTS[0]} cause", choices: "it rained | it shone", '
            'answer: "it rained".'
        )
        examples = [*source]
        assert [e.context for e in examples][:2] == [f"{TEXTS[0]} cause", f"{TEXTS[1]} effect"]
        assert [*ChoiceSource(data, schema=source.schema)] == examples


def test_answers_that_count_from_one_are_a_question(both):
    names = ("question", "option1", "option2", "option3", "answer")
    rows = columns(cycle("a lamp"), cycle("a door"), cycle("a cup"), cycle("1", "2"))
    for data in both(names, rows, name="a.jsonl"):
        with raises_input_error(
            '"answer" is never 0, and the choices are "option1", "option2", "option3", so that 1 '
            "could be the first or the second of them. Write the numbers from 0; if they are so, "
            'name the choices as `fields="choices=option1|option2|option3"`.'
        ):
            list(ChoiceSource(data))
        source = ChoiceSource(data, fields="choices=option1|option2|option3")
        assert [e.label for e in source][:2] == [1, 2]
        assert "no answer is 0" in source.notes()[0]


CONTEXT = "The grey boat lies on the lake near the hill."


def test_an_empty_answer_is_no_answer(both):
    answers = [[{"text": "", "answer_start": 0}], [{"text": "boat", "answer_start": 9}], []]
    rows = [(f"q{n}", "What lies?", CONTEXT, a) for n, a in enumerate(answers)]
    for data in both(("id", "question", "context", "answers"), rows, name="a.jsonl"):
        source = QuestionSource(data)
        assert 'answer: "none".' in source.shown()
        assert [len(e.answers) for e in source] == [0, 1, 0] and source.notes() == []
    rows = [(row[1], row[2], row[3], "false") for row in rows[1:2]]
    names = ("query", "passage", "replies", "is_impossible")
    for data in both(names, rows, name="a.jsonl"):
        fields = "question=query,context=passage,answers=replies"
        (question,) = QuestionSource(data, fields=fields)
        assert question.located.text == "boat"
    for data in both(names, [(*rows[0][:2], [], "false")], name="a.jsonl"):
        with raises_input_error('"is_impossible" is false, but there are no answers'):
            list(QuestionSource(data, fields=fields))


# Spans.

TEXT = "Das grüne Boot 🛶 fährt\nnach Ösloß heim"


@pytest.mark.parametrize("key", ["label", "labels", "entity_group"])
def test_the_label_of_a_span_has_several_keys(key, both):
    label = ["THING"] if key == "labels" else "THING"
    rows = [("The boat left", [{"start": 4, "end": 8, "text": "boat", key: label}])] * 2
    for data in both(("text", "spans"), rows, name="a.jsonl"):
        source = SpanSource(data)
        assert source.shown() == 'First spans: "boat" (THING), "boat" (THING)'
        assert [e.spans for e in source] == [((4, 8, "THING"),)] * 2
    for span, message in (
        ({"start": 4, "end": 8, "type": "X"}, "has no label among its keys (start, end, type)"),
        ({"start": 4, "end": 8, "labels": ["X", "Y"]}, "has several labels. Give a span for each"),
    ):
        for data in both(("text", "spans"), [("The boat left", [span])], name="a.jsonl"):
            with raises_input_error(message):
                list(SpanSource(data))


def offsets(word):
    """How programs count the characters of a word, and what the sentence says about it."""
    start, end = TEXT.index(word), TEXT.index(word) + len(word)
    before, through = TEXT[:start], TEXT[:end]
    utf8, utf16 = ([len(part.encode(code)) for part in (before, through)] for code in CODES)
    return {
        "ends are included": (start, end - 1),
        "they count from 1": (start + 1, end + 1),
        "they count from 1 and ends are included": (start + 1, end),
        "they count bytes of UTF-8": tuple(utf8),
        "they count units of UTF-16": tuple(number // 2 for number in utf16),
        "lines end with CRLF": (start + before.count("\n"), end + through.count("\n")),
    }


CODES = ("utf-8", "utf-16-le")


@pytest.mark.parametrize("word, ways", [("Ösloß", 6), ("fährt", 5), ("grüne", 3)])
def test_a_span_is_what_its_own_text_says(word, ways, both):
    correct_offsets = TEXT.index(word), TEXT.index(word) + len(word)
    counted = {way: at for way, at in offsets(word).items() if at != correct_offsets}
    assert len(counted) >= ways - 1
    for way, (start, end) in counted.items():
        span = {"start": start, "end": end, "label": "X", "text": word}
        for data in both(("text", "spans"), [(TEXT, [span])], name="a.jsonl"):
            with raises_input_error(f'and not its text "{word}". It would be if ...{way}'):
                list(SpanSource(data))
    span = {"start": 0, "end": 3, "label": "X", "text": word}
    for data in both(("text", "spans"), [(TEXT, [span])], name="a.jsonl"):
        with raises_input_error(
            f"The text has it from {correct_offsets[0]} to before {correct_offsets[1]}"
        ):
            list(SpanSource(data))


def test_spans_of_words_are_shown_and_checked(both):
    words = ["the", "grey", "boat", "left", "oslo"]
    spans = [{"start": 1, "end": 3, "label": "X", "text": "grey boat"}, [4, 5, "Y"]]
    for data in both(("words", "spans"), [(words, spans)], name="a.jsonl"):
        assert SpanSource(data).shown() == 'First spans: "grey boat" (X), "oslo" (Y)'
    included = [{"start": 1, "end": 2, "label": "X", "text": "grey boat"}]
    for data in both(("words", "spans"), [(words, included)], name="a.jsonl"):
        with raises_input_error(
            'is "grey" in the words from 1 ...It would be if ends are included'
        ):
            list(SpanSource(data))
    pair = ("tokens", "subj", "obj", "label")
    for data in both(pair, [(words, [1, 3], [4, 5], "leaves")], name="a.jsonl"):
        source = SpanPairSource(data, fields="words=tokens,head=subj,tail=obj")
        assert source.shown() == 'First pairs: "grey boat" and "oslo" (leaves)'


# The shared files.

READERS = {
    **dict.fromkeys(("copa", "context_question", "choices_from_one"), ChoiceSource),
    **dict.fromkeys(("conll2012", "germeval", "tag_then_score", "header_in"), Tagger.read),
    **dict.fromkeys(("multiconer", "word_tag_no_sentence", "ioe2"), Tagger.read),
    **dict.fromkeys(("scheme_underscore", "tags_minus_100"), Tagger.read),
    **dict.fromkeys(("prodigy_spans", "span_labels_key", "span_text_contradicts"), SpanSource),
    "qa_empty_answer": QuestionSource,
}
GIVEN = {
    **dict.fromkeys(("pair_constant_word", "nan_pair"), {"texts": PAIR}),
    **dict.fromkeys(
        ("score_decimal_comma", "score_index_wins", "nohead_score"), {"texts": PAIR, "form": score}
    ),
    "score_in_words": {"form": score},
    "multi_is_train": {"form": several_labels},
}
# Those that are read, with how many examples; all others are an error.
READ = {
    **{"label_lang_wins": 24, "label_few_rows": 9, "labels_versions": 24, "labels_nfc_nfd": 24},
    **{"nan_label": 16, "nan_pair": 19, "tag_then_score": 6, "header_in": 4, "multiconer": 4},
    **{"ioe2": 14, "scheme_underscore": 8, "prodigy_textcat": 8, "prodigy_spans": 2},
    **{"span_labels_key": 4, "qa_empty_answer": 2},
}


def test_the_shared_cases(shared_data):
    folder = shared_data.parent / "cases"
    if not folder.exists():
        pytest.skip(f"NOT TESTED with the files of {folder}, which is missing")
    files = [path for path in folder.iterdir() if path.suffix in FORMS]
    assert {path.stem for path in files} > {*READERS, *GIVEN, *READ}
    for path in files:
        read = READERS.get(path.stem, TextSource)
        for data in FORMS[path.suffix](path):
            # 1.1 and 1.10 are one.
            merged_by_pandas = path.stem == "labels_versions" and data is not path
            expected = None if merged_by_pandas else READ.get(path.stem)
            try:
                count = len([*read(data, **GIVEN.get(path.stem, {}))])
            except InputError as error:
                assert expected is None, (path, error)
            else:
                assert count == expected, path


FORMS = {
    ".csv": lambda path: (path, pandas.read_csv(path, sep=None, engine="python")),
    ".jsonl": lambda path: (path, [json.loads(line) for line in path.read_text().splitlines()]),
    ".json": lambda path: (path, json.loads(path.read_text())),
    ".conll": lambda path: (path,),
    ".tsv": lambda path: (path,),
}


def test_tags_of_tables_are_those_of_files(both):
    rows = [(["ada", "ran"], ["B-PER", "O"])]
    for data in both(("w", "t"), rows, name="a.jsonl"):
        (sentence,) = TaggedSource(data, word_column="w", tag_column="t")
        assert sentence.tags == ("B-PER", "O")
