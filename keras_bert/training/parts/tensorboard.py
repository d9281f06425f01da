"""TensorBoard: the curves of a run, in OUTPUT/logs."""

from keras_bert.training.parts import Part


class TensorBoard(Part):
    """Writes every record for TensorBoard."""

    FILES = ("logs",)

    def callbacks(self, run):
        from keras_bert.training.logs import TensorBoardHistory

        outputs = list(run.task.output)
        return [TensorBoardHistory(run.folder.logs, run.history, run.constants, outputs=outputs)]
