"""Sentences on what is off with a run's examples and results, in metrics.json and for the user."""

from keras_bert.training.parts import Part


class Findings(Part):
    """The `warnings` of metrics.json: those of the other parts, of the examples, of the curve."""

    def metrics(self, run, records):
        from keras_bert.tasks.findings import (
            LEAVE_DEV_OUT,
            advice_of_defaults,
            example_findings,
            result_and_loss_findings,
        )

        chosen, dev = run.data.chosen, run.data.dev
        advice = None
        if dev is not None:
            advice = advice_of_defaults(run.settings, run.default_settings, chosen)
        return {
            "warnings": [
                *(finding for part in run.parts for finding in part.findings(run)),
                *example_findings(
                    run.examples.examples, dev and dev.examples, advice=LEAVE_DEV_OUT
                ),
                *result_and_loss_findings(
                    run.task,
                    run.metrics["dev"],
                    records,
                    steps_per_epoch=run.plan.evaluate_every,
                    defaults=advice,
                    chosen=chosen,
                ),
            ]
        }

    def notes(self, run):
        return (f"Warning: {line}" for line in run.metrics["warnings"])
