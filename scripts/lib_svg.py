"""A small SVG writer for draw_architecture and plots. Needs only the standard library."""

import html
import os
import sys

FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
INK, MUTED, GRID = "#1f2933", "#52606d", "#d9dee4"


class Picture:
    """Shapes on a white background, which keeps them readable on a dark page."""

    def __init__(self, width, height, title):
        self.parts = []
        self.head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="{FONT}" role="img">\n'
            f"<title>{html.escape(title)}</title>\n"
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{MUTED}"/></marker></defs>'
        )
        self.rect(0, 0, width, height, "#ffffff", radius=10)

    def rect(self, x, y, width, height, fill, stroke="none", radius=0):
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}" '
            f'fill="{fill}" stroke="{stroke}"/>'
        )

    def text(self, x, y, text, size=12, anchor="start", fill=INK, bold=False):
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}"{weight}>{html.escape(text)}</text>'
        )

    def line(self, points, stroke=MUTED, arrow=False, width=1.4):
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
        end = ' marker-end="url(#head)"' if arrow else ""
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{stroke}" stroke-width="{width}"{end}/>'
        )

    def svg(self):
        return "\n".join([self.head, *self.parts, "</svg>"]) + "\n"


def write(pictures, check):
    """Writes pictures {path: svg}, or with `check` exits with the list of those that are out of date."""
    stale = []
    for path, svg in pictures.items():
        try:
            with open(path, encoding="utf-8") as file:
                current = file.read() == svg
        except OSError:
            current = False
        if current:
            continue
        if check:
            stale.append(path)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(svg)
        print(f"wrote {path}")
    if stale:
        sys.exit("not current: " + ", ".join(stale))
