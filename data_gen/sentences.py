"""Splits prose into sentences.

A sentence ends at `.`, `!`, `?` or an ellipsis, with the quotes and brackets that close after it,
where white space and something other than a small letter follow. It does not end after a title or
another abbreviation ("Mr. Darcy", "e.g. this"), initials ("J. R. R. Tolkien", "U.S. Army"), the
number of a list item ("1. The first"), or a question or exclamation before its speaker ('"Where?" I
asked.'). Chinese and Japanese stops need no white space. A newline is always an end. Written for
English prose; in other languages with these stops, only abbreviations are split wrongly.
"""

import re

_CLOSERS = "\"'”’)\\]»›*_"
_OPENERS = "\"'“”‘’(\\[«‹*_¿¡„"

# Matches begin with one character of a set, which is fast, and repetitions are possessive: a
# megabyte of dots takes no longer than other text. Groups, for Latin stops only: "more" is the rest
# of the stop, "close" the closing characters after it, "first" the word that follows.
_BOUNDARY = re.compile(
    rf"""
    [\n.!?…。！？]
    (?: (?<=\n) \s*+
    | (?<=[。！？]) [。！？]*+ [」』”’）]*+
    | (?<=[.!?…]) (?<![.!?…]{{2}}) (?P<more> (?:[ ]\.){{2,3}}+ | [.!?…]*+)
      (?P<close> [{_CLOSERS}]*+ )  [^\S\n]++
      (?= [{_OPENERS}—–-]*+ (?P<first> [^\Wa-z_] [\w’']*+ ) )
    )
    """,
    re.VERBOSE,
)

# Never the end of a sentence: a name or a number follows.
_TITLES = frozenset(
    """Mr Mrs Ms Messrs Mme Mlle Mdlle Dr Prof Rev Hon Gen Col Capt Cpt Cmdr Lt Sgt Maj Adm Gov Sen
    Rep Pres Supt Insp St Ste Mt Ft Fr Sr. Sra Srta Bros M. Mx Hr Sig Esq. Bp Abp Ald""".split()
)
_NEVER = _TITLES | frozenset(
    """cf viz vs ca approx fig figs eq eqs ch chap chaps sec sect vol vols no nos nr pp ed eds al
    ibid op cit incl esp resp i.e e.g Fig Figs Eq Eqs Ch Chap Chaps Sec Sect Vol Vols No Nos Nr Pp
    Ed Eds Cf Viz Vs Art Op Nos Bk""".split()
)
# The end only before a word that begins sentences more often than names (so not "A": an initial).
_SELDOM = frozenset(
    """Jr Sr Inc Ltd Co Corp Esq Bros Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues
    Wed Thu Thur Thurs Fri Sat Sun Ave Blvd Rd dept Dept Univ Assn v p""".split()
)
_STARTERS = frozenset(
    """The An This That These Those He She It They We You There Here His Her Its Their Our My Your
    In On At By For From With After Before When While As If But And Or So Then Yet Now What Who Why
    How Where Which No Not One Some All Every Many Most Such Since Because Although Though However
    Once Thus Even Only Perhaps Is Was Are Were Do Did Does Has Have Had Will Would Can Could Should
    To Of""".split()
)
_WHO_SAID = re.compile(
    r"(?:(?:Mr|Mrs|Dr)\.\s|Miss\s|Lady\s|Lord\s|Sir\s)?[A-Z]\w*(?:\s[A-Z]\w*)?\s"
    r"(?:said|asked|cried|replied|answered|exclaimed|shouted|whispered|added|returned|repeated"
    r"|called|murmured|muttered|inquired|enquired|demanded|says|thought|began|continued)\b"
)
_QUOTES = frozenset("\"'”’»›")


def split_sentences(text):
    """Returns the sentences of a text in their order, as a list of str without outer white space.

    Together they have every character of the text that is not white space.
    """
    sentences, start = [], 0
    for match in _BOUNDARY.finditer(text):
        if match["first"] is not None and not _is_end(text, start, match):
            continue
        sentences.append(text[start : match.end()])
        start = match.end()
    sentences.append(text[start:])
    return [sentence for raw in sentences if (sentence := raw.strip())]


def _is_end(text, start, match):
    """Whether a sentence that begins at `start` ends at a stop before a word in capitals."""
    stop, first = match.start(), match["first"]
    if first[0].islower():  # small letters beyond a to z
        return False
    last = text[match.end("more") - 1]
    if last in "!?":
        closed = not _QUOTES.isdisjoint(match["close"])
        return not (closed and _WHO_SAID.match(text, match.end()))
    if last == "…" or match["more"]:
        # After an ellipsis "I" is no sign of a beginning: "Well … I thought".
        return first != "I" and not first.startswith(("I'", "I’"))
    if match["close"]:
        return True
    word = text[max(start, text.rfind(" ", start, stop) + 1) : stop]
    return _ends_with(word.lstrip("\"'“‘([_*—–-"), first, is_first=stop - len(word) <= start)


def _ends_with(word, first, is_first):
    """Whether the full stop after `word` ends a sentence if the word `first` follows.

    `is_first`: `word` is the first of its sentence.
    """
    if not word:
        return True
    if word in _NEVER:
        return word in ("No", "no") and not first[0].isdigit()
    if word in _SELDOM:
        return first in _STARTERS
    if len(word) == 1:
        if word == "I":  # more often the pronoun or "World War I" than an initial
            return not is_first or first in _STARTERS
        if word.isupper():
            return first in _STARTERS
    if is_first and word.isdecimal():
        return False  # the number of a paragraph, or of an item in a list
    after_dash = re.split("--|—", word)[-1]
    if after_dash != word:
        return _ends_with(after_dash, first, is_first=False)
    if "." in word and max(map(len, word.split("."))) <= 2:
        return first in _STARTERS or word.lower() in ("a.m", "p.m")
    return True
