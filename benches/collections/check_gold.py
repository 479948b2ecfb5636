#!/usr/bin/env python3
"""Checks the questions of a collection against its files:

    check_gold.py COLLECTION --bench DIR     (DIR holds answers.py, the scorer)

For every answerable question, the text of its sources must contain one alternative of `gold` completely; otherwise it exits with 1.
Also lists alternatives that are in no source, sources that do not contain gold alone, and `must_not` texts that are nowhere in the
collection. docx, xlsx and pptx are read as zip archives; questions on a pdf are skipped unless pypdf is installed.
"""
import html, json, os, re, sys, zipfile
if len(sys.argv) != 4 or sys.argv[2] != "--bench":
    sys.exit(__doc__)
HERE = sys.argv[1]
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[3])
from answers import find, plain


def text(path):
    ext = path.rsplit(".", 1)[-1]
    if ext in ("docx", "xlsx", "pptx"):
        with zipfile.ZipFile(path) as z:
            return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", z.read(n).decode("utf-8"))) for n in sorted(z.namelist()) if re.search(r"(document|slide\d+|sheet\d+|sharedStrings)\.xml$", n))
    if ext == "pdf":
        try:
            from pypdf import PdfReader
        except ImportError:
            return None
        return " ".join(p.extract_text() for p in PdfReader(path).pages)
    s = open(path, encoding="utf-8").read()
    if ext == "csv":
        s = s.replace(",", " , ")   # commas stand apart, so that adjacent cells do not look like one number
    return html.unescape(re.sub(r"<[^>]+>", " ", s)) if ext == "html" else s


T = {f["id"]: text(os.path.join(HERE, f["path"])) for f in json.load(open(HERE + "/manifest.json", encoding="utf-8"))["files"]}
everything, bad = plain(" ".join(x or "" for x in T.values())), 0
for line in open(HERE + "/questions.jsonl", encoding="utf-8"):
    q = json.loads(line)
    texts = [T[s] for s in q["sources"]]
    if q["gold"] and None not in texts:
        body = plain(" ".join(texts))
        got = [all(find(s, body) >= 0 for s in alt) for alt in q["gold"]]
        if not any(got):
            bad = 1
            print("NO GOLD", q["id"], q["question"], q["gold"])
        elif not all(got):
            print("  translated or worded otherwise:", q["id"], [a for a, g in zip(q["gold"], got) if not g])
        for s in q["sources"]:
            if not any(all(find(x, plain(T[s])) >= 0 for x in alt) for alt in q["gold"]):
                print("  source alone does not hold gold:", q["id"], s)
    for m in q.get("must_not", []):
        if find(m, everything) < 0:
            print("  must_not found nowhere:", q["id"], m)
print("gold missing" if bad else "ok")
sys.exit(bad)
