"""Few labels: the encoder is trained on pairs of texts, and the head is a logistic regression.

After Tunstall et al. 2022, "Efficient Few-Shot Learning Without Prompts" (SetFit).
"""

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import Settings, optimisation_setting
from keras_bert.training.parts import Part

# Settings of a head that is trained by its own loss, or evaluated meanwhile, with the defaults.
_NOT_WITH = (
    ("freeze_encoder", False),
    ("gradual_unfreezing", False),
    ("patience", None),
    ("lm_loss_weight", 0.0),
    ("class_weights", "none"),
    ("hidden_layers", 0),
    ("dropout", None),
    ("static_vectors", None),
)

# Up to so many texts of each of two labels it was measured better than other training, and of eight
# labels it was not (docs/training.md).
_FEW = 64


class ContrastiveSettings(Settings):
    """The setting `contrastive`."""

    contrastive: bool = optimisation_setting(
        False,
        help="for few labels: train the encoder so that texts with the same label are near each "
        "other and others are not, and make the head by logistic regression (SetFit)",
        common=True,
    )

    def check(self):
        super().check()
        if not self.contrastive:
            return
        if self.task != "classifier":
            raise InputError.naming("{contrastive} is for {task} classifier, not {}.", self.task)
        for name, default in _NOT_WITH:
            if getattr(self, name, default) != default:
                raise InputError.naming(
                    "{contrastive} has no use for {}: the encoder is trained on pairs, and the "
                    "head afterwards. Leave one of them out.",
                    argument(name),
                )
        if getattr(self, "long_texts", None) == "windows":
            raise InputError.naming(
                "{contrastive} reads one vector of a text, and {long_texts} windows several. Leave "
                "one of them out."
            )


class Contrastive(Part):
    """Trains the vectors of the texts in place of the task, and then fits the head to them."""

    chief_only = False

    @classmethod
    def of(cls, run):
        return cls() if run.settings.contrastive else None

    def prepare(self, run):
        from keras_bert.tasks.losses import LossOfWholeBatch
        from keras_bert.training.contrastive import (
            EvenBatches,
            LabelCosines,
            check_labels,
            vector_model,
        )

        check_labels(run.examples)
        run.model = vector_model(run.task)
        loss = LabelCosines()
        run.losses = {"vector": LossOfWholeBatch(loss) if run.devices.replicas > 1 else loss}
        run.splits = [EvenBatches(run.examples)]  # there is no head to evaluate yet

    def select(self, run, records):
        from keras_bert.tasks.outputs import Outputs
        from keras_bert.training.contrastive import fit_head

        vectors = Outputs(run.model, batch_size=run.settings.batch_size)(run.examples)["vector"]
        fit_head(run.task, vectors, run.examples.labels["logits"])
        run.report("The head is a logistic regression on the vectors of the training examples.")
        step = records[-1]["step"]
        epoch = -(-step // run.plan.evaluate_every)
        run.kept = {"which": "last", "epoch": epoch, "step": step}
        if run.dev is not None:
            run.outputs = Outputs(run.task, batch_size=run.settings.batch_size)(run.dev)
            metrics = run.dev_metrics()
            records[-1]["eval"] = {n: x for n, x in metrics.items() if isinstance(x, float)}

    def metrics(self, run, records):
        return {"kept": run.kept, "best_metric": run.task.METRIC}


def line_on_few_labels(settings, examples, labels):
    """A line on a run without `contrastive` that has few examples of two labels, or None.

    It is for a model with a pooling of its own, as models of text vectors have.
    """
    if settings.task != "classifier" or settings.contrastive or settings.freeze_encoder:
        return None
    if len(labels) != 2 or len(examples) > _FEW * len(labels):
        return None
    return (
        f"Note: with up to {_FEW} examples of each of two labels a model of text vectors was more "
        "accurate by `contrastive=True` (--contrastive)."
    )
