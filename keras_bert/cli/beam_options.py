"""What a data job's command does not know is an option of Apache Beam, or a mistake."""

from keras_bert.base.errors import InputError

_WITH_A_HYPHEN = {"--job-server-timeout"}  # all other options of Beam's have underscores


def refuse_unknown(options):
    """Raises `InputError` for what is not an option of Beam's, which is loaded where it may be."""
    for option in options:
        name = option.split("=")[0]
        if "-" in name.removeprefix("--") and name.startswith("--") and name not in _WITH_A_HYPHEN:
            raise InputError(
                f"There is no option {name}, neither of this command nor of Apache Beam; see "
                "--help for this command's own."
            )
    if options:
        from data_gen.runner import options as check

        check(options)
