"""A fine-tuned task that a run continues with, and the lines for the user on its head."""

import numpy as np

from keras_bert.base.formatting import listed, quoted
from keras_bert.checkpoints.model_folder import head_scale
from keras_bert.heads import MIXES


class EarlierTask:
    """A fine-tuned task with which a run of the same class continues.

    Attributes: `labels`; `columns`, those of its training data; `options`, its settings by the
    names of a run's, except those that are tuned again; `static_vectors`, the config of its static
    vectors, or None.

    Args:
        task: the task. Only numbers are kept of it: a run builds its own.
    """

    def __init__(self, task):
        self.labels = tuple(task.labels) if task.MIN_LABELS else ()
        self.options = {
            name: getattr(task.settings, name)
            for name in task.stored_settings()
            if name not in task.tuned
        }
        self._mix = task.reader.mix
        self.options["layers"] = task.reader.layers
        if self._mix is not None:
            self.options["scalar_mix_l2"] = self._mix["l2"]
            self.options["scalar_mix_layer_norm"] = self._mix["layer_norm_eps"] is not None
        self._first_label = task.FIRST_LABEL
        self.columns = task.columns
        vectors = task.reader.static_vectors
        self.static_vectors = None if vectors is None else vectors.config
        self._reads = _reads(task)
        self._heads = {
            head: [weight * head_scale(task, head) for weight in task.heads[head].get_weights()]
            for head in _own_heads(task)
        }

    def options_not_given(self, settings, given):
        """The options of the task that the caller does not give."""
        names = {name for name, value in given.items() if value is not None}
        if "layers" in names and settings.layers not in MIXES:
            names |= {"scalar_mix_l2", "scalar_mix_layer_norm"}
        return {name: value for name, value in self.options.items() if name not in names}

    def has_labels(self, labels):
        """Whether these are the task's labels, in any order."""
        return set(labels) == set(self.labels)

    def shares_labels(self, labels):
        """Whether two of these are the task's labels, or its only one."""
        return len({*labels} & {*self.labels}) >= min(2, len(self.labels), len({*labels}))

    def options_with(self, labels):
        """The names of the options that a task with other labels cannot have."""
        lists = [name for name, value in self.options.items() if isinstance(value, list)]
        null_label = self.options.get("null_label")
        return [*lists, *(["null_label"] if null_label not in (None, *labels) else [])]

    def layer_norm_eps(self, default):
        """The epsilon of a mix with LayerNorm: the task's own, if it has one."""
        epsilon = self._mix and self._mix["layer_norm_eps"]
        return default if epsilon is None else epsilon

    def continue_in(self, task):
        """Puts the heads into a task that reads the same of the encoder.

        Returns (heads of the task that continue, those that are new, heads of this one that are not
        used). After a new head all are new: they would read something else than they were trained
        on.
        """
        (mix, rest), (earlier_mix, earlier_rest) = _reads(task), self._reads
        continued, new = [], []
        for head in _own_heads(task):
            layer, weights = task.heads[head], self._weights(task, head)
            shapes = [weight.shape for weight in layer.weights]
            same = mix == earlier_mix and (rest == earlier_rest or head == "scalar_mix")
            if same and not new and weights and shapes == [weight.shape for weight in weights]:
                layer.set_weights([weight / head_scale(task, head) for weight in weights])
                continued.append(head)
            else:
                new.append(head)
        lost = [head for head in self._heads if head in new or head not in task.heads]
        return continued, new, lost

    def _weights(self, task, head):
        """The weights of a head for a task, or None.

        If the labels are others, the items of those that both have are this task's, and all
        others are new.
        """
        weights = self._heads.get(head)
        if not weights or not task.MIN_LABELS or head not in task.LABELLED_HEADS:
            return weights
        if self.labels == tuple(task.labels):
            return weights
        here = {label: number for number, label in enumerate(task.labels)}
        pairs = [(n, here[label]) for n, label in enumerate(self.labels) if label in here]
        first = self._first_label
        before, now = (np.array(x) + first for x in zip(*pairs, strict=True))
        before, now = (np.concatenate([np.arange(first), x]) for x in (before, now))
        scale, kept = head_scale(task, head), []
        for new, old in zip(task.heads[head].get_weights(), weights, strict=True):
            axes = {axis % new.ndim for axis in task.LABELLED_HEADS[head]}
            if any(new.shape[axis] != old.shape[axis] for axis in {*range(new.ndim)} - axes):
                return None
            new = new * scale
            ranges = [[np.arange(size)] * 2 for size in new.shape]
            for axis in axes:
                ranges[axis] = [now, before]
            to, from_ = (np.ix_(*numbers) for numbers in zip(*ranges, strict=True))
            new[to] = old[from_]
            kept.append(new)
        return kept


def _own_heads(task):
    """The heads of a task without its transform, whose weights come with the encoder's."""
    return [head for head in task.heads if head != "transform"]


def _reads(task):
    """-> (how a task mixes layers, what it reads of the mix or of the encoder).

    Heads can be exchanged between tasks for which this is equal.
    """
    mix = task.reader.mix and task.reader.mix["layer_norm_eps"]
    return (task.reader.layers, mix), (
        task.ENCODER_OUTPUTS,
        getattr(task.settings, "pooling", None),
        task.reader.static_vectors is not None,
    )


def line_on_continued(settings, options, same, new, lost):
    """A line on what a run keeps of an earlier task.

    The heads are those of it that are the `same`, that are `new`, and that are `lost`.
    """
    now = {name: getattr(settings, name) for name in options}
    is_lost = not set(new).isdisjoint(lost)  # what it read is not there any more
    subject = "its options, without its head, which reads something else" if is_lost else "its head"
    parts = [f"Continuing with {subject} ({_described(now) or 'no options'})."]
    changed = [
        f"{name} {now[name]}, was {was}" for name, was in options.items() if now[name] != was
    ]
    if changed:
        parts.append(f"Changed: {'; '.join(changed)}.")
    texts = (
        ("Kept", same if is_lost else ()),
        ("New, from random weights", new),
        ("Not kept", lost),
    )
    for text, heads in texts:
        if heads:
            parts.append(f"{text}: {listed(head.removesuffix('_layer') for head in heads)}.")
    return " ".join(parts)


def line_on_new_head(why, earlier, options):
    """A line on a model whose head a run cannot use, and on its options, of which some are used."""
    if earlier is None:
        return f"The head is new: {why} Its own head and options are not kept."
    left = {name: value for name, value in earlier.options.items() if name not in options}
    line = f"The head is new: {why} Its own head is not kept ({_described(left) or 'no options'})."
    reading_options = _described(options)
    return (
        f"{line} Its options for reading files are kept: {reading_options}."
        if reading_options
        else line
    )


def line_on_labels(earlier, labels):
    """A line on a head that continues with other labels: which are kept, new and left out."""
    kept = [label for label in labels if label in earlier]
    parts = {
        "New, from random weights": [label for label in labels if label not in earlier],
        "Left out": [label for label in earlier if label not in labels],
    }
    line = f"The weights of the labels that stay are kept: {quoted(kept, most=10)}."
    return line + "".join(
        f" {what}: {quoted(some, most=10)}." for what, some in parts.items() if some
    )


def _described(options):
    shown = ((name, value) for name, value in options.items() if value not in (None, False))
    return ", ".join(name if value is True else f"{name} {value}" for name, value in shown)
