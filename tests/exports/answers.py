"""What the SavedModel of each task type answers, compared with what `predict` gives."""

import numpy as np

TOLERANCE = 3e-5


def texts_of(values):
    return [value.decode() for value in values]


def near(found, expected):
    np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=TOLERANCE)


def check_label(found, answer):
    """The most probable of `probabilities`, which are in the order of the labels."""
    probabilities = list(answer["probabilities"].values())
    assert texts_of(found["labels"]) == list(answer["probabilities"])
    near(found["probabilities"], probabilities)
    near(found["score"], max(probabilities))
    assert found["label"].decode() == (answer["label"] or "")  # None: two spans too far apart


def check_several(found, answer):
    near(found["probabilities"], list(answer["probabilities"].values()))
    given = texts_of(found["labels"][found["given"]])
    assert sorted(given) == sorted(answer["labels"])


def check_score(found, answer):
    near(found["score"], answer["score"])


def check_choice(found, answer):
    count = len(answer["choices"])
    near(found["probabilities"][:count], answer["probabilities"])
    assert not found["probabilities"][count:].any()
    assert found["choice"].decode() == answer["choices"][found["label"]]
    if found["label"] != answer["label"]:  # of two that are alike the rounding tells
        probabilities = answer["probabilities"]
        near(probabilities[found["label"]], probabilities[answer["label"]])


def check_words(found, answer):
    count = found["lengths"]
    assert texts_of(found["words"]) == answer["words"] + [""] * (len(found["words"]) - count)
    assert texts_of(found["tags"][:count]) == answer["tags"]
    for name in ("starts", "ends"):
        assert found[name][:count].tolist() == answer[name] and not found[name][count:].any()
    # A conditional random field sums over all words before and behind, in float32 in the graph.
    off = np.abs(found["scores"][:count] - answer["scores"])
    assert count == 0 or off.max() < max(TOLERANCE, 1e-5 * count)


def check_answer(found, answer):
    """The best piece, or one as good: windows of the same word again and again are alike."""
    near(found["null_score"], answer["null_score"])
    near(found["score"], answer["score"])
    if answer["answer"]:
        place = (found["start"], found["end"])
        tokens = {(token["start"], token["end"]): token for token in answer.get("n_best", [answer])}
        assert place in tokens
        near(tokens[place]["score"], answer["score"])
        assert found["answer"].decode() == tokens[place]["answer"]
    else:
        assert (found["answer"], found["start"], found["end"]) == (b"", 0, 0)


def check_spans(found, answer):
    spans = answer["spans"]
    assert found["lengths"] == len(spans)
    assert texts_of(found["labels"][: len(spans)]) == [span["label"] for span in spans]
    for ours, theirs in (("starts", "start"), ("ends", "end")):
        assert found[ours][: len(spans)].tolist() == [span[theirs] for span in spans]
    near(found["scores"][: len(spans)], [span["score"] for span in spans])


def check_clusters(found, answer):
    mentions = sorted(
        (mention["start"], mention["end"], number)
        for number, cluster in enumerate(answer["clusters"])
        for mention in cluster
    )
    count = found["lengths"]
    columns = (found[name][:count].tolist() for name in ("starts", "ends", "clusters"))
    assert sorted(zip(*columns, strict=True)) == mentions


CHECKS = {
    **dict.fromkeys(("classifier", "pair-classifier", "relation-classifier"), check_label),
    "multi-label": check_several,
    "regression": check_score,
    "multiple-choice": check_choice,
    **dict.fromkeys(("tagger", "tagger-crf", "semantic-roles"), check_words),
    "question-answering": check_answer,
    "span-classifier": check_spans,
    "coreference": check_clusters,
}
