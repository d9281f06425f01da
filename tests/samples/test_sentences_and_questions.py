"""The sentences and questions that come with the package are what their README says."""

import json

import pytest

from keras_bert.samples import NAMES, QUESTIONS, SENTENCES


def sentences(split):
    """[(words, parts of speech, names in BIO)] of a file."""
    blocks = SENTENCES[split].read_text(encoding="utf-8").strip().split("\n\n")
    return [
        zip(*(line.split("\t") for line in block.splitlines()), strict=True) for block in blocks
    ]


@pytest.mark.parametrize("split, count", [("train", 240), ("test", 88)])
def test_both_forms_hold_the_same_sentences(split, count):
    lines = [json.loads(line) for line in NAMES[split].read_text(encoding="utf-8").splitlines()]
    assert len(lines) == len(sentences(split)) == count
    nested = 0
    for (words, _, tags), line in zip(sentences(split), lines, strict=True):
        assert list(words) == line["words"]
        outer = ["O"] * len(words)
        for start, end, label in sorted(line["spans"], key=lambda span: span[0] - span[1]):
            if set(outer[start:end]) == {"O"}:
                outer[start:end] = [f"B-{label}", *[f"I-{label}"] * (end - start - 1)]
            else:
                nested += 1
        assert outer == list(tags)
    assert nested > count / 8


def test_no_name_is_in_both_files():
    def names(split):
        lines = (json.loads(line) for line in NAMES[split].read_text(encoding="utf-8").splitlines())
        return {
            " ".join(line["words"][start:end])
            for line in lines
            for start, end, label in line["spans"]
            if label != "ORG"
        }

    assert not names("train") & names("test")
    assert len(names("train")) > 100 and len(names("test")) > 40


@pytest.mark.parametrize("split, count", [("train", 323), ("test", 101)])
def test_answers_stand_where_they_are_said_to(split, count):
    lives = json.loads(QUESTIONS[split].read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for life in lives for paragraph in life["paragraphs"]]
    asked = [(p["context"], question) for p in paragraphs for question in p["qas"]]
    assert len(asked) == len({question["id"] for _, question in asked}) == count
    for context, question in asked:
        assert bool(question["answers"]) is not question["is_impossible"]
        for answer in question["answers"]:
            assert context[answer["answer_start"] :].startswith(answer["text"])
    assert 0.2 < sum(question["is_impossible"] for _, question in asked) / count < 0.3
