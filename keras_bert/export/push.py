"""Publishes a model folder on the Hugging Face hub."""

from keras_bert.base.errors import InputError
from keras_bert.base.files import held_names, read_small
from keras_bert.base.settings import takes
from keras_bert.checkpoints import find_model_folder, hub, safetensors_files
from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint
from keras_bert.checkpoints.settings import PushSettings
from keras_bert.text.vocabulary import TOKENIZER_FILES
from keras_bert.training.monitoring import model_card

_FILES = {"config.json", "model.safetensors", *TOKENIZER_FILES}


@takes(PushSettings)
def push(**settings) -> str:
    """Publishes a model folder under a name on the hub, in one commit, with its model card.

    The folder is opened first, with every check that loading it makes. Pushed are its config, its
    weights, its tokenizer and README.md, in which the name on the hub is put in; where there is no
    README.md, a card is made of what the config says. What else lies in the folder stays here, and
    what lies on the hub is replaced file by file.

    Args:
        {settings}

    Returns:
        The address of the commit.

    Raises:
        InputError: the folder is none, or one of its files is a link to a file outside; the name is
            none, is not yours to write, or is that of a public repository where `private` is asked
            for; the hub cannot be reached, or huggingface_hub is not installed.
    """
    settings = PushSettings.of(settings)
    repo, revision = hub.parsed(f"{hub.SCHEME}{settings.to.removeprefix(hub.SCHEME)}")
    if revision is not None:
        raise InputError("Give the branch as `revision`, not in the name.")
    folder = find_model_folder(settings.model)
    opened = PretrainedCheckpoint(folder)
    if not (folder / safetensors_files.FILE).is_file():
        raise InputError(
            f"{folder} has its weights in several files or in another form than "
            f"{safetensors_files.FILE}, which is what is pushed: keras-bert convert writes it anew."
        )
    names = [name for name in held_names(folder) if name in _FILES or name == model_card.FILE]
    link = hub.outside(folder, names)
    if link is not None:
        raise InputError(
            f"{folder / link[0]} is a link to {link[1]}, outside the model folder. Put a copy of "
            "the file in its place, if it is to be published."
        )
    card = folder / model_card.FILE
    text = (
        read_small(card).decode("utf-8", errors="replace")
        if card.is_file()
        else model_card.model_card(opened.values)
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
