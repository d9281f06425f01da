"""`keras-bert doctor`: shows the diagnosis of an installation."""

import sys

from keras_bert.cli.command import command
from keras_bert.diagnosis import diagnose


@command("doctor", "show what is installed and what is missing")
def doctor(settings, arguments):
    """Show what is installed, on which machine, and what each missing extra would add.

    keras-bert doctor

    The exit status is 1 if a version is not supported or a library cannot be loaded.
    """
    diagnosis = diagnose()
    for title, rows in diagnosis["sections"].items():
        print(f"{title}:")
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            print(f"  {name:<{width}}  {value}")
    for problem in diagnosis["problems"]:
        print(problem)
    for note in diagnosis["notes"]:
        print(f"Note: {note}")
    if diagnosis["problems"]:
        sys.exit(1)
    print("No problems found.")
    return "keras-bert, which shows the pipeline from text to a served model."
