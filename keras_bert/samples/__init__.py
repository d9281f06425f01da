"""Samples that come with the package: labelled messages, sentences and questions."""

from pathlib import Path

_HERE = Path(__file__).parent

# A TSV with a header, `text` and `label` (spam or ham), for each of train, dev and test.
MESSAGES = {split: _HERE / "messages" / f"{split}.tsv" for split in ("train", "dev", "test")}

# Words and their parts of speech, of sentences of the messages of the same split.
TAGS = {split: _HERE / "tags" / f"{split}.conll" for split in ("train", "dev", "test")}

# CoNLL for each of train and test: a word, its part of speech, and its name in BIO.
SENTENCES = {split: _HERE / "sentences" / f"{split}.conll" for split in ("train", "test")}

# JSON Lines with the same sentences: `words` and `spans`, nested ones among them.
NAMES = {split: _HERE / "sentences" / f"{split}.jsonl" for split in ("train", "test")}

# SQuAD 2.0 for each of train and test.
QUESTIONS = {split: _HERE / "questions" / f"{split}.json" for split in ("train", "test")}

# A TSV with a header: `text`, with a word marked as in **bank**, and `sense`, such as bank%river.
SENSES = _HERE / "senses" / "senses.tsv"
