"""Makes the Word, Excel, PDF and PowerPoint files of the collections; the same input gives the same text and bytes.

Needs python-docx, openpyxl, reportlab and python-pptx (the files were made with 1.2.0, 3.1.5, 5.1.0 and 1.0.2).
"""
import io, os, re, sys, zipfile


class Office:
    """Writes files to the folder in the calling script's first argument, by default to `files` beside the script."""

    def __init__(self, script, who, stamp):
        """`who` is the author; `stamp`, from year to second, is used for all times."""
        self.out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(script)), "files")
        self.who, self.stamp = who, stamp

    def put(self, name, save):
        """Repacks a zip container with fixed times of its members and of saving."""
        raw = io.BytesIO()
        save(raw)
        saved = "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z".format(*self.stamp).encode()
        with zipfile.ZipFile(raw) as z, zipfile.ZipFile(os.path.join(self.out, name), "w") as out:
            for item in z.infolist():
                data = z.read(item)
                if item.filename == "docProps/core.xml":
                    data = re.sub(rb"(<dcterms:(?:modified|created)[^>]*>)[^<]*", rb"\g<1>" + saved, data)
                out.writestr(zipfile.ZipInfo(item.filename, self.stamp), data, zipfile.ZIP_DEFLATED)

    def docx(self, name, title, parts):
        from docx import Document
        d = Document()
        d.core_properties.title, d.core_properties.author = title, self.who
        for kind, body in parts:
            if kind == "table":
                t = d.add_table(rows=0, cols=len(body[0]))
                for row in body:
                    for cell, text in zip(t.add_row().cells, row):
                        cell.text = text
            elif kind.startswith("h"):
                d.add_heading(body, int(kind[1:] or 2))
            elif kind == "li":
                for item in body:
                    d.add_paragraph(item, style="List Bullet")
            else:
                d.add_paragraph(body)
        self.put(name, d.save)

    def xlsx(self, name, sheets):
        from openpyxl import Workbook
        w = Workbook()
        w.remove(w.active)
        w.properties.creator = self.who
        for title, rows in sheets:
            s = w.create_sheet(title)
            for r in rows:
                s.append(r)
        self.put(name, w.save)

    def pdf(self, name, title, parts, rule=("GRID", 0.5, "#888888"), heading="Heading2", foot="", author=None, **page):
        """`rule` draws tables; `foot` precedes title and page number in each footer; `page` sets the page layout."""
        from reportlab.lib.pagesizes import A4
        from reportlab.lib.styles import getSampleStyleSheet
        from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle
        st = getSampleStyleSheet()
        line, width, colour = rule
        flow = [Paragraph(title, st["Title"])]
        for kind, body in parts:
            if kind == "table":
                flow += [Table(body, style=TableStyle([(line, (0, 0), (-1, -1), width, colour)])), Spacer(1, 8)]
            elif kind == "page":
                flow.append(PageBreak())
            elif kind == "li":
                flow += [Paragraph(f"{i}. {x}", st["BodyText"]) for i, x in enumerate(body, 1)]
            else:
                flow.append(Paragraph(body, st[heading if kind == "h" else "BodyText"]))
        draw = lambda c, d: foot and c.drawString(60, 30, f"{foot} - {title} - page {d.page}")
        d = SimpleDocTemplate(os.path.join(self.out, name), title=title, author=author or self.who, invariant=1, **{"pagesize": A4, **page})
        d.build(flow, onFirstPage=draw, onLaterPages=draw)

    def pptx(self, name, slides):
        from pptx import Presentation
        p = Presentation()
        p.core_properties.title, p.core_properties.author = slides[0][0], self.who
        for title, lines in slides:
            s = p.slides.add_slide(p.slide_layouts[1])
            s.shapes.title.text = title
            s.placeholders[1].text = "\n".join(lines)
        self.put(name, p.save)
