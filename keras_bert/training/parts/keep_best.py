"""Which model a run of fine-tuning keeps: that of the best epoch on the dev data, or the last."""

from keras_bert.base.errors import InputError
from keras_bert.base.settings import Settings, optimisation_setting
from keras_bert.training.parts import Part
from keras_bert.training.selection import best_record

BEST, LAST = KEEP = ("best", "last")


class KeepSettings(Settings):
    """The setting `keep`."""

    keep: str = optimisation_setting(
        BEST,
        help="keep the model of the epoch with the best metric on the dev data, or of the last "
        "epoch",
        choices=KEEP,
    )


class KeepBest(Part):
    """Stores the best weights so far, restores them in the end, and says which were kept."""

    chief_only = False

    @classmethod
    def of(cls, run):
        return None if run.settings.contrastive else cls()

    def callbacks(self, run):
        from keras_bert.training.checkpoint import BestModel

        if run.settings.keep == LAST or not run.devices.is_chief:
            return []
        return [BestModel(run.task, run.folder.best, run.history)]

    def select(self, run, records):
        from keras_bert.training.checkpoint import restore_best

        keep, steps_of_epoch = run.settings.keep, run.plan.evaluate_every
        record = records[-1] if keep == LAST else best_record(records, run.task.METRIC)
        if record is None:
            raise InputError.naming(
                "A callback stopped the run after step {}, before the first evaluation, after step "
                "{}. Use {keep} last to keep its model.",
                records[-1]["step"],
                steps_of_epoch,
            )
        if keep == BEST and run.devices.is_chief:
            restore_best(run.task, run.folder.best)
        epoch = record["step"] // steps_of_epoch
        run.report(
            f"Kept the model of epoch {epoch} of {run.settings.epochs}, the {keep} one"
            f"{' on the dev data' if keep == BEST else ''}."
        )
        run.kept = {"which": keep, "epoch": epoch, "step": record["step"]}
        if run.dev is not None:
            run.outputs = run.source.outputs_at(record["step"])

    def metrics(self, run, records):
        return {"kept": run.kept, "best_metric": run.task.METRIC}
