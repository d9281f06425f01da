"""From sentences to sequences and back: words and tokens, windows, document context."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.base.settings import about
from keras_bert.inputs.framing import windows
from keras_bert.readers.schemes import SCHEMES, converted, labels_of, transitions
from keras_bert.readers.sentences import TaggedWords
from keras_bert.tasks.tagging import TaggerSettings
from keras_bert.tasks.tagging.crf import LinearChainCrf
from keras_bert.tasks.tagging.decode import tagger_predictions, word_distributions
from keras_bert.tasks.tagging.features import TaggedSequences, split_sentences, with_context
from keras_bert.tasks.tagging.tagger import CheckedSentences, Tagger
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_tokenizer

LABELS = labels_of(["X"], "bio")  # O, B-X, I-X


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(["the"])


def sentences(*texts, documents=None):
    """A capital begins a chunk, an i continues it."""
    tagged = []
    for number, text in enumerate(texts):
        words = tuple(text.split())
        tags = tuple("B-X" if w[0].isupper() else {"i": "I-X"}.get(w, "O") for w in words)
        document = documents[number] if documents else 0
        tagged.append(TaggedWords(number, words, tags, document=document))
    return tagged


def examples_of(examples, tokenizer, **options):
    defaults = {"max_length": 12, "label_subwords": "first", "document_context": False}
    given = {**defaults, "labelled": True, "labels": LABELS, **options}
    names = ("input_ids", "input_mask", "segment_ids")
    return TaggedSequences(examples, tokenizer=tokenizer, input_names=names, **given)


def test_every_position_is_predicted_once_and_where_it_has_most_context():
    lengths = np.arange(60, dtype=np.int32)
    for size in (1, 2, 3, 7, 8, 20):
        fields = [
            part.numpy() for part in windows(tf.constant(lengths), size, stride=max(1, size // 2))
        ]
        for length in lengths:
            sequence, starts, sizes, firsts, lasts = (x[fields[0] == length] for x in fields)
            cores = np.concatenate([np.arange(a, b) for a, b in zip(firsts, lasts, strict=True)])
            assert cores.tolist() == list(range(length))
            assert set(sizes) == {min(size, length)}
            assert starts[0] == 0 and starts[-1] + sizes[-1] == length
            for position in range(length):
                context = np.minimum(position - starts, starts + sizes - 1 - position)
                (covered,) = np.flatnonzero((firsts <= position) & (position < lasts))
                # If there is no more text, there is no more context to be had.
                best = context.max()
                assert context[covered] == best or (covered in (0, len(starts) - 1))
                assert context[covered] >= min(best, position, length - 1 - position, size // 4 - 1)


def test_words_keep_their_tokens_and_one_without_any_is_unknown(tokenizer):
    examples = [
        TaggedWords(1, ("the", "abc", "\u200b", "a-b"), None),
        TaggedWords(2, None, None, text="Thé  a-bc!"),
        TaggedWords(3, ("q", "r"), None, text=" q  r", starts=(1, 4)),
        TaggedWords(4, None, None, text=""),
    ]
    first, second, third, fourth = split_sentences(examples, tokenizer)
    tokens = tokenizer.vocabulary.tokens
    assert [tokens[i] for i in first.ids] == [
        *("the", "a", "##b", "##c", "[UNK]", "a", "-", "b"),
    ]
    assert first.sizes.tolist() == [1, 3, 1, 3] and first.text == "the abc \u200b a-b"
    for sentence in (first, second, third):
        words = [sentence.text[a:b] for a, b in zip(sentence.starts, sentence.ends, strict=True)]
        assert words == sentence.words
    assert second.words == ["Thé", "a", "-", "bc", "!"] and second.sizes.tolist() == [1, 1, 1, 2, 1]
    assert third.words == ["q", "r"] and third.starts == [1, 4]
    assert fourth.words == [] and fourth.ids.shape == (0,)


@pytest.mark.parametrize("label_subwords", ["first", "last", "all"])
@pytest.mark.parametrize("document_context", [False, True])
def test_each_token_counts_in_one_row_with_its_words_tag(
    label_subwords, document_context, tokenizer
):
    long = " ".join(["Abc", "i", "o", "the"] * 6)
    examples = sentences("a B i c", long, "d", "E f", documents=[0, 0, 0, 1])
    sequences = examples_of(
        examples, tokenizer, label_subwords=label_subwords, document_context=document_context
    )
    inputs, labels, weights = sequences.batch(tf.range(len(sequences)))
    batch = (inputs["input_ids"], labels["logits"], weights["logits"])
    ids, tags, counts = map(np.asarray, batch)
    assert ids.shape == tags.shape == counts.shape and len(sequences) > 6
    covered = []
    for row, (start, end) in enumerate(sequences.cores):
        core = np.zeros(ids.shape[1], np.bool_)
        core[start:end] = True
        assert not counts[row][~core].any()
        covered.append((ids[row][core], tags[row][core], counts[row][core]))
    found_ids, found_tags, found_counts = map(np.concatenate, zip(*covered, strict=True))
    expected = split_sentences(examples, tokenizer)
    np.testing.assert_array_equal(found_ids, np.concatenate([s.ids for s in expected]))
    sizes = np.concatenate([s.sizes for s in expected])
    chosen = np.full(len(found_ids), float(label_subwords == "all"))
    chosen[np.cumsum(sizes) - (sizes if label_subwords == "first" else 1)] = 1
    np.testing.assert_array_equal(found_counts, chosen)
    numbers = np.repeat([LABELS.index(tag) for e in examples for tag in e.tags], sizes)
    np.testing.assert_array_equal(found_tags, numbers)
    assert sequences.example_of_sequence.tolist() == sorted(sequences.example_of_sequence)


def test_context_is_of_the_same_document_and_fills_the_row_alike_on_both_sides():
    starts, ends = np.array([0, 4, 6, 30]), np.array([4, 6, 30, 33])
    first, last = with_context(starts, ends, [0, 0, 0, 1], room=10)
    assert first.tolist() == [0, 0, 4, 30] and last.tolist() == [10, 10, 30, 33]
    first, last = with_context(starts, ends, [0, 0, 0, 0], room=8)
    assert first.tolist() == [0, 1, 4, 25] and last.tolist() == [8, 9, 32, 33]


@pytest.mark.parametrize("label_subwords", ["first", "last"])
def test_rows_of_a_split_sentence_are_trained_as_parts_of_one_chain(label_subwords, tokenizer):
    """By brute force over the sentence; otherwise its parts would begin and end as sentences do."""
    text = "A i abc B i i o abcd C"
    examples = sentences("o A", text, "i o", documents=[0, 0, 0])
    count, words = len(LABELS), text.split()
    crf = LinearChainCrf(transitions=transitions(LABELS, "bio"))
    crf.build((None, None, count))
    rng = make_rng(3)
    for variable in crf.variables:
        variable.assign(rng.normal(0, 0.01, variable.shape))
    by_token = rng.normal(0, 2, (len(tokenizer), count)).astype(np.float32)  # by the token's id

    start, between, end = (np.asarray(part, np.float64) for part in crf.potentials)
    sentence = split_sentences(examples, tokenizer)[1]
    last = np.cumsum(sentence.sizes) - 1
    chosen = sentence.ids[last if label_subwords == "last" else last + 1 - sentence.sizes]
    every = np.array(list(itertools.product(range(count), repeat=len(words))))
    scores = (
        start[every[:, 0]] + end[every[:, -1]] + by_token[chosen][range(len(words)), every].sum(1)
    )
    scores += between[every[:, :-1], every[:, 1:]].sum(axis=1)
    gold = np.array([LABELS.index(tag) for tag in examples[1].tags])
    gold_score = scores[(every == gold).all(axis=1)].item()

    for length in (5, 6, 8, 12, 40):
        for context in (False, True):
            sequences = examples_of(
                examples,
                tokenizer,
                crf=True,
                max_length=length,
                label_subwords=label_subwords,
                document_context=context,
            )
            inputs, labels, weights = sequences.batch(tf.range(len(sequences)))
            emissions = by_token[inputs["input_ids"].numpy()]
            is_word = weights["logits"].numpy() > 0
            log_probs = np.asarray(crf.log_likelihoods(emissions, labels["logits"], is_word))
            covered = 0
            for row in np.flatnonzero(sequences.example_of_sequence == 1):
                positions = np.arange(covered, covered + is_word[row].sum())
                covered += len(positions)
                others = np.delete(np.arange(len(words)), positions)
                alike = (every[:, others] == gold[others]).all(axis=1)
                expected = gold_score - np.logaddexp.reduce(scores[alike])
                assert log_probs[row] == pytest.approx(expected, rel=1e-4, abs=1e-4), (length, row)
            assert covered == len(words)
    assert log_probs[sequences.example_of_sequence == 1].sum() == pytest.approx(
        gold_score - np.logaddexp.reduce(scores), rel=1e-4
    )  # of one row: the whole chain
    empty = examples_of(sentences(""), tokenizer, crf=True)
    assert not empty.labels["logits"].values.numpy().any()


def test_predictions_for_tokens_become_those_of_words(tokenizer):
    examples = sentences("abc B i", "", " ".join("d" * 25))
    sequences = examples_of(examples, tokenizer, labelled=False)
    rng = make_rng(0)
    by_token = rng.normal(size=(len(tokenizer), 3)).astype(np.float32)  # a logit by the token's id
    ids = sequences.inputs(*sequences.take(tf.range(len(sequences))))["input_ids"].numpy()
    logits = list(by_token[ids])
    given = {"labels": LABELS, "scheme": "bio"}
    for combine in ("first", "last", "mean", "product"):
        predictions = tagger_predictions(logits, sequences, aggregation=combine, **given)
        for prediction, sentence in zip(predictions, sequences.sentences, strict=True):
            tokens = by_token[sentence.ids].astype(np.float64)
            expected = word_distributions(tokens, sentence.sizes, aggregation=combine)
            assert prediction["tags"] == [LABELS[n] for n in expected.argmax(-1)]
            np.testing.assert_allclose(prediction["scores"], expected.max(-1, initial=0), rtol=1e-6)
            assert prediction["words"] == sentence.words
    tokens = np.exp(by_token[sequences.sentences[0].ids[:3]].astype(np.float64))
    tokens /= tokens.sum(-1, keepdims=True)
    product = tokens.prod(0) / tokens.prod(0).sum()
    for combine, expected in (
        ("first", tokens[0]),
        ("last", tokens[2]),
        ("mean", tokens.mean(0)),
        ("product", product),
    ):
        distributions = word_distributions(np.log(tokens), np.array([3]), aggregation=combine)
        np.testing.assert_allclose(distributions, [expected])


def test_entities_are_those_of_the_original_text(tokenizer):
    text = "Jöhn,  Thé Ab"
    sequences = examples_of([TaggedWords(1, None, None, text=text)], tokenizer, labelled=False)
    logits = np.full((1, 12, 3), -5.0, np.float32)
    for position, label in ((1, 1), (5, 0), (6, 1), (7, 2)):  # [CLS] j o h n , the a b
        logits[0, position, label] = 5
    (prediction,) = tagger_predictions(
        logits, sequences, labels=LABELS, scheme="bio", aggregation="first"
    )
    assert prediction["tags"] == ["B-X", "O", "B-X", "I-X"] and "expected" not in prediction
    assert [(e["text"], e["start"], e["end"]) for e in prediction["entities"]] == [
        ("Jöhn", 0, 4),
        ("Thé Ab", 7, 13),
    ]
    assert prediction["entities"][1]["score"] == min(prediction["scores"][2:])


def given(*pairs):
    return [(words.split(), tags.split()) for words, tags in pairs]


def test_invalid_tags_are_reported_and_read_as_conlleval_does():
    data = given(("a b c", "B-X I-X O"), ("d e", "O I-X"), ("f", "I-X"), ("g h", "B-X B-X"))
    source = Tagger.read(data)
    read = [("B-X", "I-X", "O"), ("O", "B-X"), ("B-X",), ("B-X", "B-X")]
    assert [e.tags for e in source] == read
    (note,) = Tagger.notes(list(Tagger.read(data)))
    assert note.startswith("the given sentences: 2 tags invalid in the scheme bio")
    assert 'line 2 (I-X at "e")' in note
    with raises_input_error('Sentence 2 ... I-X of "e" is invalid there'):
        list(Tagger.read(data, invalid_tags="error"))
    assert Tagger.notes(list(Tagger.read(data[:1]))) == []


def test_words_with_spaces_are_reported_with_the_first_one(tmp_path):
    path = tmp_path / "tags.tsv"
    path.write_text("New York\tB-X\nis\tO\nlarge\tO\n\nLos Angeles\tB-X\ntoo\tO\n")
    (note,) = Tagger.notes(list(Tagger.read(path)))
    assert (
        note
        == f'{path}: 2 words with spaces, the first one in line 1 ("New York"); each has '
        + ("one tag.")
    )


def test_tags_become_those_of_the_scheme_that_is_asked_for():
    iob1 = given(("a b c", "I-X B-X O"))
    assert list(Tagger.read(iob1))[0].tags == ("B-X", "B-X", "O")
    assert Tagger.notes(list(Tagger.read(iob1))) == []
    assert list(Tagger.read(iob1, scheme="bioes"))[0].tags == ("S-X", "S-X", "O")
    made = Tagger.infer_arguments(list(Tagger.read(iob1, scheme="bioes")))
    assert made["labels"] == ["O", "B-X", "I-X", "E-X", "S-X"]
    dev = Tagger.read(given(("d", "B-X")), inferred_arguments=made)
    assert list(dev)[0].tags == ("S-X",)
    with raises_input_error("do not name chunks"):
        list(Tagger.read(given(("a", "NOUN")), scheme="bio"))
    with raises_input_error("The model's tags have the scheme bioes; `scheme`"):
        Tagger.read(iob1, inferred_arguments=made, scheme="bio")
    assert Tagger.infer_arguments(list(Tagger.read(given(("a b", "VERB NOUN")))))["labels"] == [
        "NOUN",
        "VERB",
    ]
    with raises_input_error("has only one tag"):
        Tagger.infer_arguments(list(Tagger.read(given(("a b", "VERB VERB")))))


def test_tags_in_the_letters_of_bilou_and_bmes_name_chunks():
    """They were taken for tags that name none: accuracy alone, no entities, no field's rules."""
    for tags, scheme in (("B-X I-X L-X O U-X", "bilou"), ("B-X M-X E-X O S-X", "bmes")):
        read = list(Tagger.read(given(("a b c d e", tags)), invalid_tags="error"))
        assert read[0].tags == tuple(tags.split())
        labels = Tagger.infer_arguments(read)["labels"]
        assert labels == labels_of(["X"], scheme)
        assert Tagger.describe_examples(read, read, {"labels": labels}).endswith(
            f"chunks of the scheme {scheme} (X: 2)."
        )
    asked = next(iter(Tagger.read(given(("a b", "B-X L-X")), scheme="bio")))
    assert asked.tags == ("B-X", "I-X")
    assert about(TaggerSettings.__dataclass_fields__["scheme"]).choices == SCHEMES


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "tags", ["B-X I-X O B-X", "B-X E-X O S-X", "I-X I-X O I-X", "B-X L-X O U-X"]
)
def test_a_file_in_another_scheme_than_the_models_breaks_no_rule(tags, scheme):
    made = {"labels": labels_of(["X"], scheme)}
    source = Tagger.read(given(("a b c d", tags)), inferred_arguments=made, invalid_tags="error")
    assert list(source)[0].tags == tuple(converted(["B-X", "I-X", "O", "B-X"], scheme))
    assert source.notes() == []


def test_tags_that_are_not_needed_may_be_any():
    made = {"labels": LABELS}
    data = given(("a b", "NOUN VERB"))
    assert list(Tagger.read(data, inferred_arguments=made, labelled=False))[0].tags == (
        "NOUN",
        "VERB",
    )


def test_a_tag_that_was_never_seen_is_rejected_or_counted():
    made = {"labels": LABELS}
    data = given(("a b", "O B-X"), ("c", "B-NEW"))
    with raises_input_error('Sentence 2 ... does not have the tag "B-NEW"'):
        list(Tagger.read(data, inferred_arguments=made, unknown_labels="error"))
    examples = list(Tagger.read(data, inferred_arguments=made))
    assert examples[1].tags == ("B-NEW",)
    with raises_input_error('does not have the tag "NOUN"'):
        list(Tagger.read(given(("a", "NOUN")), inferred_arguments=made))
    assert isinstance(Tagger.read(data), CheckedSentences)


def test_a_tag_that_was_never_seen_does_not_count_in_the_loss(tokenizer):
    example = TaggedWords(1, ("a", "b"), ("O", "B-NEW"))
    sequences = examples_of([example], tokenizer)
    assert sequences.weights["logits"].numpy()[0].tolist() == [0, 1, 0, 0]
