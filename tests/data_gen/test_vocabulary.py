"""The vocabulary job: what it counts, what it writes, what it refuses."""

import gzip
import json
import resource
from collections import Counter

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from data_gen import runner
from data_gen.vocabulary import CountWords, Frequent, learn_vocabulary
from keras_bert.base.files import temporary_name
from keras_bert.cli.main import main
from keras_bert.text import Tokenizer
from keras_bert.text.learners import learn_wordpiece
from keras_bert.text.vocabulary_files import load_vocabulary, read_counts
from tests.messages import raises_input_error

TEXT = """The café's cats sat on the mat, and the Cat\u00adfish sat on the Café-mat. 日本

It was the mat of times; it was the cat of times. ΟΔΥΣΣΕΥΣ sat, too.
"""
UNCASED = Counter(
    "the cafe ' s cats sat on the mat , and the catfish sat on the cafe - mat . 日 本 "
    "it was the mat of times ; it was the cat of times . οδυσσευς sat , too .".split()
)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    lines = [json.dumps({"text": paragraph}) for paragraph in TEXT.split("\n\n")]
    (tmp_path / "c.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def three_times(counts):
    return {word: 3 * count for word, count in counts.items()}


def test_words_are_counted_as_the_tokenizer_sees_them(files):
    output = files / "vocab.txt"
    learned = learn_vocabulary(input=str(files / "*.*"), output=output, size=80)
    assert learned.vocabulary.tokens == learn_wordpiece(three_times(UNCASED), size=80).tokens
    assert learned.words == 3 * UNCASED.total()
    assert learned.distinct_words == len(UNCASED)
    assert load_vocabulary(output) == learned.vocabulary
    # The counts are those of the tokenizer on that text.
    ids = Tokenizer.from_vocab(output).tokenize(TEXT.split("\n")).flat_values.numpy().tolist()
    expected = [3 * Counter(ids)[id] for id in range(len(learned.vocabulary))]
    assert learned.vocabulary.counts.tolist() == expected
    assert sorted(entry.name for entry in files.iterdir()) == [
        "a.txt",
        "b.txt.gz",
        "c.jsonl",
        "vocab.counts.tsv",
        "vocab.txt",
    ]
    assert read_counts(output, load_vocabulary(output)).tolist() == expected


def test_cased_words_keep_capitals_and_accents(files):
    path = files / "a.txt"
    learned = learn_vocabulary(input=path, output=files / "v", size=110, lowercase=False)
    assert {"C", "é", "Σ", "T"} <= set(learned.vocabulary.tokens)


# The job, which counts words, is the same for all algorithms.
@pytest.mark.parametrize(
    "algorithm, workers",
    [("wordpiece", 2), ("unigram", 1), pytest.param("unigram", 2, marks=pytest.mark.slow)],
)
def test_names_and_order_of_files_and_workers_change_nothing(tmp_path, capfd, algorithm, workers):
    paragraphs = [f"{TEXT} number {i} of {i * i} {'x' * (i % 7)}" for i in range(40)]
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
    for i, paragraph in enumerate(paragraphs):
        (tmp_path / "one" / f"{i:02}.txt").write_text(paragraph)
        (tmp_path / "two" / f"{99 - i:02}.text").write_text(paragraph)
    arguments = {"size": 150, "unused": 4, "algorithm": algorithm}
    learned = learn_vocabulary(input=f"{tmp_path}/one/*", output=tmp_path / "1", **arguments)
    assert len(learned.vocabulary) == 150 or algorithm == "unigram"
    command = ["vocab", "--size=150", "--unused=4", f"--input={tmp_path}/two/*"]
    command += [
        f"--output={tmp_path}/2",
        f"--direct_num_workers={workers}",
        f"--algorithm={algorithm}",
    ]
    capfd.readouterr()
    assert main(command) == 0
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    # Nothing of what Beam and its workers say reaches the user.
    printed = capfd.readouterr()
    assert len(printed.out.splitlines()) == 2 or algorithm == "unigram"
    assert "apache_beam" not in printed.err and "INFO" not in printed.err


def contents(path):
    """The bytes of a file, or of those in a folder by name."""
    if path.is_file():
        return path.read_bytes()
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_byte_pair_encoding_is_written_as_a_tokenizer_folder(files):
    output = files / "bpe"
    arguments = {"input": files / "a.txt", "output": output, "size": 60, "algorithm": "bpe"}
    learned = learn_vocabulary(**arguments, lowercase=False)
    tokenizer = Tokenizer.from_folder(output)
    assert tokenizer.lowercase is False and len(tokenizer) == 60
    assert tokenizer.vocabulary == learned.vocabulary
    assert tokenizer.vocabulary.merges == learned.vocabulary.merges
    assert read_counts(output, tokenizer.vocabulary).tolist() == learned.vocabulary.counts.tolist()
    names = ["counts.tsv", "merges.txt", "tokenizer.json", "tokenizer_config.json", "vocab.json"]
    assert sorted(entry.name for entry in output.iterdir()) == names
    ids = tokenizer.tokenize(TEXT.split("\n")).flat_values.numpy().tolist()
    assert learned.vocabulary.counts.tolist() == [Counter(ids)[id] for id in range(60)]
    with raises_input_error("exists already"):
        learn_vocabulary(**arguments)
    learn_vocabulary(**arguments, force=True)
    assert Tokenizer.from_folder(output).lowercase is True
    with raises_input_error("is a folder; wordpiece writes a file"):
        learn_vocabulary(**{**arguments, "algorithm": "wordpiece"}, force=True)


def test_only_so_many_words_are_held(files):
    full = learn_vocabulary(input=files / "a.txt", output=files / "1", size=80)
    few = learn_vocabulary(input=files / "a.txt", output=files / "2", size=80, max_words=3)
    assert full.distinct_words > 3 == few.distinct_words
    frequent = sorted(UNCASED.items(), key=lambda item: (item[1], item[0]))[-3:]
    assert few.vocabulary.tokens == learn_wordpiece(dict(frequent), size=80).tokens


@pytest.mark.parametrize(("number", "words"), [(1, "a"), (2, "abc"), (3, "abc"), (9, "abcde")])
def test_only_frequent_words_reach_the_worker_that_orders_them(number, words):
    counts = {"a": 9, "b": 5, "c": 5, "d": 1, "e": 1}
    with beam.Pipeline(options=runner.options([])) as pipeline:
        frequent = pipeline | beam.Create(counts.items()) | Frequent(number)
        assert_that(frequent, equal_to([(word, counts[word]) for word in words]))


# A file and a folder; the others are written as one of these.
@pytest.mark.parametrize(
    "algorithm",
    [
        "wordpiece",
        pytest.param("bpe", marks=pytest.mark.slow),
        "unigram",
        pytest.param("words", marks=pytest.mark.slow),
    ],
)
def test_the_same_command_again_says_that_it_is_finished(files, capsys, algorithm):
    output = files / ("vocab.txt" if algorithm in ("wordpiece", "words") else "vocab")
    command = ["vocab", f"--input={files / 'a.txt'}", f"--output={output}", "--size=80"]
    command.append(f"--algorithm={algorithm}")
    assert main(command) == 0
    written = {path: path.stat().st_mtime_ns for path in files.rglob("*")}
    capsys.readouterr()
    assert main(command) == 0
    printed = capsys.readouterr()
    assert f"{output} is finished already" in printed.err and "Next: keras-bert" in printed.out
    for other in ("--min-frequency=3", "--cased"):
        assert main([*command, other]) == 2
        assert "exists already and differs from what was learned now. " in capsys.readouterr().err
    # (A unigram model of so short a text has 42 tokens, and there are 22 words.)
    smaller = {"unigram": 41, "words": 20}.get(algorithm, 70)
    assert main([*command, f"--size={smaller}"]) == 2
    assert "exists already. " in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in files.rglob("*")} == written


