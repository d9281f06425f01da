"""Lists of passages per query, with a grade each, from tables; or pairs of texts with a score.

Names of columns say which: a row is a list if it has negatives or lists, and else a pair.
"""

from dataclasses import dataclass

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import listed, quoted
from keras_bert.readers.columns import BETWEEN, LABEL, parse_fields
from keras_bert.readers.examples import Example, Missing, shown_parts
from keras_bert.readers.labels import LISTS, is_missing, list_of, score
from keras_bert.readers.sources import is_text, is_unnamed
from keras_bert.readers.text_groups import ANCHORS, POSITIVES, negative_columns
from keras_bert.readers.texts import PAIR, LabelledText, TextSource

# The parts of a list, each with its columns: passages with their grades, or positives and
# negatives, maybe with a teacher's scores of all, or its margins of the negatives.
_PARTS = ("query", "passages", "grades", "positive", "negatives", "scores", "margins")
_USUAL = {
    "query": ANCHORS,
    "passages": ("passages", "documents", "docs"),
    "grades": ("grades", "labels", "relevances"),
    "positive": POSITIVES,
    "scores": ("scores", "teacher_scores"),
    "margins": ("margins", "margin"),
}
_GRADED_PARTS = {"query", "passages", "grades"}
_NEGATIVE_PARTS = {"query", "positive", "negatives"}
_NO_POSITIVE, _ONE_PASSAGE = "a passage with a grade above 0", "a second passage"


@dataclass(slots=True)
class PassageList(Example):
    """A query and its passages.

    Attributes:
        query: the text.
        passages: texts, at least two if they have grades.
        grades: a number from 0 for each, of which one is above 0; None if nobody gave them.
        teacher: the score of another model for each, of which only differences count, or None.
    """

    query: str
    passages: tuple[str, ...]
    grades: tuple[float, ...] | None
    teacher: tuple[float, ...] | None = None
    label: None = None

    @property
    def texts(self):
        return (self.query, *self.passages)

    @property
    def labels(self):
        return (None,)

    @property
    def unit(self):
        return (self.query,)


