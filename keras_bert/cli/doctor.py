"""Say what is installed, on which machine, and what each missing extra would give.

keras-bert doctor

Exit status 1 where something is installed in a version that does not go with the others.
"""

import sys

SUMMARY = "say what is installed here, and what is not"


def add_arguments(parser, argv):
    pass


def run(arguments):
    from keras_bert.cli.diagnosis import diagnose

    found = diagnose()
    for title, rows in found["sections"].items():
        print(f"{title}:")
        width = max(len(name) for name, _ in rows)
        for name, said in rows:
            print(f"  {name:<{width}}  {said}")
    for problem in found["problems"]:
        print(problem)
    if found["problems"]:
        sys.exit(1)
    print("Nothing is amiss. Next: keras-bert, which shows the way from text to a served model.")
