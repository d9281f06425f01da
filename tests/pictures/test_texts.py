"""The map of many texts: where the points are, and their colours."""

import numpy as np
import pytest

from keras_bert.pictures import COLOURS
from keras_bert.pictures.texts import _coloured, draw_texts, project
from tests.messages import raises_input_error
from tests.seeds import make_rng

RNG = make_rng(2)


def test_points_keep_the_distances_of_vectors_in_a_plane():
    plane = RNG.normal(size=(9, 2)) * (3, 1)
    turned = np.linalg.qr(RNG.normal(size=(12, 2)))[0]  # two directions at right angles
    vectors = plane @ turned.T + RNG.normal(size=12)
    points, fractions = project(vectors)

    def distances(x):
        return np.linalg.norm(x[:, None] - x[None], axis=-1)

    np.testing.assert_allclose(distances(points), distances(plane), atol=1e-9)
    assert fractions.sum() == pytest.approx(1) and fractions[0] > fractions[1]
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-9)


def test_the_picture_is_the_same_whatever_signs_the_solver_takes():
    vectors = RNG.normal(size=(6, 4))
    points, _ = project(vectors)
    farthest = np.abs(points).argmax(axis=0)
    assert (points[farthest, [0, 1]] > 0).all()
    np.testing.assert_allclose(project(vectors[:, ::-1])[0], points, atol=1e-9)


def test_the_labels_of_most_texts_have_a_colour_and_others_are_counted():
    labels = [label for count, label in enumerate("abcdefgh", 1) for _ in range(count)]
    legend, colours = _coloured([*labels, None])
    names = [f"{label} ({count})" for label, count in zip("hgfedc", range(8, 2, -1), strict=True)]
    assert [name for name, _ in legend] == [*names, "2 other labels (3)", "no label (1)"]
    assert colours[0] == colours[-1] and colours[0] not in COLOURS  # of "a" and of no label
    assert [colours[labels.index(label)] for label in "hgfedc"] == [*COLOURS]
    assert _coloured([None, None]) == ([], [COLOURS[0]] * 2)


@pytest.mark.parametrize("labels", [None, ["a", None] * 15])
def test_it_is_written_the_same_each_time(labels, tmp_path):
    vectors = RNG.normal(size=(30, 5)).astype(np.float32)
    first = draw_texts(vectors, tmp_path / "map.png", labels=labels).read_bytes()
    assert first.startswith(b"\x89PNG") and 5_000 < len(first) < 200_000
    assert draw_texts(vectors, tmp_path / "map.png", labels=labels).read_bytes() == first


def test_of_very_many_texts_a_part_is_shown(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert.pictures.texts._MOST_POINTS", 10)
    labels = ["a"] * 30
    draw_texts(RNG.normal(size=(30, 5)), tmp_path / "map.png", labels=labels)


def test_vectors_of_one_number_have_a_picture():
    points, fractions = project(np.array([[1.0], [2.0]]))
    np.testing.assert_allclose(np.sort(points[:, 0]), [-0.5, 0.5])
    assert not points[:, 1].any()
    np.testing.assert_allclose(fractions, [1, 0])


@pytest.mark.parametrize(
    ("vectors", "labels", "message"),
    [
        (np.zeros((1, 4)), None, "two texts or more"),
        (np.zeros((3, 4)), None, "All vectors are the same"),
        (np.full((3, 4), np.nan), None, "NaN or infinite"),
        (np.eye(3), ["a"], "one for each of the 3 vectors. Received: 1"),
    ],
)
def test_rejects_what_cannot_be_drawn(vectors, labels, message, tmp_path):
    with raises_input_error(message):
        draw_texts(vectors, tmp_path / "map.png", labels=labels)
    assert not (tmp_path / "map.png").exists()
