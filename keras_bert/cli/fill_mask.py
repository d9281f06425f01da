"""Say which words a masked language model would put in the place of [MASK].

keras-bert fill-mask --model FOLDER --text "She paid it into the [MASK]."
keras-bert fill-mask --model FOLDER --text "The [MASK] sat on the [MASK]." --top 3
"""

SUMMARY = "find the words for [MASK] in a text"


def add_arguments(parser, argv):
    parser.add_argument(
        "--model",
        required=True,
        metavar="FOLDER",
        help="a model folder with a masked-LM head, or the output of pretrain",
    )
    parser.add_argument(
        "--text",
        required=True,
        metavar="TEXT",
        help="a text with [MASK] in it, once or several times",
    )
    parser.add_argument(
        "--top",
        type=int,
        default=5,
        metavar="N",
        help="candidates for each [MASK] (default: %(default)s)",
    )


def run(arguments):
    from keras_bert.inference.fill_mask import fill_mask

    found = fill_mask(model=arguments.model, text=arguments.text, top=arguments.top)
    for number, candidates in enumerate(found, start=1):
        print("[MASK]" if len(found) == 1 else f"[MASK] {number} of {len(found)}")
        for piece, probability in candidates:
            print(f"  {probability:8.4f}  {piece}")
    print(
        f"Next: keras-bert finetune --task classifier --model {arguments.model} "
        "--train FILE --dev FILE --output DIR"
    )
