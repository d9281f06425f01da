"""Sentences with a tag a word, from CoNLL, CoNLL-U, JSON Lines or (without tags) plain lines."""

from collections.abc import Iterator
from itertools import chain, islice

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json
from keras_bert.readers.conll import (
    choose_conll_columns,
    conll_sentences,
    looks_like_conll,
)
from keras_bert.readers.conllu import (
    COLUMNS,
    choose_conllu_column,
    conllu_sentences,
    looks_like_conllu,
)
from keras_bert.readers.given_sentences import GivenSentences
from keras_bert.readers.tables import SAMPLE_LINES
from keras_bert.readers.tagged_objects import TaggedObjects
from keras_bert.readers.tagged_tfds import TaggedTfds
from keras_bert.readers.tagged_words import TaggedWords, sentence_of_text
from keras_bert.readers.text_file import TextFile
from keras_bert.readers.tfds import PREFIX


def open_tagged_words(data, **options):
    """`TaggedFile` of a path (or `-`), `TaggedTfds` of `tfds:…`, `GivenSentences` of a sequence.

    `options` are those of `TaggedFile`; columns can be said of a file only.

    Raises InputError: see there.
    """
    if isinstance(data, str) and data.startswith(PREFIX):
        names = ("word_column", "tag_column", "need_tags", "pretokenized")
        return TaggedTfds(data, **{name: options[name] for name in names if name in options})
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        return TaggedFile(data, **options)
    for name in ("word_column", "tag_column"):
        if options.get(name) is not None:
            raise InputError(f"`{name}` is for files; the given sentences have no columns.")
    return GivenSentences(
        data,
        need_tags=options.get("need_tags", True),
        pretokenized=options.get("pretokenized", False),
    )


class TaggedFile(TextFile):
    """One pass over the `TaggedWords` of a file, or of standard input (`-`), streaming.

    What it is is told by its content: CoNLL, CoNLL-U, JSON Lines with "words" and "tags", or plain
    lines, which have no tags and are split by a tokenizer later.

    Args:
        path: a path, or `-`.
        word_column, tag_column: a number from 1, a key of JSON objects, or a name of CoNLL-U's
            columns (FORM and UPOS there, where they are None); None leaves it to the content.
        labels: the tags that a model knows, by which its column is recognised.
        like: another file read before: where this one has the same form, so are its columns.
        need_tags: whether a file without tags is an error.
        pretokenized: plain lines are words parted by spaces.

    Attributes: `name`, `kind` ("conll", "conllu", "jsonl" or "lines"), `labelled` (whether it has
    tags), `columns` (of CoNLL), and `description`, a line for the user.

    Raises InputError at opening, or when a bad line is reached, which it names.
    """

    def __init__(
        self,
        path,
        *,
        word_column=None,
        tag_column=None,
        labels=None,
        like=None,
        need_tags=True,
        pretokenized=False,
    ):
        super().__init__(path)
        self._need_tags = need_tags
        self._pretokenized = pretokenized
        self.columns = None
        with self.closed_on_error():
            lines = self._lines()
            head = self._head(lines)
            told = word_column is not None or tag_column is not None
            self.kind = self._kind(head, lines, labels=labels, is_table=need_tags or told)
            if self.kind == "conll":
                head += islice(lines, max(0, SAMPLE_LINES - len(head)))
            self._rest = chain(head, lines)
            columns = {"word": word_column, "tag": tag_column}
            if self.kind == "conll":
                self._examples = self._conll(head, **columns, labels=labels, like=like)
            elif self.kind == "conllu":
                self._examples = self._conllu(**columns)
            elif self.kind == "jsonl":
                self._examples = self._json_lines(head[-1], **columns)
            else:
                self._examples = self._plain_lines()

    def __iter__(self) -> Iterator[TaggedWords]:
        """Yields the sentences; may be called once."""
        with self._closer:
            yield from self._examples

    def _head(self, lines):
        """The lines up to the first that holds something and is no comment of CoNLL-U."""
        head = []
        for number, line in lines:
            head.append((number, line))
            if line.strip() and not line.startswith("#"):
                return head
        if not any(line.strip() for _, line in head):
            raise InputError(f"{self.name} is empty; at least one sentence is needed.")
        return head

    def _kind(self, head, lines, *, labels, is_table):
        _, line = head[-1]
        if _is_json_object(line):
            return "jsonl"
        if looks_like_conllu(line):
            return "conllu"
        if is_table or "\t" in line.strip():
            return "conll"
        if self.name != "standard input":  # a pipe is answered line by line
            head += islice(lines, SAMPLE_LINES)
            if looks_like_conll(head, labels=labels):
                return "conll"
        return "lines"

    def _conll(self, head, *, word, tag, labels, like):
        self.columns = choose_conll_columns(
            head, self, word=word, tag=tag, labels=labels, need_tags=self._need_tags
        )
        theirs = getattr(like, "columns", None)
        form = (self.columns.width, self.columns.tabs)
        if theirs is not None and word is tag is None and form == (theirs.width, theirs.tabs):
            self.columns = theirs
        self.labelled = self.columns.tag is not None
        self.description = f"{self.name}: {self.columns.describe()}"
        return self._of_table(conll_sentences(self._rest, self, self.columns))

    def _conllu(self, *, word, tag):
        word = choose_conllu_column(word, default="FORM", source=self)
        tag = choose_conllu_column(tag, default="UPOS", source=self)
        self.labelled = True
        self.description = f"{self.name}: CoNLL-U, word in {COLUMNS[word]}, tag in {COLUMNS[tag]}"
        return self._of_table(
            conllu_sentences(self._rest, self, word=word, tag=tag, need_tags=self._need_tags)
        )

    def _of_table(self, sentences):
        for words, tags, lines, document in sentences:
            yield TaggedWords(lines[0], words, tags, lines, document, source=self)

    def _plain_lines(self):
        self.labelled = False
        how = "words parted by spaces" if self._pretokenized else "split by the tokenizer"
        self.description = f"{self.name}: plain lines, one sentence a line, {how}"
        return self._of_lines()

    def _of_lines(self):
        for document, (number, line) in enumerate(self._rest):
            yield sentence_of_text(line, number, document, self, pretokenized=self._pretokenized)

    def _json_lines(self, first, *, word, tag):
        number, line = first
        objects = TaggedObjects(
            ((n, self._json_object(n, text)) for n, text in self._rest if text.strip()),
            (number, self._json_object(number, line)),
            self,
            word=word,
            tag=tag,
            need_tags=self._need_tags,
            pretokenized=self._pretokenized,
        )
        self.labelled = objects.labelled
        self.description = f"{self.name}: JSON Lines, {objects.description}"
        return objects


def _is_json_object(line):
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(parse_json(line), dict)
    except NotJson:
        # A brace and quotes at the start can only be meant as JSON; anything else is text.
        return line.lstrip("{ ").startswith('"')
