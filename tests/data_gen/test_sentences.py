"""Sentence ends in real prose: what is one, and what only looks like one."""

import time

import pytest

from data_gen.documents import blocks, find, read
from data_gen.segments import split_sentences

# "|" marks where a sentence ends.
CASES = """
It was late.| He left.
Is it? | Yes! | No.
Mr. Darcy and Mrs. Bennet met Dr. Watson, Prof. Moriarty and Capt. Ahab in St. Ives.| They left.
Mr. Darcy came.
J. R. R. Tolkien and George W. Bush never met.| He said so.
E. T. A. Hoffmann wrote it.| J. S. Bach did not.
The U.S. Army left the U.S.| The war was over.
At 5 p.m. he slept, at 6 a.m. he woke.| At 7 p.m.| Tom came.
It cost 3.14 pounds, i.e. too much, e.g. Bread was 2.50.| He paid.
See Fig. 3, No. 5 and vol. 2 of it.| Is there more?| No.| There is not.
"No.| It is not so," he said.
Messrs. Smith & Co. sold it.| Smith Jr. bought it.| It was Smith Jr.| He paid on Dec. 24.
"Come here," he said.| "Why?" she asked.| "Because!" cried he.| "I see."
“Where?” I asked.| “There!” Tom said, and left.| “Now?” Mr. Tom Jones inquired.
“Where?”| “There!”| “Tom,” she said.
‘What do you mean by this?’ she cried; ‘I mean it!’| He stopped.
He said: “I came.| I saw.| I won.”| Nobody heard.
(It was late.)| So he left [without a word.]| She did not.
_It was he!_| She ran.| *Truly.*| Yes.
Well ... he did.| It is ... what?
Well... I think so.| Well...| Then he went…| And he came.
He waited. . . .| Then he went.
Then came World War I.| The next was worse.| It was I.| Nobody else was there.
1. The first point.| 2. The second point.
What?!| Really?!!| Yes!!!
He lived in 1812.| 1813 was worse.
It was gone.--He saw.| That day--Mr. Smith's--was over.
Élan vital.| Über alles.| Ça va? été. été.
It ended. and went on in small letters.
'Tis true.| 'Tis a pity.| ’Twas so.
你好。|我很好！|「是。」|他说。
No stop at all
A file name.txt and www.example.com are one.| Yes.
"Yes," he said.|\tTabs.|  Spaces.
""".strip().split("\n")


@pytest.mark.parametrize("case", CASES)
def test_prose(case):
    expected = [part.strip() for part in case.split("|")]
    assert split_sentences(case.replace("|", "")) == expected


def test_a_newline_is_an_end():
    assert split_sentences("CHAPTER I\nIt was\r\n\n  late") == ["CHAPTER I", "It was", "late"]
    assert split_sentences("Mr.\nDarcy") == ["Mr.", "Darcy"]


@pytest.mark.parametrize("empty", ["", " ", "\n \n", "\t"])
def test_nothing_has_no_sentences(empty):
    assert split_sentences(empty) == []


@pytest.mark.parametrize(
    "unit",
    [".", ". ", ".\t", "A. ", "\n", '"', "。", "x", "Mr. A", "!? ", '."', "… ", "J.", ' "A.'],
)
def test_no_text_takes_long(unit):
    """Eight times the text takes about eight times as long; by its square it would be 64 times."""
    seconds = []
    for size in (62_500, 500_000):
        text = unit * (size // len(unit))
        start = time.process_time()
        sentences = split_sentences(text)
        seconds.append(time.process_time() - start)
        assert "".join("".join(sentences).split()) == "".join(text.split())
    assert seconds[1] < 24 * max(seconds[0], 0.01)


def test_books(shared_data):
    """On whole books nothing is lost, and the sentences are of the length that prose has."""
    for name, low, high in (
        ("pride_and_prejudice", 100, 130),
        ("the_brothers_karamazov", 70, 100),
        ("the_voyage_of_the_beagle", 130, 170),
    ):
        [window] = find(str(shared_data / "books" / f"{name}.txt"))
        texts = [d.text for block in blocks(window) for d in read(block)]
        sentences = [s for text in texts for s in split_sentences(text)]
        assert "".join("".join(sentences).split()) == "".join("".join(texts).split())
        assert low < sum(map(len, sentences)) / len(sentences) < high, name
        assert max(map(len, sentences)) < 1500, name
        # No sentence ends with a title that belongs to the name that follows.
        for before, after in zip(sentences, sentences[1:], strict=False):
            last = before.rsplit(" ", 1)[-1].lstrip("\"“‘'(")
            assert last not in ("Mr.", "Mrs.", "Dr.", "Messrs.", "St."), (before, after)
