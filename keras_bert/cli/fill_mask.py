"""Say which words a masked language model would put in the place of [MASK].

keras-bert fill-mask --model FOLDER --text "She paid it into the [MASK]."
keras-bert fill-mask --model FOLDER --text "The [MASK] sat on the [MASK]." --top-k 3
"""

import shlex

from keras_bert.cli import flags

SUMMARY = "find the words for [MASK] in a text"


def add_arguments(parser, argv):
    from keras_bert.inference.settings import FillMaskSettings

    flags.add(parser, FillMaskSettings)


def run(arguments):
    settings = flags.read(arguments)
    from keras_bert.inference.fill_mask import fill_mask

    found = fill_mask(**settings)
    for number, candidates in enumerate(found, start=1):
        print("[MASK]" if len(found) == 1 else f"[MASK] {number} of {len(found)}")
        for token, probability in candidates:
            print(f"  {probability:8.4f}  {token}")
    print(
        f"Next: keras-bert finetune --task classifier --model {shlex.quote(arguments.model)} "
        "--train FILE --dev FILE --output DIR"
    )
