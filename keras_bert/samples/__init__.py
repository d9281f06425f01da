"""Text that comes with the package: labelled messages, tagged sentences, and raw text."""

from pathlib import Path

_HERE = Path(__file__).parent

# A TSV with a header, `text` and `label` (spam or ham), for each of train, dev and test.
MESSAGES = {split: _HERE / "messages" / f"{split}.tsv" for split in ("train", "dev", "test")}
# Words and their parts of speech, of sentences of the messages of the same split.
TAGS = {split: _HERE / "tags" / f"{split}.conll" for split in ("train", "dev", "test")}
