"""Figures in a notebook's text are bound to the run, and those that are not are refused."""

import ast
import math

import pytest
from notebooks.metrics import question, stated, troubles, unbound


@pytest.mark.parametrize(
    "text, expression, low, high",
    [
        ("The share (`accuracy`) is between 80 % and 95.5 %.", "accuracy", 0.8, 0.955),
        ('At the end `found["f1"]` is above 0.7, which', 'found["f1"]', 0.7, math.inf),
        ("`loss` was\nbelow 8.6.", "loss", -math.inf, 8.6),
        ("To the last bit: `same` is true.", "same", 1, 1),
        ("Both (`a - b`) lie between -1 and 1,200", "a - b", -1, 1200),
        ("All names count in `f1`, which is between 0.6 and 1.", "f1", 0.6, 1),
    ],
)
def test_a_sentence_binds_an_expression_to_its_range(text, expression, low, high):
    (metric,) = stated(text)
    assert metric[:3] == (expression, low, high)
    assert unbound(text) == []
    for value, wrong in [(low, False), (high, False), (math.nan, True)]:
        assert bool(metric.trouble(value)) is wrong
    beyond = low - 0.01 if math.isfinite(low) else high + 0.01
    assert metric.said in metric.trouble(beyond)


def test_a_metric_that_nothing_binds_is_found_and_code_is_not():
    text = "It gets 93.1 % right, at a loss of 2.5 (`x` is 3.5), `rate=0.1`, [a](v1.2.html) of 128."
    assert unbound(text) == ["93.1 %", "2.5", "3.5"]
    assert unbound("```python\nx = 0.5\n```") == []


def test_the_question_asks_for_all_values_and_leaves_no_name(capsys):
    text = '`found["f1"]` is above 0.5. And `loss` is between 1 and 2.'
    metrics = stated(text)
    names = {"found": {"f1": 0.4}, "loss": 1.5}
    before = set(names)
    exec(compile(ast.parse(question(metrics)), "cell", "exec"), names)
    assert set(names) - {"__builtins__"} == before
    printed = capsys.readouterr().out
    assert troubles(metrics, printed) == [
        'the text says "`found["f1"]` is above 0.5", and the run came to 0.4.'
    ]
