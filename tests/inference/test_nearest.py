"""Neighbours, analogies and rated pairs, on vectors whose answers are known."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.cli.main import main
from keras_bert.inference.nearest import WordVectors
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.messages import raises_input_error

# Two features, royal and female, and one that tells the pairs apart.
VECTORS = {
    "king": (1, 0, 0.1),
    "queen": (1, 1, 0.1),
    "man": (0, 0, 0.5),
    "woman": (0, 1, 0.5),
    "boy": (0, 0, -0.5),
    "girl": (0, 1, -0.5),
    "##s": (0.3, -1, 0),
}


@pytest.fixture(scope="module")
def vectors():
    tokenizer = Tokenizer.from_vocab(WordPieceVocabulary([*SPECIAL_TOKENS, *VECTORS]))
    table = np.concatenate([np.ones((5, 3)), list(VECTORS.values())])
    return WordVectors(table, tokenizer)


@pytest.fixture(scope="module")
def folder(vectors, tmp_path_factory):
    size = len(vectors.tokenizer)
    encoder = kb.StaticEncoder(kb.StaticConfig(vocab_size=size, hidden_size=3))
    encoder.embedding.embeddings.assign(vectors.table)
    path = tmp_path_factory.mktemp("vectors") / "model"
    from keras_bert.checkpoints import save_folder

    save_folder(encoder, vectors.tokenizer, path)
    return path


def cosine(one, other):
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


def test_neighbours_are_by_cosine_without_the_word_and_special_tokens(vectors):
    neighbours = vectors.nearest("king", top_k=99)
    king = np.array(VECTORS["king"])
    expected = {w: cosine(king, np.array(v)) for w, v in VECTORS.items() if w != "king"}
    assert dict(neighbours) == pytest.approx(expected, abs=1e-6)
    assert [word for word, _ in neighbours] == sorted(expected, key=expected.get, reverse=True)
    assert vectors.nearest("KING", top_k=2) == neighbours[:2]


def test_a_word_of_several_tokens_has_their_mean(vectors):
    mean = vectors.table[[5, 11]].mean(axis=0)
    np.testing.assert_allclose(vectors.vector("kings"), mean / np.linalg.norm(mean), rtol=1e-6)
    assert "king" not in dict(vectors.nearest("kings")) and "queen" in dict(
        vectors.nearest("kings")
    )


def test_an_analogy_is_the_sum_of_unit_vectors(vectors):
    word, similarity = vectors.analogy("king", "man", "woman", top_k=1)[0]
    assert word == "queen"
    target = vectors.vector("king") - vectors.vector("man") + vectors.vector("woman")
    assert similarity == pytest.approx(cosine(target, vectors.vector("queen")), abs=1e-5)


def test_accuracy_on_analogies_is_that_of_single_ones(vectors, tmp_path):
    path = tmp_path / "questions.txt"
    path.write_text(
        ": gender\nman woman king queen\nMan woman boy girl\nman woman king boy\n"
        "man woman uncle aunt\n: none\nuncle aunt man woman\n"
    )
    scores = vectors.evaluate_analogies(path)
    gender = {"accuracy": pytest.approx(2 / 3, abs=1e-6), "correct": 2, "questions": 3}
    assert scores["sections"]["gender"] == {**gender, "skipped": 1}
    unscored = {"accuracy": None, "correct": 0, "questions": 0, "skipped": 1}
    assert scores["sections"]["none"] == unscored
    assert {n: scores[n] for n in gender} == gender and scores["skipped"] == 2
    best = [vectors.analogy(b, a, c, top_k=1)[0].word for a, b, c in (("man", "woman", "boy"),)]
    assert best == ["girl"]


@pytest.mark.parametrize("separator", ["\t", ",", " "])
def test_the_rank_correlation_is_scipys(separator, vectors, tmp_path):
    path = tmp_path / "pairs"
    pairs = [("king", "queen", 8.5), ("man", "boy", 7), ("king", "girl", 1.5), ("king", "s", 9)]
    rows = [separator.join(map(str, pair)) for pair in pairs]
    header = separator.join(("Word 1", "Word 2", "Human") if separator != " " else ("a", "b", "c"))
    path.write_text("\n".join([header, "# a comment", *rows, separator.join("xy3")]))
    scores = vectors.evaluate_similarity(path)
    in_vocabulary = pairs[:3]
    cosines = [float(vectors.vector(a) @ vectors.vector(b)) for a, b, _ in in_vocabulary]
    expected = spearmanr([rating for *_, rating in in_vocabulary], cosines)
    assert scores["spearman"] == pytest.approx(expected.statistic)
    assert (scores["pairs"], scores["skipped"]) == (3, 2)


def test_columns_between_words_and_rating_are_passed_over(vectors, tmp_path):
    path = tmp_path / "simlex.txt"
    path.write_text("word1\tword2\tPOS\tSimLex999\nking\tqueen\tN\t8.1\nman\tgirl\tN\t2\n")
    assert vectors.evaluate_similarity(path)["pairs"] == 2


@pytest.mark.parametrize("ratings", [("9e-1", "1E-1"), ("+.9", "-1."), ("1e0", "0")])
def test_a_rating_is_a_number_in_any_form(ratings, vectors, tmp_path):
    path = tmp_path / "rated.tsv"
    lines = ("king\tqueen\t{}", "man\tqueen\t{}")
    path.write_text("".join(f"{line.format(x)}\n" for line, x in zip(lines, ratings, strict=True)))
    assert vectors.evaluate_similarity(path)["spearman"] == pytest.approx(1.0)


PAIRS = [("king", "queen", 8.5), ("man", "boy", 7.25), ("king", "girl", 1.5), ("man", "girl", 3)]
COUNTS = [3, 9, 11, 2]  # the number of raters, in another order than the ratings
FILES = {
    # (the file's name, a header, a line of (number, first, second, rating, count), the columns)
    "rating.txt": ("word1 word2 raters rating", "{1} {2} {4} {3}", ["word1", "word2", "rating"]),
    "spaces": ("a  b  mean", "{1}   {2} {3}", ["a", "b", "mean"]),
    "index.csv": (",word1,word2,rating", "{0},{1},{2},{3}", ["word1", "word2", "rating"]),
    "named.csv": ("id,first,second,score", "{0},{1},{2},{3}", ["first", "second", "score"]),
    "quoted.csv": ("word1,word2,x", '"{1}","{2}","{3}"', ["word1", "word2", "x"]),
    "quotes.tsv": ('"word1"\tword2\trating', '"{1}"\t{2}\t{3}', ["word1", "word2", "rating"]),
    "year.tsv": ("word1\tword2\t2014", "{1}\t{2}\t{3}", ["word1", "word2", "2014"]),
    "simlex.txt": ("word1\tword2\tPOS\tSimLex999\tN", "{1}\t{2}\tA\t{3}\t{4}", None),
    "plain.txt": (None, "{1};{2};{3}", ["1", "2", "3"]),
    "none.tsv": (None, "{1}\t{2}\tN\t{3}", ["1", "2", "4"]),
    "a.jsonl": (None, '{{"word1": "{1}", "word2": "{2}", "score": {3}, "n": {4}}}', None),
}


def write_pairs(path, header, line, rows):
    lines = [header] if header else []
    lines += [line.format(number, *row) for number, row in enumerate(rows)]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_any_form_has_the_same_correlation(vectors, tmp_path, name):
    header, line, columns = FILES[name]
    rows = [(*pair, count) for pair, count in zip(PAIRS, COUNTS, strict=True)]
    path = write_pairs(tmp_path / name, header, line, rows)
    cosines = [float(vectors.vector(a) @ vectors.vector(b)) for a, b, _ in PAIRS]
    expected = spearmanr([rating for *_, rating in PAIRS], cosines).statistic
    other = spearmanr(COUNTS, cosines).statistic
    found = vectors.evaluate_similarity(path)
    assert found["spearman"] == pytest.approx(expected) and abs(expected - other) > 0.1
    assert (found["pairs"], found["skipped"], found["unrated"]) == (4, 0, 0)
    assert columns is None or found["columns"] == columns


def test_a_pair_without_a_rating_is_left_out_and_counted(vectors, tmp_path):
    rows = [("king", "boy", "NA", 5), *((*pair, 1) for pair in PAIRS), ("man", "queen", "", 5)]
    path = write_pairs(tmp_path / "a.csv", "word1,word2,rating,count", "{1},{2},{3},{4}", rows)
    found = vectors.evaluate_similarity(path)
    assert (found["pairs"], found["unrated"], found["columns"][2]) == (4, 2, "rating")


UNCLEAR = [
    (
        "a.tsv",
        None,
        "{1}\t{2}\t{3}\t{4}",
        "column 3 and column 4 could be the ratings (column 3: 8.5, 7.25",
    ),
    ("a.csv", "a,b,x,y", "{1},{2},{3},{4}", '"x" and "y" could be the ratings ("x": 8.5, 7.25'),
    ("a.csv", "a,b,x,y", '{1},{2},"8,{4}",{4}', '"x" and "y" could be the ratings'),
    ("a.csv", "a,b,score,mean", "{1},{2},{3},{4}", '"score" and "mean" could be the ratings'),
    ("a.csv", "word1,word2,x", "{1},{2},high", 'no column has numbers ("x": high, high, high)'),
    ("a.csv", "n,a,b,rating", "{0},{1},{2},{3}", 'should have the words, and "n" has numbers'),
    ("a.csv", None, "{1},{2},{3}", "this one has a number (king, queen, 8.5). Add a line such as"),
    ("a.csv", "a;b;rating", "{1};{2};8,{4}", "line 2: '8,3' in \"rating\", where the ratings are"),
    ("a.txt", None, "{1} {2}", "line 1 has 2 columns. Expected"),
]


@pytest.mark.parametrize(("name", "header", "line", "message"), UNCLEAR)
def test_what_could_be_meant_in_two_ways_is_an_error(
    vectors, tmp_path, name, header, line, message
):
    rows = [(*pair, count) for pair, count in zip(PAIRS, COUNTS, strict=True)]
    path = write_pairs(tmp_path / name, header, line, rows)
    with raises_input_error(message):
        vectors.evaluate_similarity(path)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1.0, 1e18, 1e30])
def test_the_cosine_does_not_depend_on_the_norm(scale, vectors):
    table = scale * np.concatenate([np.ones((5, 3)), list(VECTORS.values())])
    scaled = WordVectors(table, vectors.tokenizer)
    for word in VECTORS:
        assert float(scaled.vector(word) @ vectors.vector(word)) == pytest.approx(1.0, abs=1e-6)
    assert dict(scaled.nearest("king")) == pytest.approx(dict(vectors.nearest("king")), abs=2e-6)


BAD = [
    ("analogies", "a b c\n", "line 1 has 3 words. Expected four, or"),
    ("analogies", ": empty\n", "has no analogies. Expected lines of four words"),
    ("analogies", b"\xff a b c\n", "line 1 is not UTF-8"),
    ("pairs", "king queen 3\nman boy\n", "line 2: 2 columns, but the first line has 3"),
    ("pairs", "king\tqueen\t3\nman\tboy\t0,9\n", "line 2: '0,9' in column 3, where the ratings"),
    ("pairs", "king queen 3\nx y 3\n", "has 1 rated pairs of words that the vocabulary has"),
]


@pytest.mark.parametrize(("kind", "content", "message"), BAD)
def test_a_broken_file_is_one_sentence(kind, content, message, vectors, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        kb.nearest(model=vectors, **{kind: path})


ASKED = [
    ({"word": "xyz"}, "The vocabulary does not have the word 'xyz'"),
    ({"word": ""}, "does not have the word ''"),
    ({}, "Give one of `word`, `analogy`, `analogies`, `pairs`. Received: none"),
    ({"word": "king", "pairs": "x"}, "Received: `word` and `pairs`"),
    ({"analogy": ["king", "man"]}, "`analogy` needs three words, as king man woman. Received: 2"),
    ({"pairs": "/nothing"}, "/nothing does not exist"),
    ({"word": "king", "top_k": 0}, "`top_k` must be at least 1. Received: 0."),
]


@pytest.mark.parametrize(("asked", "message"), ASKED)
def test_a_question_without_an_answer_is_one_sentence(asked, message, vectors):
    with pytest.raises(InputError, match=message):
        kb.nearest(model=vectors, **asked)


def test_the_command(folder, tmp_path, capsys):
    assert main(["nearest", "--model", str(folder), "--analogy", "king", "man", "woman"]) == 0
    assert capsys.readouterr().out.split("\n")[0].split()[1] == "queen"
    assert main(["nearest", "--model", str(folder), "--word", "man", "--top-k", "1"]) == 0
    assert "boy" not in capsys.readouterr().out.split("\n")[0]
    path = tmp_path / "questions.txt"
    path.write_text("man woman king queen\n")
    assert main(["nearest", "--model", str(folder), "--analogies", str(path)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["accuracy"] == 1.0 and "Next: keras-bert finetune" in err
    path.write_text("man woman 3\nking boy 1\n")
    assert main(["nearest", "--model", str(folder), "--pairs", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == 2
    assert main(["nearest", "--model", str(folder), "--word", "xyz"]) == 2


def test_any_token_embedding_can_be_asked():
    from tests import small_model

    tokenizer = small_model.make_tokenizer()
    task = kb.FillMask(small_model.make_encoder(tokenizer), tokenizer)
    assert len(kb.nearest(model=task, word="a", top_k=3)) == 3
