// Small documents that the journey uploads: in several formats, broken, and hostile.

const SCRIPT = "<script>window.executed = 'script'</script>";
const IMAGE = "<img src=x onerror=\"window.executed='image'\">";
const LINK = "[press me](javascript:window.executed='link')";

/** A PDF with one page per argument, an array of lines of text. */
export function pdf(...pages) {
  const draw = (lines) => lines.map((line, i) => `BT /F1 12 Tf 72 ${720 - 20 * i} Td (${line.replace(/[()\\]/g, "\\$&")}) Tj ET`).join("\n");
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${pages.map((_, i) => `${4 + 2 * i} 0 R`).join(" ")}] /Count ${pages.length} >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ...pages.map(draw).flatMap((text, i) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${5 + 2 * i} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
      `<< /Length ${text.length} >>\nstream\n${text}\nendstream`,
    ]),
  ];
  let file = "%PDF-1.4\n";
  const places = objects.map((object, i) => {
    const at = file.length;
    file += `${i + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const table = file.length;
  const rows = places.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("");
  const count = objects.length + 1;
  return `${file}xref\n0 ${count}\n0000000000 65535 f \n${rows}trailer\n<< /Size ${count} /Root 1 0 R >>\nstartxref\n${table}\n%%EOF\n`;
}

/** Files that become searchable. */
export const GOOD = {
  "handbook.md": "# Handbook of the workshop\n\n## Hours\n\nThe workshop opens at seven in the morning. On Saturdays it opens at nine.\n\n## Tools\n\nThe band saw may be used only after a lesson with Ines Marten. Its blade is changed every 40 hours.\n",
  "lamp.txt": "The lamp Alba has a foot of slate and a shade of linen. It weighs 3.2 kilograms.\n\nThe linen is woven by Tessera Mills. Tessera Mills works with Norvik Logistics.\n",
  "glue.html": "<!doctype html><title>Glue</title><h1>Bone glue</h1><p>Bone glue is heated to 60 degrees Celsius. It must never boil.</p>",
  "prices.csv": "item,price in euro\noak board,48\nlinen shade,35\nslate foot,72\n",
  "order.pdf": pdf(["Order 2291 of the workshop", "The delivery of the slate plates is due on the 14th of March.", "The carrier is Norvik Logistics."],
    ["Terms of the order", "Payment is due thirty days after the delivery.", "Broken plates are replaced at no cost within a year.", "Claims are sent to the office of the workshop in writing."]),
};

/** A question, words of its answer, and the file that contains it. */
export const QUESTION = { text: "How hot is bone glue heated?", words: "60 degrees", file: "glue.html" };
export const PLAIN_QUESTION = { text: "How often is the blade of the band saw changed?", words: "every 40 hours", file: "handbook.md" };

/** A question and words of its answer on the second page of a PDF. */
export const PAGE_QUESTION = { text: "When are broken plates replaced at no cost?", words: "within a year" };

/** A file that no reader can parse. */
export const BROKEN = { "torn.pdf": "%PDF-1.4\nthis is not a document" };

/** Files that would run a script if any part of them were taken for markup. */
export const HOSTILE = {
  "hostile.md": `# ${SCRIPT}Zinnober ${IMAGE}\n\nZinnober text ${SCRIPT} ${IMAGE} and ${LINK}.\n\n<svg onload="window.executed='svg'"></svg>\n`,
  "hostile.html": `<!doctype html><title>Zinnober &lt;script>window.executed='title'&lt;/script></title><p>Zinnober page &lt;img src=x onerror="window.executed='page'"></p>${SCRIPT}${IMAGE}`,
  "hostile.svg": `<svg xmlns="http://www.w3.org/2000/svg" onload="window.executed='file'"><text>Zinnober drawing</text>${SCRIPT}</svg>`,
  "hostile<img src=x onerror=window.executed='name'>.txt": "Zinnober has a name of markup.\n",
};
export const HOSTILE_TITLE = `Zinnober ${SCRIPT}${IMAGE}`;
