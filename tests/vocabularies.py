"""Two trained vocabularies, their training text, and texts that are hard to restore."""

import pytest

from heedful.data.tokenizer import train_tokenizer

CORPUS = [
    "Two young, white males are outside near many bushes.",
    "Several men in hard hats are operating a giant pulley system.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "Mehrere Männer mit Schutzhelmen bedienen ein Antriebsradsystem.",
    "<s> is a tag, and </s> and <pad> and <unk> are; <s> <s><s> <pad><pad> </s></s> <unk><unk> <0x41><0x41>",
    "  two  spaces,\ttabs\tand\nlines\n",
] * 3
BPE = train_tokenizer(CORPUS, kind="bpe", size=400)
UNIGRAM = train_tokenizer(CORPUS, kind="unigram", size=400)
BOTH = pytest.mark.parametrize("tokenizer", [BPE, UNIGRAM], ids=["bpe", "unigram"])

NASTY = [
    "",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    " \n ",
    "a",
    " a",
    "a ",
    "  a  b  ",
    "\u00a0a\u00a0",
    "\u3000",
    "a\u2028b\u2029c\x85d",
    "\0",
    "a\0b\x01\x1f\x7f\x80\x9f",
    "\ufeffa\ufeff",
    "\ufffd",
    "\uffff\ufffe",
    "\U0010ffff",
    "<s>",
    "</s>",
    "<pad>",
    "<unk>",
    "<s></s><pad><unk>",
    " <s> </s> <pad> <unk> ",
    "a<s>b</s>",
    "<<s>>",
    "<0x41><0xFF>",
    "[CLS] <|endoftext|> <mask>",
    "<img src=x onerror=alert(1)></script>",
    "ĠaĊbĉ",
    "e\u0301 é \u1e9b\u0323",
    "ﬁ ½ \uff21 ™",
    "😀👩‍👩‍👧‍👦🏳️‍🌈🇩🇪",
    "שלום \u202eabc\u202c مرحبا",
    "二人の若い男性がいます。",
    "\ud83d\ude00",
    "\ud83d",
    "a\udc80\ud83dz",
    "'s don't we'LL ''",
    "0123456789.12e-7",
    "x" * 5000,
    " " * 300 + "\n" * 300,
    "\u0300" * 200,
]
