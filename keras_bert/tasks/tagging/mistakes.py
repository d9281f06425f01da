"""Wrongly tagged sentences as a person reads them."""

from keras_bert.readers.schemes import spans_of


def tagging_mistakes(answers, examples, *, scheme):
    """A list of (how bad, description) of the answers with a wrong tag.

    How bad is the sum of the probabilities with which wrong tags were given. Of chunks, those that
    are expected and those that were found are shown, of other tags each wrong word.
    """
    found = []
    for answer, example in zip(answers, examples, strict=True):
        pairs = list(zip(example.tags, answer["tags"], strict=True))
        wrong = [place for place, (truth, said) in enumerate(pairs) if truth != said]
        if not wrong:
            continue
        where = f"{example.source.name}, line {example.line}: {' '.join(answer['words'])}"
        if scheme is None:
            lines = [
                f'  "{answer["words"][place]}" is {pairs[place][0]}, found as {pairs[place][1]} '
                f"({answer['scores'][place]:.2f})"
                for place in wrong
            ]
        else:
            lines = [
                f"  {name}: {_chunks(answer['words'], tags)}"
                for name, tags in (("expected", example.tags), ("found", answer["tags"]))
            ]
        badness = sum(answer["scores"][place] for place in wrong)
        found.append((badness, "\n".join([where, *lines])))
    return found


def _chunks(words, tags):
    chunks = [
        f'{span.kind} "{" ".join(words[span.start : span.end])}"'.strip() for span in spans_of(tags)
    ]
    return ", ".join(chunks) or "nothing"
