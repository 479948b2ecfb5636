// One small file of each format that the server reads; each states a fact that no other does.
import { pdf } from "./files.mjs";

/** An uncompressed ZIP archive. */
function zip(parts) {
  const [pieces, list] = [[], []];
  let at = 0;
  for (const [name, text] of Object.entries(parts)) {
    const [title, data] = [Buffer.from(name), Buffer.from(text)];
    const head = Buffer.alloc(26);
    head.writeUInt16LE(20, 0);
    head.writeUInt32LE(crc32(data), 10);
    head.writeUInt32LE(data.length, 14);
    head.writeUInt32LE(data.length, 18);
    head.writeUInt16LE(title.length, 22);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(at, 10);
    const piece = Buffer.concat([Buffer.from("PK\x03\x04"), head, title, data]);
    list.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), head, tail, title]));
    pieces.push(piece);
    at += piece.length;
  }
  const index = Buffer.concat(list);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(list.length, 4);
  end.writeUInt16LE(list.length, 6);
  end.writeUInt32LE(index.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...pieces, index, Buffer.from("PK\x05\x06"), end]).toString("latin1");
}

function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

const relations = (...entries) => `<Relationships>${entries.map(([id, kind, target]) => `<Relationship Id="${id}" Type="http://x/${kind}" Target="${target}"/>`).join("")}</Relationships>`;
const types = (main) => `<Types><Override PartName="/x" ContentType="application/vnd.openxmlformats-officedocument.${main}.main+xml"/></Types>`;
const office = (main, root, parts) => zip({ "[Content_Types].xml": types(main), "_rels/.rels": relations(["r", "officeDocument", root]), ...parts });
const open = (kind, content) => zip({ mimetype: `application/vnd.oasis.opendocument.${kind}`, "content.xml": `<office:document-content><office:body>${content}</office:body></office:document-content>` });

/** By file name: a sentence or a table row's tool, a question, and words of the answer. */
const SAID = {
  "a.md": ["The anvil weighs ninety kilograms.", "How much does the anvil weigh?", "ninety"],
  "b.txt": ["The bellows are made of goat leather.", "What are the bellows made of?", "goat leather"],
  "c.html": ["The chisel is stored in the red drawer.", "Where is the chisel stored?", "red drawer"],
  "d.docx": ["The dovetail saw was bought in Sheffield.", "Where was the dovetail saw bought?", "Sheffield"],
  "e.pptx": ["The emery wheel turns at three thousand revolutions.", "How fast does the emery wheel turn?", "three thousand"],
  "f.odt": ["The furnace is lit on Thursdays only.", "When is the furnace lit?", "Thursdays"],
  "g.odp": ["The gimlet belongs to Helga Brandt.", "Who does the gimlet belong to?", "Helga Brandt"],
  "h.rtf": ["The hacksaw needs a blade of twelve inches.", "Which blade does the hacksaw need?", "twelve inches"],
  "i.epub": ["The inkwell was carved from soapstone.", "What was the inkwell carved from?", "soapstone"],
  "j.eml": ["The jigsaw will be repaired by Pavel Novak.", "Who will repair the jigsaw?", "Pavel Novak"],
  "k.pdf": ["The kiln is fired with birch wood.", "What is the kiln fired with?", "birch"],
  "l.json": ["The lathe was delivered from Rotterdam.", "Where was the lathe delivered from?", "Rotterdam"],
  "m.ipynb": ["The mallet has a head of hornbeam.", "What is the head of the mallet made of?", "hornbeam"],
  "n.xml": ["The nail gun is locked in cabinet seven.", "Where is the nail gun locked?", "cabinet seven"],
  "o.csv": ["oilstone", "What is the origin of the oilstone?", "Arkansas"],
  "p.tsv": ["plane", "What is the origin of the plane?", "Bavaria"],
  "q.xlsx": ["quern", "What is the origin of the quern?", "Anatolia"],
  "r.ods": ["rasp", "What is the origin of the rasp?", "Portugal"],
};
const cell = (text) => `<c t="inlineStr"><is><t>${text}</t></is></c>`;
const openCell = (text) => `<table:table-cell office:value-type="string"><text:p>${text}</text:p></table:table-cell>`;

