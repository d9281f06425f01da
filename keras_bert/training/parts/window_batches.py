"""The batches of static vectors' windows, whose number is known only after they were made."""

from keras_bert.training.parts import Part


class WindowBatches(Part):
    """Stores at each checkpoint how many batches the shards so far have given, for resuming."""

    @classmethod
    def of(cls, run):
        return None if run.source.window_batches is None else cls()

    def callbacks(self, run):
        from keras_bert.training.pretraining_examples import StoreWindowBatches

        return [StoreWindowBatches(run.folder, run.source, run.plan)]
