"""The manual as documents: prose stays, decoration goes, nothing stands in two documents."""

import textwrap

import pytest

from keras_bert.samples.texts import documents, prose, write_manual

# The forms in which Sphinx rendered the topics of Python 3.9 to 3.14.
TOPIC = """\
The "walk" statement
********************

Walk statements are a convenient way to cross a *post-
mortem* program, and they never return a value. [1]

   walk_stmt ::= "walk" expression ["," expression]
                 | "walk" "back"

In Python 3.14 the grammar reads differently, as follows:

   walk_stmt: "walk" expression

   if __debug__:
       walk(back)

+------------------+------------------------------+
| Operation        | Result of the operation.     |
+------------------+------------------------------+

object.__walk__(self, *args, **kwargs)

   Called when the instance is about to walk. See "__run__(*args)" for more.

   Note:

     This method may still be bypassed by a shortcut through the park.

   Note: Newer manuals write their notes on one line, as is done here.

Direct Walk
   The simplest and least common walk is when the code takes a step.

1. If the path is shut, the walk is **defined recursively** as for paths.

* If the target list is empty, the walk ends at once.

  * An inner item of a list is prose of the manual, too.

The operators "*" and "**" bind more tightly than walking.

>>> print("This is an example, it has words enough to be prose.")

-[ Footnotes ]-

[1] Walking is slower than running in all implementations.
"""

PROSE = [
    "Walk statements are a convenient way to cross a post-mortem program, and they never return "
    "a value.",
    "In Python 3.14 the grammar reads differently, as follows:",
    'Called when the instance is about to walk. See "__run__(*args)" for more.',
    "This method may still be bypassed by a shortcut through the park.",
    "Note: Newer manuals write their notes on one line, as is done here.",
    "The simplest and least common walk is when the code takes a step.",
    "If the path is shut, the walk is defined recursively as for paths.",
    "If the target list is empty, the walk ends at once.",
    "An inner item of a list is prose of the manual, too.",
    'The operators "*" and "**" bind more tightly than walking.',
    "Walking is slower than running in all implementations.",
]


def test_prose_of_a_topic():
    assert prose(TOPIC) == PROSE


def test_a_paragraph_is_kept_once_in_the_longest_topic():
    part = "Section\n*******\n\n" + textwrap.fill(PROSE[3], 40) + "\n"
    extra = part + "\nThis sentence stands only in the shorter topic.\n"
    topics = documents({"part": part, "whole": TOPIC, "extra": extra})
    assert topics == {"whole": PROSE, "extra": ["This sentence stands only in the shorter topic."]}


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manual")
    return folder, write_manual(folder)


def test_files_of_this_python(manual):
    folder, paths = manual
    assert paths == sorted(folder.iterdir())
    assert len(paths) > 40
    assert sum(path.stat().st_size for path in paths) > 200_000


def test_files_are_hard_wrapped_paragraphs_of_prose(manual):
    _, paths = manual
    seen = set()
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert text.endswith("\n") and not text.startswith("\n")
        for paragraph in text.strip().split("\n\n"):
            lines = paragraph.split("\n")
            assert all(line == line.strip() and line for line in lines)
            assert all(len(line) <= 72 or " " not in line for line in lines)
            assert paragraph not in seen
            seen.add(paragraph)
            assert not any(mark in paragraph for mark in ("::=", ">>>", "****", "====", "+---"))
            letters = sum(character.isalpha() or character.isspace() for character in paragraph)
            assert letters > 0.75 * len(paragraph), paragraph


def test_writing_again_gives_the_same_bytes(manual, tmp_path):
    _, paths = manual
    again = write_manual(tmp_path)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]
