"""The README and docs/ as tests read them: blocks of code, commands in them, headings, links."""

import dataclasses
import re
import shlex
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of code: what stands after its ```, its text, and where it is."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self):
        return f"{self.page.name}:{self.line}"


@dataclasses.dataclass(frozen=True)
class Command:
    """A keras-bert that a block calls.

    `before` are the words of its line before it: variables, or what is piped into it. "…" in a
    shortened command stands for the value of the flag before it, or else for further flags.
    """

    arguments: list[str]
    is_shortened: bool
    before: list[str]

    def __iter__(self):
        return iter((self.arguments, self.is_shortened))


def blocks(page):
    """All blocks of a page, in order: those between ```, and indented lines with a command."""
    page_blocks, begun = [], None
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if line.startswith("```"):
            if begun is None:
                begun = number, line[3:].strip()
                continue
            text = lines[begun[0] : number - 1]
            page_blocks.append(Block(page, begun[0], begun[1], "\n".join(text) + "\n"))
            begun = None
        elif begun is None and re.match("    (keras-bert|TPU_NAME=|KERAS_BACKEND=)", line):
            end = number
            while lines[end - 1].endswith("\\"):
                end += 1
            text = [part.strip() for part in lines[number - 1 : end]]
            page_blocks.append(Block(page, number, "", "\n".join(text) + "\n"))
    assert begun is None, f"{page.name}:{begun[0]}: this block has no end"
    return page_blocks


def commands(block):
    """Yields the `Command`s of a block."""
    text = re.sub(r"\\\n|(?<=\|)\n", " ", block.text)
    for line in text.splitlines():
        words = shlex.split(line, comments=True) if "keras-bert" in line else []
        if "keras-bert" not in words:
            continue
        start = words.index("keras-bert")
        before, words = words[:start], words[start + 1 :]
        for number, word in enumerate(words):
            if word in ("|", ">", "&", "&&", ";") or word.startswith(">"):
                words = words[:number]
                break
        is_shortened = "…" in line or any(word.startswith("[") for word in words)
        yield Command(_filled(words), is_shortened, before)


def commands_in_text(page):
    """Yields (line, arguments) of the commands, or parts of one, in the sentences of a page."""
    text = re.sub(
        r"^```.*?^```",
        lambda code: "\n" * code[0].count("\n"),
        page.read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    for found in re.finditer(r"`keras-bert ([a-z-]+\s[^`]+)`", text):
        yield text[: found.start()].count("\n") + 1, _filled(shlex.split(found[1]))


def _filled(words):
    needs_one = ("--model", "--data", "--train", "--dev", "--output")
    before = ["", *words]
    return [
        word for word, flag in zip(words, before, strict=False) if word != "…" or flag in needs_one
    ]


def anchors(page):
    """The anchors that a link may name in a page, as GitHub and mkdocs have them."""
    slugs, inside = set(), False
    for line in page.read_text(encoding="utf-8").splitlines():
        inside ^= line.startswith("```")
        if line.startswith("#") and not inside:
            text = re.sub(r"[^\w\s-]", "", line.lstrip("#").strip().lower())
            slugs.add(re.sub(r"[\s]+", "-", text))
    return slugs


def links(page):
    """(line, target) of every link and picture outside of code."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        inside ^= line.startswith("```")
        if not inside:
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                yield number, target


def named_flags(page):
    """(line, flag) of every --flag that a page names within its text; keras-bert's have hyphens."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        inside ^= line.startswith("```")
        if not inside and not line.startswith("    "):
            for code in re.findall(r"`(--[^`]*)`", line):
                flags = re.findall(r"--[a-z][a-z0-9-]*(?![\w-])", code)
                yield from ((number, flag) for flag in flags)
