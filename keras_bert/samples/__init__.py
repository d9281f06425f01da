"""Text that comes with the package: labelled messages, and Python's own manual."""

from pathlib import Path

# A TSV with a header, `text` and `label` (spam or ham), for each of train, dev and test.
MESSAGES = {
    split: Path(__file__).parent / "messages" / f"{split}.tsv" for split in ("train", "dev", "test")
}
