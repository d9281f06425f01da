"""What is odd among questions but no error: a person should know before a model learns it."""

from collections import Counter

from keras_bert.base.formatting import counted, quoted


def question_oddities(examples):
    """Lines for the user on `Question`s: what is odd, how often, and where the first one stands."""
    empty = [e for e in examples if not e.question.strip() or not e.context.strip()]
    lines = []
    if empty:
        lines.append(
            f"{_where(empty)}: {counted(len(empty), 'question')} without a word, or about a "
            "context without one."
        )
    return [*lines, *_wrong_offsets(examples), *_repeated(examples)]


def _wrong_offsets(examples):
    wrong = [
        (example, answer)
        for example in examples
        for answer in example.answers or ()
        if answer.start != answer.given_start
    ]
    if not wrong:
        return
    moved = sum(answer.start is not None for _, answer in wrong)
    yield (
        f"{_where([example for example, _ in wrong])}: {counted(len(wrong), 'answer')} not at the "
        f'"answer_start" given; {moved:,} moved to the nearest place that reads so, nothing is '
        f"learned from {len(wrong) - moved:,}."
    )


def _repeated(examples):
    counts = Counter(example.id for example in examples if example.id is not None)
    again = [id for id, count in counts.items() if count > 1]
    if again:
        first = next(example for example in examples if example.id == again[0])
        names = quoted(again, most=3)
        yield f"{_where([first])}: {counted(len(again), 'id')} of several questions ({names})."


def _where(examples):
    first = examples[0]
    return f"{first.source.name}, {first.place}" + (" and later" if len(examples) > 1 else "")
