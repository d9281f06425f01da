"""Rows of annotation tools: objects of their own forms, and columns with verdicts.

Prodigy has the chosen options of a text in a list "accept", and whether the row is accepted in
"answer"; Argilla has a "status". Label Studio's JSON has an object per text with its "data" and a
list of "annotations"; a row of it is what its JSON-MIN has for an annotation. Argilla's has the
"fields" of a text and, for each question, a list of "responses" with their users; a row of it has
what one user answered.
"""

STATUS = "annotation_status"  # the column that rows of Label Studio get
_STATUSES = ({"submitted", "discarded", "pending", "draft"}, {"submitted", "discarded"})
# Columns with verdicts: the words in them, and those by which they are known.
_VERDICTS = {
    "answer": ({"accept", "reject", "ignore"}, {"accept", "reject"}),
    "status": _STATUSES,
    STATUS: ({*_STATUSES[0]}, {*_STATUSES[0]}),
}
_ACCEPTED = ("accept", "submitted")
_SAMPLED = 1000


def verdict_column(table, *, used):
    """The column of a `Table` that says whether a row is accepted, or None.

    All of the first rows have words of a tool there, and it is not among the columns `used`.
    """
    for name, (words, known_by) in _VERDICTS.items():
        if name in table.names and name not in used:
            values = {str(row.get(name)) for row in table.sample(_SAMPLED)}
            if values <= words and values & known_by:
                return name
    return None


def is_accepted(verdict):
    """Whether a row with this word in its `verdict_column` is one to learn from."""
    return verdict in _ACCEPTED


def rows_of_tools(rows):
    """Rows, (location, dictionary), in which the objects of tools are rows as other files have."""
    for line, record in rows:
        if _is_label_studio(record):
            yield from ((line, row) for row in _label_studio(record))
        elif _is_argilla(record):
            yield from ((line, row) for row in _argilla(record))
        elif isinstance(record.get("accept"), list) and isinstance(record.get("options"), list):
            yield line, {**record, "accept": _one_or_all(record["accept"])}
        else:
            yield line, record


def _is_label_studio(record):
    annotations = record.get("annotations")
    is_object = isinstance(record.get("data"), dict) and isinstance(annotations, list)
    return is_object and all(
        isinstance(annotation, dict)
        and isinstance(results := annotation.get("result"), list)
        and all(isinstance(result, dict) for result in results)
        for annotation in annotations
    )


def _label_studio(record):
    """Yields a row for each annotation of a text; one without an annotation is pending."""
    about = {name: record[name] for name in ("id",) if name in record} | record["data"]
    if not record["annotations"]:
        yield {**about, STATUS: "pending"}
    for annotation in record["annotations"]:
        values = {} if annotation["result"] else {"spans": []}
        for result in annotation["result"]:
            value = result.get("value")
            if isinstance(value, dict):  # relations have none
                is_span = "start" in value
                content = value if is_span else _one_or_all([*value.values()])
                name = "spans" if is_span else result.get("from_name", "label")
                values.setdefault(name, []).append(content)
        values = {n: some if n == "spans" else _one_or_all(some) for n, some in values.items()}
        is_skipped = annotation.get("was_cancelled")
        yield {**about, **values, STATUS: "discarded" if is_skipped else "submitted"}


def _is_argilla(record):
    responses = record.get("responses")
    is_object = isinstance(record.get("fields"), dict) and isinstance(responses, dict)
    return is_object and all(
        isinstance(answers, list) and all(isinstance(answer, dict) for answer in answers)
        for answers in responses.values()
    )


def _argilla(record):
    """Yields a row for each user who answered; one without an answer is pending.

    The file does not say which answers of a pending record were submitted: it is one pending row.
    """
    metadata = record.get("metadata")
    about = {name: record[name] for name in ("id",) if name in record}
    about |= (metadata if isinstance(metadata, dict) else {}) | record["fields"]
    users = {}
    for question, answers in record["responses"].items():
        name = f"{question}.response" if question in about else question
        for answer in answers:
            value = answer.get("value")
            if isinstance(value, list):
                is_spans = any(isinstance(one, dict) and "start" in one for one in value)
                name, value = ("spans", value) if is_spans else (name, _one_or_all(value))
            users.setdefault(str(answer.get("user_id")), {})[name] = value
    if record.get("status") == "pending" or not users:
        yield {**about, STATUS: "pending"}
        return
    for values in users.values():
        yield {**about, **values, STATUS: "submitted"}


def _one_or_all(values):
    """The only one of some values, which may be lists of one; None of none."""
    while isinstance(values, list) and len(values) < 2:
        values = values[0] if values else None
    return values
