"""Predictions as HTML."""

import re

from keras_bert import show_predictions


def text_of(html):
    return re.sub(r"<[^>]*>", "", html)


def test_entities_and_nested_spans_are_marked():
    text = "the Bank of Riga & <Co>"
    spans = [
        {"start": 12, "end": 16, "label": "LOC"},
        {"start": 0, "end": 16, "label": "ORG"},
    ]
    for key in ("spans", "entities"):
        html = show_predictions([{"text": text, key: spans}])._repr_html_()
        assert text_of(html) == "the Bank of Riga LOC ORG &amp; &lt;Co&gt;"
        assert html.count("<span") == html.count("</span>") == 2
        assert html.index("Bank") < html.index("Riga") and "</small></span> <small>ORG" in html


def test_an_answer_is_marked_in_its_context():
    prediction = {"question": "Who?", "answer": "Ann", "start": 3, "end": 6, "score": 0.5}
    html = show_predictions([prediction], texts=["by Ann Lee"])._repr_html_()
    assert "<b>Who?</b> 0.50<br>by <mark>Ann</mark> Lee" in html


def test_other_predictions_are_a_table_and_stay_what_they_are():
    predictions = [{"text": "win", "label": "spam", "score": 0.5, "probabilities": {"spam": 0.5}}]
    shown = show_predictions(iter(predictions))
    assert shown == predictions and ">spam</td>" in shown._repr_html_()
    assert "probabilities" not in shown._repr_html_()
    assert show_predictions([]) == []
    question = {"question": "Who?", "answer": "", "start": 0, "end": 0, "score": 0.5}
    assert ">Who?</td>" in show_predictions([question])._repr_html_()
