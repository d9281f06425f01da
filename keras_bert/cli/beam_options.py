"""What a data job's command does not know is an option of Apache Beam, or a mistake."""

from keras_bert.errors import InputError

_WITH_A_HYPHEN = {"--job-server-timeout"}  # all other options of Beam's have underscores


def refuse_misspelt(options):
    """Raises `InputError` for what cannot be an option of Beam's, without loading Beam."""
    for option in options:
        name = option.split("=")[0]
        if "-" in name.removeprefix("--") and name.startswith("--") and name not in _WITH_A_HYPHEN:
            raise InputError(
                f"There is no option {name}, neither of this command nor of Apache Beam; see --help"
            )
