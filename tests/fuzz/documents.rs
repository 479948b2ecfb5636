//! The document readers, one target each, and format detection.

use lodestone_extract::{Format, detect, extract, html_head};

use crate::mutations::Shape;
use crate::runner::{Target, run};
use crate::{contained, invariants, seeds};

/// Tokens with a meaning in plain text and Markdown.
const MARKDOWN: &[&str] = &[
    "# ", "## ", "####### ", "- ", "* ", "+ ", "1. ", "999999999. ", "> ", "```", "~~~", "````",
    "---\n", "===\n", "| a | b |\n", "|---|:-:|\n", "|", "\\|", "    ", "\t", "\n\n", "\r\n", "\r",
    "<!-- ", " -->", "<div>", "</div>", "[a](b)", "[a]: b\n", "![x](y)", "`", "``", "**", "_",
    "\\", "\u{FEFF}", "\u{0B}", "\u{0C}", "\u{85}", "\u{2028}", "\u{200B}",
    "\u{1F468}\u{200D}\u{1F467}", "e\u{301}\u{301}", "\u{FB03}", "\0", "title: x\n", "。", ". A",
    "?! ",
];
const TABLE: &[&str] = &[
    ",", ";", "\t", "|", "\"", "\"\"", "\n", "\r\n", "\r", "\n\n", " ", "a", "\"a\nb\"", "sep=;\n",
    "\u{FEFF}", "1.5", "-", "\0", "\u{2028}", "'", ",,,,,,,,", "name", "é",
];
const RICH: &[&str] = &[
    "{", "}", "\\", "{\\*", "\\par ", "\\pard ", "\\'e9", "\\'", "\\u8364?", "\\u-10179?",
    "\\uc0 ", "\\uc99 ", "\\u65536 ", "\\bin5 ", "\\bin2147483647 ", "\\bin-1 ", "\\trowd",
    "\\cellx100", "\\intbl ", "\\cell ", "\\row ", "\\clvmgf", "\\clvmrg", "\\clmgf", "\\clmrg",
    "\\nestcell ", "\\nestrow ", "\\itap3 ", "{\\fonttbl{\\f9\\fcharset134 X;}}", "\\f9 ",
    "\\f-1 ", "\\ansicpg932 ", "\\ansicpg65001 ", "\\plain ", "\\v ", "\\v0 ",
    "{\\field{\\*\\fldinst X}{\\fldrslt y}}", "{\\footnote ", "{\\header ", "{\\pict ",
    "{\\object ", "{\\upr{", "{\\*\\ud{", "\\listtext ", "\\ls1\\ilvl1 ", "\\outlinelevel2 ",
    "\\s1 ", "\\page ", "\\sect ", "\\line ", "\\tab ", "\\~", "\\_", "\\-", "\\\n", "\\{",
    "\\fromhtml1 ", "{\\*\\htmltag64 <p>}", "\\htmlrtf ", "\\htmlrtf0 ", "\\deff0", "\\upr",
    "\\caps ", "\\emdash ", "\\lquote ", "\\mac ", "\\pc ", "\0", "\u{80}",
];
const LETTER: &[&str] = &[
    "\r\n",
    "\n",
    "\r\n\r\n",
    "\n\n",
    "\n ",
    "\n\t",
    ":",
    ";",
    "=",
    "\"",
    "--",
    "--o u\r\n",
    "--o u--\r\n",
    "--in\r\n",
    "Content-Type: multipart/mixed; boundary=in\r\n\r\n",
    "Content-Type: multipart/alternative; boundary=\"\"\r\n",
    "Content-Type: message/rfc822\r\n\r\n",
    "Content-Type: text/html; charset=utf-16\r\n",
    "Content-Type: text/plain; format=flowed; delsp=yes",
    "Content-Type: multipart/related; boundary=o\r\n",
    "Content-Transfer-Encoding: base64\r\n",
    "Content-Transfer-Encoding: quoted-printable\r\n",
    "Content-Transfer-Encoding: x-uuencode\r\n",
    "Content-Disposition: attachment; filename=a.html\r\n",
    "Content-Location: http://x/\r\n",
    "filename*0*=utf-8''%e9; filename*99=b",
    "=?utf-8?q?=E9_?=",
    "=?x?b?aGk?=",
    "=?utf-8?b??=",
    "=?",
    "?=",
    "=\r\n",
    "=E9",
    "=",
    "begin 644 a.zip\n",
    "`\nend\n",
    "Subject: ",
    "From: ",
    "Date: x\r\n",
    "> ",
    "-- \n",
    "aGVsbG8=\r\n",
    "charset=gb18030",
    "charset=utf-7",
    "charset=\"",
    "(comment (in))",
    "<a@b>",
    "\0",
    "é",
];