class ScoredPairSource(TextSource):
    """The `PassageList`s of a table of lists, or the `LabelledText`s of one of pairs with a score.

    Args:
        data, common: see `TextSource`.
        fields: also `query=…,positive=…,negatives=no1|no2` with `scores=…` or `margins=…`, or
            `query=…,passages=…,grades=…`.
        group_by_query: the rows of pairs with the same first text become one list.
    """

    def __init__(self, data, *, fields=None, schema=None, group_by_query=False, **common):
        self._columns_of_lists, self._groups, self._is_remembered = {}, group_by_query, False
        if _names_lists(fields):
            given = parse_fields(fields, parts=(*_PARTS, "anchor"))
            given = {"query" if part == "anchor" else part: names for part, names in given.items()}
            self._columns_of_lists = {
                p: [n.strip() for n in x.split(BETWEEN)] for p, x in given.items()
            }
            fields = None
        elif fields is None and {"query"} <= {*(schema or {})} <= {*_PARTS}:
            self._columns_of_lists, schema, self._is_remembered = schema, None, True
        options = {"texts": PAIR, "form": score, "fields": fields, "schema": schema}
        super().__init__(data, **options, **common)

    @property
    def _header_names(self):
        usual = {*super()._header_names, *(n for names in _USUAL.values() for n in names)}
        given = {n.casefold() for names in self._columns_of_lists.values() for n in names}
        return usual | given | {"negative", "negatives", "neg"}

    def _examples_of(self, table):
        columns = None if self.kind in ("given", "lines") else self._list_columns(table)
        if columns is None:
            pairs = super()._examples_of(table)
            return self._grouped(pairs) if self._groups else pairs
        self._na = table.are_cells and self.columns.na
        self._are_items, self._may_be_no_text = False, not table.are_cells
        self._columns, self.schema, self._longer, self._task = columns, columns, None, None
        parts = (f"{p} in {' and '.join(map(table.describe, n))}" for p, n in columns.items())
        self.how = f"{table.format}: lists of passages, {listed(parts)}"
        return self._each(self._records, self._list)

    def _list_columns(self, table):
        """{part: columns} of a table of lists; None of pairs."""
        list_columns = self._columns_of_lists
        if self._is_remembered:  # what is only for training may be missing
            there = {part for part, names in list_columns.items() if all(map(table.column, names))}
            needed = {*list_columns} - {
                "scores",
                "margins",
                *(["grades"] * (not self._need_labels)),
            }
            list_columns = (
                {p: n for p, n in list_columns.items() if p in there} if needed <= there else {}
            )
        if list_columns:
            columns = {p: [*map(table.existing, n)] for p, n in list_columns.items()}
            return self._checked_parts(table, columns)
        if not table.has_names or self.columns.given_names:
            return None
        names = [name for name in table.names if not is_unnamed(name)]
        lower = {name.strip().casefold(): name for name in names}
        columns = {
            part: [lower[name] for name in usual if name in lower] for part, usual in _USUAL.items()
        }
        columns["negatives"] = negative_columns(names)
        columns = {part: columns[part] for part in _PARTS if columns[part]}
        if not (_NEGATIVE_PARTS <= {*columns} or {"query", "passages"} <= {*columns}):
            return None
        if _NEGATIVE_PARTS <= {*columns}:  # "passages" may be the positives' column
            columns = {p: n for p, n in columns.items() if p not in ("passages", "grades")}
        for part, found in columns.items():
            if len(found) > 1 and part != "negatives":
                raise InputError.naming(
                    "{}: several columns could be the {}: {}. Name the columns as {fields}, such "
                    "as {}.",
                    table.name,
                    part,
                    quoted(found),
                    argument("fields", '"query=…,positive=…,negatives=…"'),
                )
        return self._checked_parts(table, columns)

    def _checked_parts(self, table, columns):
        parts = {*columns}
        teacher = parts & {"scores", "margins"}
        is_graded = parts - {"scores"} == _GRADED_PARTS or (
            not self._need_labels and {"query", "passages"} <= parts <= _GRADED_PARTS
        )
        if is_graded or (parts - teacher == _NEGATIVE_PARTS and len(teacher) < 2):
            return columns
        raise InputError.naming(
            "{}: a list has a query, passages and grades, or a query, its positive, negatives, and "
            "maybe scores or margins of another model. Found: {}. Name the columns as {}, or as "
            "{}.",
            table.name,
            listed(columns),
            argument("fields", '"query=…,passages=…,grades=…"'),
            argument("fields", '"query=…,positive=…,negatives=…"'),
        )

    # Rows.

    def _list(self, line, record):
        columns = self._columns
        query = self._text_of(line, record, columns["query"])
        if "passages" in columns:
            passages = self._texts(line, record, "passages")
            grades = self._numbers(line, record, "grades") if "grades" in columns else None
            if grades is not None and len(grades) != len(passages):
                raise self.error(
                    line, f"{len(passages)} passages and {len(grades)} grades. Give one for each."
                )
            teacher = self._teacher(line, record, len(passages), 0)
            if None not in teacher and grades:  # whose margins are those to a relevant one
                first = grades.index(max(grades))
                order = [first, *(n for n in range(len(passages)) if n != first)]
                passages, grades, teacher = (
                    [part[n] for n in order] for part in (passages, grades, teacher)
                )
            return self._checked(line, query, passages, grades, teacher)
        positives = self._texts(line, record, "positive")
        negatives = self._texts(line, record, "negatives")
        if not positives:
            raise Missing("a text", place=self._described(columns["positive"]))
        grades = [1.0] * len(positives) + [0.0] * len(negatives)
        teacher = self._teacher(line, record, len(positives), len(negatives))
        rows = [*zip((*positives, *negatives), grades, teacher, strict=True)]
        known = {query, *positives}
        rows = [row for row in rows if row[1] or row[0] not in known]
        passages, grades, teacher = ([*part] for part in zip(*rows, strict=True))
        return self._checked(line, query, passages, grades, teacher)

    def _teacher(self, line, record, positives, negatives):
        """The teacher's score of each passage; those of margins are below 0, that of a positive."""
        count = positives + negatives
        if "scores" in self._columns:
            scores = self._numbers(line, record, "scores", least=None)
            if len(scores) != count:
                raise self.error(
                    line,
                    f"{len(scores)} scores of another model for {count} passages. Give one for "
                    "each, in their order.",
                )
            return scores
        if "margins" in self._columns:
            margins = self._numbers(line, record, "margins", least=None)
            if positives != 1 or len(margins) != negatives:
                raise self.error(
                    line,
                    f"{len(margins)} margins for {positives} positives and {negatives} negatives. "
                    "Give one for each negative of one positive.",
                )
            return [0.0, *(-margin for margin in margins)]
        return [None] * count

    def _checked(self, line, query, passages, grades, teacher=(None,)):
        """The `PassageList`; raises Missing for a list that has nothing to rank."""
        teacher = None if None in teacher else teacher
        if self._need_labels:
            if len(passages) < 2:
                raise Missing(_ONE_PASSAGE)
            if not max(grades):
                raise Missing(_NO_POSITIVE)
        parts = (None if part is None else tuple(part) for part in (passages, grades, teacher))
        return PassageList(line, query, *parts, source=self)

    def _values(self, line, record, part):
        """The items of the lists, and the cells, of a part."""
        values = []
        for name in self._columns[part]:
            value = record.get(name)
            try:
                value = list_of(value)
            except ValueError as error:
                raise self.error(line, error) from None
            values += [*value] if isinstance(value, LISTS) else [value]
        return values

    def _texts(self, line, record, part):
        values = [v for v in self._values(line, record, part) if not is_missing(v, na=self._na)]
        for value in values:
            if not is_text(value):
                names = self._described(self._columns[part])
                raise self.error(line, f"no text in {names}; a string without NUL is needed there.")
        return values

    def _numbers(self, line, record, part, *, least=0.0):
        """The numbers of a part; InputError for one that is missing, or less than `least`."""
        numbers = []
        for value in self._values(line, record, part):
            try:
                number = score(value)
            except ValueError as error:
                raise self.error(line, error) from None
            if number is None:
                raise self.error(line, f"{part}: one of them is missing. Give a number for each.")
            self._check_grade(line, number, least)
            numbers.append(number)
        return numbers

    def _check_grade(self, line, number, least):
        if least is not None and number < least:
            raise self.error(line, f"the grade {number:g} is negative. Expected a number from 0.")

    # Rows of pairs.

    def _grouped(self, pairs):
        """The pairs as lists, in the order of the first row of each query."""
        lists: dict[str, list[LabelledText]] = {}
        for pair in pairs:
            lists.setdefault(pair.text, []).append(pair)
        self._count = 0  # of what is left of them
        self._columns = dict.fromkeys(("query", "passages", "grades"), [LABEL])
        rows = ((query_pairs[0].line, query_pairs) for query_pairs in lists.values())
        yield from self._each(rows, self._list_of_pairs)

    def _list_of_pairs(self, line, pairs):
        grades = [pair.label for pair in pairs] if self._need_labels else None
        for pair in pairs if self._need_labels else ():
            self._check_grade(pair.line, pair.label, 0.0)
        return self._checked(line, pairs[0].text, [pair.text_b for pair in pairs], grades)

    def first_examples(self, examples):
        (example,) = examples
        if not isinstance(example, PassageList):
            return super().first_examples(examples)
        parts = {"query": example.query}
        for number, passage in enumerate(example.passages[:3], start=1):
            grade = "" if example.grades is None else f" ({example.grades[number - 1]:g})"
            parts[f"passage {number}{grade}"] = passage
        more = len(example.passages) - 3
        return f"First example: {shown_parts(parts)}{f', and {more} more' if more > 0 else ''}."


def _names_lists(fields):
    """Whether the setting `fields` names parts of lists."""
    names = {part.partition("=")[0].strip() for part in (fields or "").split(",")}
    return bool(names & {*_PARTS, "anchor"})
