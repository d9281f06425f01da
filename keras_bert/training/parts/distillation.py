"""A student that learns a teacher's answers, in a run of fine-tuning."""

from keras_bert.training.parts import Part


class Distillation(Part):
    """Gives the training examples the answers of the teacher, and the run the loss of these."""

    chief_only = False

    @classmethod
    def of(cls, run):
        return None if run.data.teaching is None else cls()

    def prepare(self, run):
        from keras_bert.tasks.losses import global_means

        teaching = run.data.teaching
        run.examples = run.splits[0] = teaching.examples(run.task, run.examples)
        run.losses = global_means(teaching.losses(run.task), over_epochs=True)

    def metrics(self, run, records):
        teaching = run.data.teaching
        return {
            "task": run.task.TASK_TYPE,
            "distillation": {
                "answers": len(teaching.answers),
                "labelled": int(teaching.known.sum()),
            },
        }
