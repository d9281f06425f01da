"""The picture of two models that were compared."""

import pytest
from matplotlib.figure import Figure

from keras_bert.pictures import comparison
from keras_bert.pictures.comparison import draw_comparison

DIFFERENCE = {"old": 0.5, "new": 0.6, "difference": 0.1, "low": -0.05, "high": 0.25}
COMPARED = {
    "examples": 1200,
    "metrics": {"accuracy": DIFFERENCE, "spearman": {"old": 0.1, "new": 0.2, "difference": 0.1}},
    "labels": {"ham": {**DIFFERENCE, "examples": 3}, "spam": {**DIFFERENCE, "new": 0.3}},
}


@pytest.fixture
def drawn(monkeypatch):
    def draw(compared):
        figure = Figure((9, 3))
        monkeypatch.setattr(comparison, "save_picture", lambda draw, path, size: draw(figure))
        draw_comparison(compared, "a.png")
        return figure.axes

    return draw


def test_intervals_of_differences_and_f1_of_labels(drawn):
    differences, labels = drawn(COMPARED)
    assert [tick.get_text() for tick in differences.get_yticklabels()] == ["accuracy"]
    (interval,) = differences.collections[0].get_segments()
    assert interval[:, 0].tolist() == [-0.05, 0.25]
    assert differences.collections[1].get_offsets()[:, 0].tolist() == [0.1]
    assert "1,200 examples" in differences.get_title(loc="left")
    assert [tick.get_text() for tick in labels.get_yticklabels()] == ["ham", "spam"]
    assert labels.collections[2].get_offsets()[:, 0].tolist() == [0.6, 0.3]


def test_without_labels_there_is_one_panel(drawn):
    assert len(drawn({name: x for name, x in COMPARED.items() if name != "labels"})) == 1


def test_the_file(tmp_path):
    path = draw_comparison(COMPARED, tmp_path / "a.png")
    assert path.read_bytes().startswith(b"\x89PNG")
