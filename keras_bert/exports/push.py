"""Publishes a model folder on the Hugging Face hub."""

from keras_bert.base.errors import InputError
from keras_bert.base.files import read_small
from keras_bert.base.ownership import held_names
from keras_bert.base.settings import takes
from keras_bert.checkpoints import find_model_folder, hub, model_card, tensor_files
from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint
from keras_bert.checkpoints.settings import PushSettings
from keras_bert.text.vocabulary import TOKENIZER_FILES

_FILES = {"config.json", tensor_files.FILE, *TOKENIZER_FILES, model_card.FILE}


@takes(PushSettings)
def push(**settings) -> str:
    """Publishes a model folder under a name on the hub, in one commit, with its model card.

    The folder is opened first, with every check of loading it. Its config, weights, tokenizer and
    README.md are pushed, with the name on the hub put into the README.md. Without a README.md, a
    card is made from the config. Other files are not pushed, and other files on the hub are kept.

    Args:
        **settings: the fields of `PushSettings`.

    Returns:
        The address of the commit.

    Raises:
        InputError: the folder is not a model folder, or one of its files is a link to a file
            outside; the name is invalid, is not yours to write, or is that of a public repository
            although `private` is asked for; or the hub cannot be reached.
    """
    settings = PushSettings.of(settings)
    repo, revision = hub.parsed(f"{hub.SCHEME}{settings.to.removeprefix(hub.SCHEME)}")
    if revision is not None:
        raise InputError.naming("Give the branch as {revision}, not in the name.")
    folder = find_model_folder(settings.model)
    checkpoint = PretrainedCheckpoint(folder)
    if not (folder / tensor_files.FILE).is_file():
        raise InputError(
            f"{folder} has its weights in another form than {tensor_files.FILE}, which is the only "
            "one that is pushed. Write it with keras-bert convert."
        )
    names = [name for name in held_names(folder) if name in _FILES]
    link = hub.link_outside(folder, names)
    if link is not None:
        raise InputError(
            f"{folder / link[0]} is a link to {link[1]}, outside the model folder. Replace it with "
            "a copy of the file if you want to publish it."
        )
    card = folder / model_card.FILE
    text = (
        read_small(card).decode("utf-8", errors="replace")
        if card.is_file()
        else model_card.model_card(checkpoint.config_json, name=repo.partition("/")[2])
    )
    files = {name: str(folder / name) for name in names}
    files[model_card.FILE] = text.replace(model_card.NAME, repo).encode()
    return hub.upload(
        repo,
        files,
        private=settings.private,
        revision=settings.revision,
        message=settings.message,
    )
