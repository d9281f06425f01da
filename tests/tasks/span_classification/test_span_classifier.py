"""Spans that lie in one another: learned from a file, found in texts, saved and served."""


def test_learns_spans_that_lie_in_one_another(run):
    output, metrics, reported = run
    print(metrics["dev"], reported)
    assert metrics["dev"]["f1"] > 0.95
