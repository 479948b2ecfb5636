"""The row on hostile documents: whatever is uploaded, the server survives, the job ends, and others are not affected."""
import io
import struct
import zipfile
import zlib

from server import Broken, Server, wait_for_jobs

A_TRIAL = 12


def archive(entries, level=9):
    """A ZIP archive with the given names and contents."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as made:
        for name, content in entries:
            made.writestr(name, content)
    return out.getvalue()


PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
TYPES = (
    f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{MAIN}"/></Types>'
)
RELATIONS = f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" {{}}/></Relationships>'
DOCUMENT = RELATIONS.format(f'Type="{OFFICE}/officeDocument" Target="word/document.xml"')
OUTSIDE = RELATIONS.format(f'Type="{OFFICE}/image" TargetMode="External" Target="http://127.0.0.1:80/x.png"')
WORD = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{}</w:body></w:document>'
PARAGRAPH = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"


def docx(body, more=()):
    """A Word document with the given body."""
    parts = [("[Content_Types].xml", TYPES), ("_rels/.rels", DOCUMENT), ("word/document.xml", WORD.format(body))]
    return archive([*parts, *more])


def pdf(objects, trailer="<</Root 1 0 R>>", head="%PDF-1.7\n"):
    """A PDF of numbered objects without a cross-reference table: readers rebuild it."""
    body = b"".join(f"{number} 0 obj\n".encode() + one + b"\nendobj\n" for number, one in enumerate(objects, 1))
    return head.encode() + body + f"trailer\n{trailer}\n%%EOF\n".encode()


def stream(content, entries=""):
    """A PDF stream object."""
    return f"<<{entries} /Length {len(content)}>>\nstream\n".encode() + content + b"\nendstream"


FONT = b"<</Font <</F <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> >> >>"


def page(content, entries="", kids="3 0 R", more=()):
    """A PDF with one page that draws `content`."""
    return pdf([
        b"<</Type /Catalog /Pages 2 0 R>>",
        f"<</Type /Pages /Kids [{kids}] /Count 1>>".encode(),
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources " + FONT + b">>",
        stream(content, entries),
        *more,
    ])


TEXT = b"BT /F 12 Tf 72 700 Td (A plover) Tj ET "


def families(size):
    """Hostile files by name; `size`, from 1 to 12, scales each."""
    n = 4**size
    big = min(n, 1 << 18)  # for files that may be readable: embedding more text takes minutes and shows nothing
    return office(size, n, big) | portable(size, n, big) | marked_up(size, n, big) | plain(size, n, big)


def entities(size):
    """An entity that expands to nested entities: a "billion laughs" document."""
    levels = "".join(f"<!ENTITY l{i} '&l{i - 1};&l{i - 1};&l{i - 1};'>" for i in range(1, size * 3))
    return f"<!DOCTYPE a [<!ENTITY l0 'ha'>{levels}]><a>&l{size * 3 - 1};</a>".encode()


def office(size, n, big):
    """Word documents, and archives that pretend to be one."""
    nested = b"0"
    for _ in range(min(size, 10)):
        nested = archive([("inner.docx", nested), ("filler", bytes(min(n, 1 << 22)))])
    lying = bytearray(docx(PARAGRAPH.format("A plover")))
    lying[22:26] = struct.pack("<I", n)
    climbing = [("../" * size + "etc/cron.d/x", b"x"), ("/etc/passwd", b"x"), ("a\0b", b"x")]
    return {
        "flat-bomb.docx": docx(PARAGRAPH.format("a" * (n * 16 if n < 1 << 16 else 1 << 27))),
        "filler-bomb.docx": docx("", [("word/media/x.bin", bytes(min(n * 64, 1 << 28)))]),
        "nested.docx": nested,
        "many-entries.docx": archive([(f"e{i}", b"") for i in range(min(n, 60_000))], 1),
        "climbing.docx": docx("", climbing),
        "lying.docx": bytes(lying),
        "deep.docx": docx("<w:p>" * big + "</w:p>" * big),
        "external.docx": docx("", [("word/_rels/document.xml.rels", OUTSIDE)]),
        "entity.docx": docx("", [("word/styles.xml", entities(size))]),
        "cut.docx": docx("<w:p/>")[: -size * 7],
    }


def portable(size, n, big):
    """PDFs."""
    flate = bytes(min(n * 64, 1 << 28))
    for _ in range(min(size, 4)):
        flate = zlib.compress(flate, 9)
    filters = "/Filter [" + "/FlateDecode " * min(size, 4) + "]"
    itself = "/Subtype /Form /Resources <</XObject <</X 5 0 R>> >>"
    back = f"xref\n0 0\ntrailer\n<</Root 1 0 R /Prev {size * 10}>>\nstartxref\n{size * 10}\n%%EOF".encode()
    sealed = f"<</Root 1 0 R /Encrypt <</Filter /Standard /V 5 /R 6 /Length {n} /O (x) /U (x) /P -1>> >>"
    catalog = b"<</Type /Catalog /Pages 2 0 R "
    return {
        "arrays.pdf": pdf([catalog + b"/X " + b"[" * big + b"]" * big + b">>"]),
        "dictionaries.pdf": pdf([b"<</A " * big + b">>" * big]),
        "tree-loop.pdf": pdf([catalog + b">>", b"<</Type /Pages /Kids [2 0 R] /Count 1>>"]),
        "previous-loop.pdf": page(TEXT) + back,
        "flate-bomb.pdf": page(flate, filters),
        "huge-width.pdf": pdf([stream(b"", f"/Type /XRef /W [{n} {n} {n}] /Root 1 0 R /Size {n}")]),
        "many-pages.pdf": page(TEXT, kids="3 0 R " * big),
        "encrypted.pdf": pdf([catalog + b">>"], sealed),
        "form.pdf": page(TEXT, more=[stream(entities(size), "/Type /XFA")]),
        "itself.pdf": page(b"/X Do " * size, more=[stream(b"/X Do /X Do", itself)]),
        "cut.pdf": page(TEXT)[: -size * 20],
    }


def marked_up(size, n, big):
    """XML, HTML and RTF."""
    text = "\u202e\u200b" * min(n, 100_000)
    return {
        "entities.xml": entities(size),
        "external.xml": b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>" * size,
        "attributes.xml": b"<a " + b" ".join(b"a%d='1'" % i for i in range(big)) + b"/>",
        "namespaces.xml": b"<a " + b" ".join(b"xmlns:a%d='u:%d'" % (i, i) for i in range(big)) + b"/>",
        "nested.html": b"<div>" * big + b"x" + b"</div>" * big,
        "unclosed.html": b"<a><i>" * big,
        "attributes.html": b"<p " + b" ".join(b"a%d=1" % i for i in range(big)) + b">x</p>",
        "charsets.html": b"<meta charset=utf-16>" * size + b"<p>+ADw-script+AD4-\xff\xfe\0a\0</p>" * min(n, 10_000),
        "table.html": b"<table><tr><td>" * big,
        "hidden.html": f"<p style='display:none'>{text}x</p>".encode(),
        "groups.rtf": b"{\\rtf1 " + b"{" * big + b"}" * big + b"}",
        "binary.rtf": b"{\\rtf1 \\bin%d x}" % n,
    }


def plain(size, n, big):
    """Texts, tables, JSON and mail."""
    part = b"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    return {
        "marks.txt": ("e" + "\u0301" * big).encode(),
        "one-word.txt": b"a" * big,
        "surrogates.txt": b"\xed\xa0\x80" * big,
        "zeros.txt": bytes(big),
        "deep.json": b"[" * big + b"]" * big,
        "wide.csv": b"a," * big + b"\n" + b"1," * big,
        "quotes.csv": b'"' * big,
        "nested.md": b">" * min(n, 1 << 18) + b"x",
        "lists.md": b"\n".join(b" " * i + b"- x" for i in range(min(n, 3000))),
        "links.md": b"[" * min(n, 1 << 18) + b"](",
        "parts.eml": b"MIME-Version: 1.0\r\n" + part[5:] + part * min(n, 1 << 16),
    }


def hostile(trial):
    """Some of the documents of one size; over many trials a run covers all of them, the sizes in turn."""
    number = int(trial.folder.name.rsplit("-", 1)[1])
    made = list(families(1 + (number * 5 + 4) % 12).items())
    trial.random.shuffle(made)
    made = made[:A_TRIAL]
    server = Server(trial, trial.folder / "data")
    client = server.client()
    bystander = {"file_id": "bystander", "content": "The lighthouse keeper wrote about plovers."}
    client.expect("POST", "/upload/upload_text", bystander, tenant_id="quiet")
    for at, (name, content) in enumerate(made):
        trial.note(name)
        status, answer = client.file("/upload/upload_document?tenant_id=acme", name, content, file_id=f"file-{at}")
        if status != 200 and not 400 <= status < 500:
            raise Broken(f"{name}, {len(content)} bytes: {status} {answer}")
        trial.add(documents=1, **{"refused" if status != 200 else "taken": 1})
        search = {"tenant_id": "quiet", "query": "plovers"}
        if at and not client.expect("POST", "/search/full-text-search", search):
            raise Broken(f"a bystander is not found after {name}")
        if not at:
            wait_for_jobs(client)
    wait_for_jobs(client)
    for source in client.expect("GET", "/list/sources", tenant_id="acme", limit=100)["sources"]:
        if source["status"] == "errored":
            trial.add(errored=1)
            if source["error_code"] in ("INTERNAL", "INTERNAL_ERROR", ""):
                raise Broken(f"{made[int(source['id'][5:])][0]}: {source}")
    server.stop()
