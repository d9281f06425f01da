"""The answers of the SavedModel of each task type, compared with those of `predict`."""

import numpy as np

TOLERANCE = 3e-5


def texts_of(encoded):
    return [value.decode() for value in encoded]


def near(actual, expected):
    np.testing.assert_allclose(actual, expected, atol=TOLERANCE, rtol=TOLERANCE)


def check_label(outputs, answer):
    """The most probable of `probabilities`, which are in the order of the labels."""
    probabilities = list(answer["probabilities"].values())
    assert texts_of(outputs["labels"]) == list(answer["probabilities"])
    near(outputs["probabilities"], probabilities)
    near(outputs["score"], max(probabilities))
    assert outputs["label"].decode() == (answer["label"] or "")  # None: two spans too far apart


def check_several(outputs, answer):
    near(outputs["probabilities"], list(answer["probabilities"].values()))
    given = texts_of(outputs["labels"][outputs["given"]])
    assert sorted(given) == sorted(answer["labels"])


def check_score(outputs, answer):
    near(outputs["score"], answer["score"])


def check_vector(outputs, answer):
    """`predict` gives of pairs the similarity alone."""
    if "embedding" in answer:
        near(outputs["embedding"], answer["embedding"])
    assert np.isfinite(outputs["embedding"]).all()


def check_choice(outputs, answer):
    count = len(answer["choices"])
    near(outputs["probabilities"][:count], answer["probabilities"])
    assert not outputs["probabilities"][count:].any()
    assert outputs["choice"].decode() == answer["choices"][outputs["label"]]
    if outputs["label"] != answer["label"]:  # of two that are alike the rounding tells
        probabilities = answer["probabilities"]
        near(probabilities[outputs["label"]], probabilities[answer["label"]])


def check_words(outputs, answer):
    count = outputs["lengths"]
    assert texts_of(outputs["words"]) == answer["words"] + [""] * (len(outputs["words"]) - count)
    for name in ("starts", "ends"):
        assert outputs[name][:count].tolist() == answer[name] and not outputs[name][count:].any()
    tags = texts_of(outputs["tags"][:count])
    if tags != answer["tags"]:  # along the same word a cycle of tags is as good if it begins later
        assert len(set(answer["words"])) == 1 and sorted(tags) == sorted(answer["tags"])
        return
    # A conditional random field sums over all words before and behind, in float32 in the graph.
    off = np.abs(outputs["scores"][:count] - answer["scores"])
    assert count == 0 or off.max() < max(TOLERANCE, 1e-5 * count)


def check_answer(outputs, answer):
    """The best piece, or one as good: windows of the same word again and again are alike."""
    near(outputs["null_score"], answer["null_score"])
    near(outputs["score"], answer["score"])
    if answer["answer"]:
        place = (outputs["start"], outputs["end"])
        tokens = {(token["start"], token["end"]): token for token in answer.get("n_best", [answer])}
        assert place in tokens
        near(tokens[place]["score"], answer["score"])
        assert outputs["answer"].decode() == tokens[place]["answer"]
    else:
        assert (outputs["answer"], outputs["start"], outputs["end"]) == (b"", 0, 0)


def check_spans(outputs, answer):
    spans = answer["spans"]
    assert outputs["lengths"] == len(spans)
    assert texts_of(outputs["labels"][: len(spans)]) == [span["label"] for span in spans]
    for column, key in (("starts", "start"), ("ends", "end")):
        assert outputs[column][: len(spans)].tolist() == [span[key] for span in spans]
    near(outputs["scores"][: len(spans)], [span["score"] for span in spans])


def check_clusters(outputs, answer):
    mentions = sorted(
        (mention["start"], mention["end"], number)
        for number, cluster in enumerate(answer["clusters"])
        for mention in cluster
    )
    count = outputs["lengths"]
    columns = (outputs[name][:count].tolist() for name in ("starts", "ends", "clusters"))
    assert sorted(zip(*columns, strict=True)) == mentions


CHECKS = {
    **dict.fromkeys(("classifier", "pair-classifier", "relation-classifier"), check_label),
    "multi-label": check_several,
    "regression": check_score,
    "multiple-choice": check_choice,
    "text-embedding": check_vector,
    **dict.fromkeys(("tagger", "tagger-crf", "semantic-roles"), check_words),
    "question-answering": check_answer,
    "span-classifier": check_spans,
    "coreference": check_clusters,
}
