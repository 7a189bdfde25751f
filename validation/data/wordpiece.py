# SPDX-License-Identifier: MIT
# wordpiece.py - what Hugging Face's BertTokenizer makes of texts (pip install 'transformers<4.50').
#
#   python3 wordpiece.py vocabulary >tests/data/wordpiece-vocab.txt
#   python3 wordpiece.py vectors tests/data/wordpiece-vocab.txt >tests/data/wordpiece.txt    a line: the text in hex, then its tokens
#   python3 wordpiece.py text VOCAB <TEXT >TOKENS     tokens of each line, to compare with others on a large text
#   python3 wordpiece.py random VOCAB LINES >TOKENS   the same form as vectors, of random characters
import random, sys, unicodedata as u


def vocabulary():
    words = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(c) for c in range(33, 127) if not chr(c).isupper()]
    letters += list("αβγδεζηθικλμνξοπρστυφχψωабвгдежзийклмнопрстуфхцчшщъыьэюя中文字日本語のカ한ß½²€£—“”·")
    letters += [u.normalize("NFD", "한")[i] for i in range(3)] + [u.normalize("NFD", "글")[i] for i in range(3)]
    words += letters + ["##" + x for x in letters if x.isalnum() or u.category(x)[0] == "L"]
    words += "the and of god un ##aff ##able ##affable in the ##ing beginning begin ##ning ##n ##in λογος ##ος привет".split()
    words += "heaven earth naive cafe resume ##ume res ##s ## ##### 1611 16 ##11 ##1 don ##'t lo lord ##d supercalifragilistic".split()
    return list(dict.fromkeys(words))


def tokenizer(path):
    from transformers.models.bert.tokenization_bert import BertTokenizer, BasicTokenizer, WordpieceTokenizer
    t = BertTokenizer(path, do_lower_case=True)
    basic, piece = BasicTokenizer(do_lower_case=True), WordpieceTokenizer(t.vocab, "[UNK]")
    return lambda text: [t.vocab[p] for w in basic.tokenize(text) for p in piece.tokenize(w)]


TEXTS = ["", " ", "In the beginning God created the heaven and the earth.", "unaffable unaff unaffablex", "Naïve CAFÉ résumé RÉSUMÉ", "don't can't 'quoted'",
         "1611 16.11 1,611 16111", "ΛΌΓΟΙ λόγος", "Привет МИР Й й Ё", "中文 字x日本語のカ", "한글 한 글", "a\u200bb\u00adc\ufeffd", "tab\there\r\nnew\u2028line\u2029x\u3000y\u00a0z",
         "\x00a\x01b\x7fc\ufffdd", "x\u0301y\u0327z \u0301 \u0301\u0302", "ＦＵＬＬ ﬁ ½ ²", "İstanbul ıI", "a" * 99, "a" * 100, "a" * 101, "é" * 100, "é" * 101, "q" * 300 + " the",
         "“lo” — Lord! ·x· €5 £5", "[MASK ] [ CLS]", "# ## ### ##ing #ing", "豈更\U0002f800", "\ue000a\U000f0000", "😀 the 😀😀", "Å Å K Ω", "ß ẞ STRASSE", "supercalifragilisticexpialidocious",
         "\u037e \u2000x\u2009y", "ǅ ǆ Ǆ", "\u0958 \u09cb \u0b94", "lord's lo,lord", "the" * 33, "the" * 34, "\u1e9b\u0323", "\ud7a3\uac00"]


def hexed(encode, texts):
    for t in texts:
        print(t.encode().hex() or "-", *encode(t))


def noise(lines):
    dice = random.Random(7)
    pool = [chr(c) for c in range(0x30000) if u.category(chr(c)) not in ("Cn", "Cs") and chr(c) != "Σ"]
    for _ in range(lines):
        yield "".join(dice.choice(pool) if dice.random() < 0.5 else dice.choice("abc the,. ") for _ in range(40))


if __name__ == "__main__":
    what = sys.argv[1]
    if what == "vocabulary":
        print("\n".join(vocabulary()))
    else:
        encode = tokenizer(sys.argv[2])
        if what == "vectors":
            hexed(encode, TEXTS + list(noise(60)))
        elif what == "random":
            hexed(encode, noise(int(sys.argv[3])))
        else:
            for line in sys.stdin:
                print(*encode(line))