@pytest.mark.parametrize(
    "algorithm", ["wordpiece", "bpe", pytest.param("unigram", marks=pytest.mark.slow)]
)
def test_the_same_on_another_file_system(files, other, algorithm):
    settings = {"input": files / "a.txt", "output": "other://a/v", "algorithm": algorithm}
    learned = learn_vocabulary(**settings, size=80)
    written = times(other)
    # What a killed process leaves there is gone afterwards, and nothing else is.
    places = [*written, other / "v"]
    yours = other / temporary_name("yours")
    for path in [*(place.with_name(temporary_name(place.name)) for place in places), yours]:
        path.write_text("half")
    told = []
    again = learn_vocabulary(**settings, size=80, report=told.append)
    assert times(other).keys() == {*written, yours}
    yours.unlink()
    assert again.vocabulary == learned.vocabulary
    assert told == ["other://a/v is finished already: the same was learned now."]
    with raises_input_error("other://a/v... exists already"):
        learn_vocabulary(**settings, size=80, min_frequency=3)
    assert times(other) == written


def times(folder):
    """File -> when it was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_an_existing_output_is_kept_unless_forced(files):
    output = files / "vocab.txt"
    output.write_text("mine")
    with raises_input_error("exists already"):
        learn_vocabulary(input=files / "a.txt", output=output, size=80)
    with raises_input_error("a file that this command did not write"):
        learn_vocabulary(input=files / "a.txt", output=output, size=80, force=True)
    assert output.read_text() == "mine"
    output.unlink()
    learn_vocabulary(input=files / "a.txt", output=output, size=70)
    learn_vocabulary(input=files / "a.txt", output=output, size=80, force=True)
    assert len(load_vocabulary(output)) == 80
    output.unlink()
    with raises_input_error("vocab.counts.tsv exists already"):
        learn_vocabulary(input=files / "a.txt", output=output, size=80)


def test_nobodys_files_are_replaced(files):
    texts = {path: path.read_bytes() for path in files.iterdir()}
    for given, output in (("a.txt", "a.txt"), ("*.txt", "a.txt"), ("a.counts.tsv", "a.txt")):
        (files / "a.counts.tsv").write_text("text")
        with raises_input_error("is also the input"):
            learn_vocabulary(input=files / given, output=files / output, size=80, force=True)
        (files / "a.counts.tsv").unlink()
    settings = {"input": files / "a.txt", "algorithm": "bpe", "size": 60}
    learn_vocabulary(**settings, output=files / "bpe")
    (files / "bpe" / "thesis.tex").write_text("years of work")
    with raises_input_error("bpe holds something else already"):
        learn_vocabulary(**settings, output=files / "bpe", force=True)
    assert (files / "bpe" / "thesis.tex").read_text() == "years of work"
    assert all(path.read_bytes() == text for path, text in texts.items())


@pytest.mark.parametrize("algorithm, name", [("wordpiece", "v.txt"), ("bpe", "v")])
def test_nobodys_files_are_replaced_on_another_file_system(other, algorithm, name):
    (other / "a.txt").write_text(TEXT, encoding="utf-8")
    output = f"other://a/{name}"
    settings = {"input": "other://a/a.txt", "algorithm": algorithm, "output": output, "size": 70}
    learn_vocabulary(**settings)
    written = times(other)
    learn_vocabulary(**settings | {"size": 60}, force=True)
    after = times(other)
    assert after.keys() == written.keys() and after != written
    mine = other / name / "thesis.tex" if algorithm == "bpe" else other / name
    mine.write_text("years of work")
    before = times(other)
    with raises_input_error(f"{output} is not a vocabulary with its counts that this command"):
        learn_vocabulary(**settings, force=True)
    assert times(other) == before
    if algorithm == "wordpiece":
        with raises_input_error("other://a/a.txt is also the input"):
            learn_vocabulary(**settings | {"output": "other://a/a.txt"}, force=True)
        assert times(other) == before


def test_settings_reach_the_learner(files):
    settings = {"size": 70, "min_frequency": 3, "alphabet_limit": 20, "unused": 5}
    learned = learn_vocabulary(input=files / "a.txt", output=files / "v", **settings)
    expected = learn_wordpiece(dict(UNCASED), **settings)
    assert learned.vocabulary == expected
    assert learned.vocabulary.counts.tolist() == expected.counts.tolist()
    for name in ("min_frequency", "alphabet_limit", "unused"):
        others = {other: value for other, value in settings.items() if other != name}
        assert learn_wordpiece(dict(UNCASED), **others) != expected


def test_a_full_disk_is_one_sentence_and_leaves_nothing(files, capsys):
    """A limit on the size of files stands in for it."""
    output = files / "out" / "vocab.txt"
    command = ["vocab", f"--input={files / 'a.txt'}", f"--output={output}", "--size=80"]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        assert main(command) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    said = capsys.readouterr().err
    assert f"keras-bert: {output}" in said and "cannot be written" in said
    assert list((files / "out").iterdir()) == []


# With threads, as with processes, an error travels as text.
@pytest.mark.parametrize("mode", ["in_memory", "multi_threading"])
def test_a_bad_line_is_named_from_whatever_worker_and_nothing_is_left(tmp_path, mode):
    (tmp_path / "bad.txt").write_bytes(b"one\ntw\xffo\nthree\n")
    settings = {
        "input": tmp_path / "bad.txt",
        "output": tmp_path / "v",
        "size": 30,
        "beam_options": [f"--direct_running_mode={mode}"],
    }
    with raises_input_error("bad.txt, line 2 is not UTF-8") as refusal:
        learn_vocabulary(**settings)
    assert "while running" not in str(refusal.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.txt"]
    learned = learn_vocabulary(**settings, bad_lines="skip")
    assert learned.words == 2 and learned.skipped_lines == {"not UTF-8": 1}


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"size": 12}, "A vocabulary of 12 tokens is too small"),
        ({"size": 0}, "`size` must be at least 1. Received: 0"),
        ({"size": 80, "unused": -1}, "`unused` must be at least 0. Received: -1"),
        (
            {"size": 80, "algorithm": "byte-level"},
            "be wordpiece, bpe, byte-level-bpe, unigram or words",
        ),
        ({"size": 80, "input": "no/such/*.txt"}, "No file matches no/such/*.txt"),
        ({"size": 80, "output": ""}, "`output` is empty. Give a path"),
        (
            {"size": 80, "beam_options": ["--direct_num_wrkers=2"]},
            "Unknown option --direct_num_wrkers",
        ),
        ({"size": 80, "beam_options": ["--direct_num_workers=x"]}, "invalid int value: 'x'"),
    ],
)
def test_bad_settings_are_rejected(files, options, sentence):
    settings = {"input": files / "a.txt", "output": files / "vocab.txt", **options}
    with raises_input_error(sentence):
        learn_vocabulary(**settings)
    assert not (files / "vocab.txt").exists()


def test_the_runner_keeps_other_errors_as_they_are():
    with pytest.raises(ZeroDivisionError):
        runner.run(lambda pipeline: 1 // 0)


def test_the_command(files, capsys):
    output = files / "my vocab.txt"
    arguments = ["vocab", "--input", str(files / "a.txt"), "--output", str(output)]
    assert main([*arguments, "--size", "80"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("80 tokens from 41 words (23 different ones)")
    assert printed[-1].startswith("Next: keras-bert pretraining-data --input ")
    assert printed[-1].endswith(f"--vocab '{output}' --output data")
    assert main([*arguments, "--size", "79"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*arguments, "--size", "9000", "--force", "--cased"]) == 0
    assert "9,000 were requested" in capsys.readouterr().out
    assert main([*arguments, "--size", "80", "--force", "--alphabet-limit", "20"]) == 0
    assert (
        "% of them are [UNK], for characters that are not in the vocabulary"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize("last", ["a text " * 40_000, "x" * 300_000])
def test_a_text_that_is_counted_at_once_may_be_the_last(tmp_path, last):
    """Nothing was left to count then, and TensorFlow takes an empty list for numbers."""
    (tmp_path / "a.txt").write_text("A word.\n\nMore.")
    (tmp_path / "b.txt").write_text(last)
    settings = {"output": tmp_path / "v", "size": 40}
    learned = learn_vocabulary(input=tmp_path / "*.txt", **settings)
    assert learned.words == 5 + len(last.split())
    if len(last.split()) == 1:
        with raises_input_error("no words of at most 200 characters"):
            learn_vocabulary(input=tmp_path / "b.txt", **settings, force=True)


def test_short_texts_are_split_together(monkeypatch):
    """A call of TensorFlow for each took 1.2 ms a file, and 100,000 files hold a line each."""
    count = CountWords(lowercase=True, max_words=1000)
    count.setup()
    split, calls = count._split, []
    monkeypatch.setattr(count, "_split", lambda texts: calls.append(len(texts)) or split(texts))
    count.start_bundle()
    assert not [item for text in ["ein Text", "two\nlines"] * 500 for item in count.process(text)]
    counts = dict(item.value for item in count.finish_bundle())
    assert counts == dict.fromkeys([b"ein", b"text", b"two", b"lines"], 500)
    assert calls == [1500]