/// Within readers every panic is a finding, whoever wrote the code.
fn nothing(_: &str) -> bool {
    false
}

fn read(format: Format, bytes: &[u8]) {
    if let Ok(extracted) = extract(format, bytes) {
        invariants::check(&extracted);
    }
}

fn target(name: &'static str, extensions: &[&str], shape: Shape, format: Format) -> Target {
    Target {
        name,
        seeds: extensions.iter().flat_map(|extension| seeds::of(extension)).collect(),
        shape,
        read: Box::new(move |bytes| read(format, bytes)),
        is_contained: nothing,
    }
}

/// Defines a target for each line: its name, the formats of its seeds, its mutations and its
/// reader.
macro_rules! targets {
    ($($name:ident: [$($kind:literal),*], $shape:expr, $format:ident;)*) => {$(
        #[test]
        fn $name() {
            run(target(stringify!($name), &[$($kind),*], $shape, Format::$format));
        }
    )*};
}

targets! {
    txt: ["txt", "md", "csv"], Shape::Text(MARKDOWN), Txt;
    md: ["md"], Shape::Text(MARKDOWN), Md;
    html: ["html"], Shape::Markup, Html;
    json: ["json"], Shape::Values, Json;
    notebook: ["ipynb"], Shape::Values, Json;
    csv: ["csv"], Shape::Text(TABLE), Csv;
    tsv: ["tsv", "csv"], Shape::Text(TABLE), Tsv;
    xml: ["xml", "nxml"], Shape::Markup, Xml;
    docx: ["docx"], Shape::Archive, Docx;
    pptx: ["pptx"], Shape::Archive, Pptx;
    xlsx: ["xlsx"], Shape::Archive, Xlsx;
    odt: ["odt"], Shape::Archive, Odt;
    ods: ["ods"], Shape::Archive, Ods;
    odp: ["odp"], Shape::Archive, Odp;
    epub: ["epub"], Shape::Archive, Epub;
    rtf: ["rtf"], Shape::Text(RICH), Rtf;
    eml: ["eml"], Shape::Text(LETTER), Eml;
    msg: ["msg"], Shape::Compound, Msg;
}

/// HTML without menus, and the metadata in its head.
#[test]
fn web_page() {
    let read = |bytes: &[u8]| {
        read(Format::WebPage, bytes);
        let head = html_head(bytes);
        assert!(head.title.is_none_or(|title| !title.trim().is_empty()), "a blank title");
    };
    let target = target("web_page", &["html"], Shape::Markup, Format::WebPage);
    run(Target { read: Box::new(read), ..target });
}

/// The PDF library is third-party and may crash: the sandboxed process that parses contains that.
/// Our own code on top of it may not.
#[test]
fn pdf() {
    let target = target("pdf", &["pdf"], Shape::Objects, Format::Pdf);
    contained::run(Target { is_contained: |place| !place.contains("src/extract/"), ..target });
}

/// Goal: format detection never panics, and the detected format can be read. Method: the name and
/// the media type are derived from the bytes.
#[test]
fn detection() {
    const NAMES: [&str; 8] =
        ["upload", "a.docx", "b.pdf", "c.json", "d.TXT", "e.msg", "f.doc", "/g\\h.i.xlsx"];
    const TYPES: [Option<&str>; 4] =
        [None, Some("text/html; x"), Some("application/x+xml"), Some(";")];
    let formats = [
        "txt", "md", "html", "json", "ipynb", "csv", "xml", "docx", "xlsx", "odt", "epub", "rtf",
        "eml", "msg", "pdf",
    ];
    let read = |bytes: &[u8]| {
        let sum: usize = bytes.iter().map(|byte| usize::from(*byte)).sum();
        match detect(NAMES[sum % 8], TYPES[sum / 8 % 4], bytes) {
            Ok(Format::Pdf) | Err(_) => {}
            Ok(format) => read(format, bytes),
        }
    };
    run(Target {
        name: "detection",
        seeds: formats.iter().flat_map(|format| seeds::made(format)).collect(),
        shape: Shape::Anything,
        read: Box::new(read),
        is_contained: nothing,
    });
}