/** Makes the content of a file from its sentence, or from the tool and the origin of its table row. */
const MADE = {
  md: (text) => `# Tool\n\n${text}\n`,
  txt: (text) => `${text}\n`,
  html: (text) => `<!doctype html><title>Tool</title><h1>Tool</h1><p>${text}</p>`,
  docx: (text) => office("wordprocessingml.document", "main.xml", { "main.xml": `<w:document><w:body><w:p><w:r><w:t>${text}</w:t></w:r></w:p></w:body></w:document>` }),
  pptx: (text) => office("presentationml.presentation", "ppt/presentation.xml", {
    "ppt/presentation.xml": "<p:presentation><p:sldIdLst><p:sldId id=\"256\" r:id=\"s1\"/></p:sldIdLst></p:presentation>",
    "ppt/_rels/presentation.xml.rels": relations(["s1", "slide", "slides/slide1.xml"]),
    "ppt/slides/slide1.xml": `<p:sld><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>`,
  }),
  odt: (text) => open("text", `<office:text><text:p>${text}</text:p></office:text>`),
  odp: (text) => open("presentation", `<office:presentation><draw:page draw:name="one"><draw:frame><draw:text-box><text:p>${text}</text:p></draw:text-box></draw:frame></draw:page></office:presentation>`),
  rtf: (text) => `{\\rtf1\\ansi ${text}\\par}`,
  epub: (text) => zip({ mimetype: "application/epub+zip", "META-INF/container.xml": "<container><rootfiles><rootfile full-path=\"book.opf\"/></rootfiles></container>",
    "book.opf": "<package><manifest><item id=\"one\" href=\"one.xhtml\" media-type=\"application/xhtml+xml\"/></manifest><spine><itemref idref=\"one\"/></spine></package>", "one.xhtml": `<html><body><p>${text}</p></body></html>` }),
  eml: (text) => `From: Ines <ines@example.org>\r\nTo: Tom <tom@example.org>\r\nSubject: A tool\r\nDate: Mon, 2 Mar 2026 10:00:00 +0000\r\nContent-Type: text/plain\r\n\r\n${text}\r\n`,
  pdf: (text) => pdf(["Cover of the leaflet"], [text, "This page says more."]),
  json: (text) => JSON.stringify({ note: text }),
  ipynb: (text) => JSON.stringify({ nbformat: 4, nbformat_minor: 5, metadata: {}, cells: [{ cell_type: "markdown", metadata: {}, source: [text] }] }),
  xml: (text) => `<?xml version="1.0"?><tool><note>${text}</note></tool>`,
  csv: (tool, origin) => `tool,origin\n${tool},${origin}\n`,
  tsv: (tool, origin) => `tool\torigin\n${tool}\t${origin}\n`,
  xlsx: (tool, origin) => office("spreadsheetml.sheet", "xl/workbook.xml", {
    "xl/workbook.xml": "<workbook><sheets><sheet name=\"Tools\" sheetId=\"1\" r:id=\"s1\"/></sheets></workbook>",
    "xl/_rels/workbook.xml.rels": relations(["s1", "worksheet", "worksheets/sheet1.xml"]),
    "xl/worksheets/sheet1.xml": `<worksheet><sheetData><row r="1">${cell("tool")}${cell("origin")}</row><row r="2">${cell(tool)}${cell(origin)}</row></sheetData></worksheet>`,
  }),
  ods: (tool, origin) => open("spreadsheet", `<office:spreadsheet><table:table table:name="Tools">${[["tool", "origin"], [tool, origin]].map((row) => `<table:table-row>${row.map(openCell).join("")}</table:table-row>`).join("")}</table:table></office:spreadsheet>`),
};

/** Name, content, question and words of the answer of each file. */
export const FORMATS = Object.entries(SAID).map(([name, [text, question, words]]) => ({ name, question, words, content: MADE[name.split(".")[1]](text, words) }));
