"""What a model in training says in the place of some masked tokens, as a person reads it."""

import numpy as np

from keras_bert.inference.fill_mask import likeliest

_ROWS = 4
_PLACES_A_ROW = 2
_TOKENS_BESIDE = 10
_TOP = 5


class MaskExamples:
    """The same few places in every call: the first rows of a batch, and in each the first [MASK]s.

    Calling it gives a list of dictionaries, as JSON holds them: the text `before` and `after` the
    place, the piece that is `expected` there, and the `candidates`, (piece, probability) pairs, the
    likeliest first. Pieces are named as `fill_mask` names them.

    Args:
        task: a pre-training task with the output `masked_lm` and a tokenizer.
        batch: (x, y, sample_weight) of held-out rows, as the task takes them.
    """

    def __init__(self, task, batch):
        x, y, weights = batch
        self.task = task
        self._inputs = {name: np.asarray(x[name])[:_ROWS] for name in task.encoder.input_names}
        positions, labels, counts = (
            np.asarray(part)[:_ROWS]
            for part in (x["masked_lm_positions"], y["masked_lm"], weights["masked_lm"])
        )
        seen = np.take_along_axis(self._inputs["input_ids"], positions, axis=1)  # (R, P)
        usable = (counts > 0) & (seen == task.tokenizer.vocabulary.mask_id)
        first = usable & (np.cumsum(usable, axis=1) <= _PLACES_A_ROW)
        self._positions = positions.astype(np.int32)
        self._places = [(row, p, int(labels[row, p])) for row, p in np.argwhere(first)]

    def __call__(self):
        # Not a compiled function: tracing one would take longer than all calls of many a run.
        hidden = self.task.encoded(self._inputs, training=False)["sequence_output"]
        logits = self.task.lm_head(hidden, self._positions, training=False)
        logits = np.asarray(logits, np.float32)  # (R, P, V)
        return [self._example(row, p, label, logits[row, p]) for row, p, label in self._places]

    def _example(self, row, prediction, expected, logits):
        vocabulary = self.task.tokenizer.vocabulary
        ids = self._inputs["input_ids"][row][self._inputs["input_mask"][row] > 0]
        place = self._positions[row, prediction]
        return {
            "before": vocabulary.join(ids[max(0, place - _TOKENS_BESIDE) : place]),
            "after": vocabulary.join(ids[place + 1 : place + 1 + _TOKENS_BESIDE]),
            "expected": vocabulary.piece_name(expected),
            "candidates": [
                [piece, round(probability, 4)]
                for piece, probability in likeliest(logits, vocabulary, _TOP)
            ],
        }
