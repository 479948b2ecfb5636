//! PDF pages.

use std::io::Write;

const FONTS: &str = "/Resources <</Font <<\
    /F1 <</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>\
    /F2 <</Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /FirstChar 65 /LastChar 67 \
    /Widths [700 710 720] /Encoding <</BaseEncoding /MacRomanEncoding /Differences [65 /A /fi \
    /alpha]>> \
    /FontDescriptor <</Type /FontDescriptor /FontName /X /Flags 32 /MissingWidth 500 /Ascent \
    700>> >>\
    /F3 <</Type /Font /Subtype /Type1 /BaseFont /Courier>>\
    /F4 <</Type /Font /Subtype /Type0 /BaseFont /C /Encoding /Identity-H /ToUnicode 3 0 R \
    /DescendantFonts [<</Type /Font /Subtype /CIDFontType2 /BaseFont /C /DW 500 /W [1 [500 600] 5 \
    9 \
    700] /CIDSystemInfo <</Registry (Adobe) /Ordering (Identity) /Supplement 0>> >>]>>\
    /F5 <</Type /Font /Subtype /Type3 /FontBBox [0 0 1 1] /FontMatrix [.01 0 0 .01 0 0] \
    /FirstChar 65 \
    /LastChar 65 /Widths [50] /Encoding <</Differences [65 /a]>> /CharProcs <</a 5 0 R>> >> >> \
    /XObject <</X 6 0 R>> /ExtGState <</G <</Font [4 0 R 9]>> >> >>";
const TO_UNICODE: &str = "/CIDInit /ProcSet findresource begin begincmap\n1 begincodespacerange \
 <00> \
    <FFFF> endcodespacerange\n2 beginbfchar\n<41> <05D0>\n<0042> <FB01>\nendbfchar\n1 \
    beginbfrange\n\
    <0043> <0050> <0061>\n<0051> <0052> [<0031> <0032>]\nendbfrange\nendcmap end end";

const DRAWN: &[(&str, &str)] = &[
    (
        "",
        "BT /F2 16 Tf 1 0 0 1 72 740 Tm (A Title) Tj ET BT /F1 10 Tf 1 0 0 1 72 700 Tm 12 TL (The \
         left \
         column begins here and) Tj T* (goes on for sev-) ' T* (eral lines.) Tj ET BT /F1 10 Tf 1 \
         0 0 1 \
         320 700 Tm [(While) -300 (the right) 20 (one)] TJ 0 -12 Td (says more.) Tj ET",
    ),
    (
        "/Rotate 90 /CropBox [50 50 500 700]",
        "q 0 1 -1 0 300 100 cm BT /F3 9 Tf (let x = 1;) Tj 0 -10 Td (let y = 2;) Tj ET Q BT /F4 \
         12 Tf 1 0 \
         0 1 100 500 Tm <00410042004300510052> Tj ET /X Do BT /F5 100 Tf 100 300 Td (AAA) Tj ET",
    ),
    (
        "/UserUnit 2",
        "BT /F1 10 Tf 1 0 0 1 72 600 Tm (Name) Tj 100 0 Td (Share) Tj -100 -14 Td (Ada) Tj 100 0 \
         Td (7) Tj \
         -100 -14 Td (Bo) Tj 100 0 Td (9) Tj ET /P <</MCID 0 /ActualText (x)>> BDC BT /F1 10 Tf 2 \
         Tr 50 Tz \
         3 Ts 1 Tc 2 Tw 72 500 Td (\\050odd\\051) Tj ET EMC BT /F1 6 Tf 150 605 Td (2) Tj ET 0 0 \
         m 9 9 l S",
    ),
];

pub fn pages() -> Vec<Vec<u8>> {
    let stream = |entries: &str, content: &str| {
        format!("<<{entries} /Length {}>>\nstream\n{content}\nendstream", content.len())
    };
    let form = stream(
        &format!("/Type /XObject /Subtype /Form /BBox [0 0 99 99] /Matrix [1 0 0 1 9 9] {FONTS}"),
        "BT /F1 8 Tf 1 1 Td (formed) Tj ET",
    );
    let page = |number: usize, (entries, drawn): &(&str, &str)| {
        let content = number + 1;
        let page = format!(
            "<</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {FONTS} {entries} /Contents \
             {content} 0 \
             R>>"
        );
        [page, stream("", drawn)]
    };
    let with_pages = |drawn: &[(&str, &str)]| {
        let first = 7;
        let kids: String = (0..drawn.len()).map(|at| format!("{} 0 R ", first + 2 * at)).collect();
        let mut objects = vec![
            "<</Type /Catalog /Pages 2 0 R /Lang (en)>>".to_owned(),
            format!("<</Type /Pages /Count {} /Kids [{kids}]>>", drawn.len()),
            stream("", TO_UNICODE),
            "<</Title (Drawn) /Author (Nobody)>>".to_owned(),
            stream("", "50 0 d0 0 0 40 40 re f"),
            form.clone(),
        ];
        for (at, drawn) in drawn.iter().enumerate() {
            objects.extend(page(first + 2 * at, drawn));
        }
        file(&objects)
    };
    let mut files: Vec<Vec<u8>> = DRAWN.iter().map(|drawn| with_pages(&[*drawn])).collect();
    files.push(with_pages(DRAWN));
    files
}

/// Builds a file of these objects; the first is the catalog, and the fourth the document
/// information.
fn file(objects: &[String]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(bytes.len());
        write!(bytes, "{} 0 obj\n{object}\nendobj\n", number + 1).expect("memory");
    }
    let table = bytes.len();
    let size = objects.len() + 1;
    write!(bytes, "xref\n0 {size}\n0000000000 65535 f \n").expect("memory");
    for place in places {
        writeln!(bytes, "{place:010} 00000 n ").expect("memory");
    }
    write!(bytes, "trailer\n<</Size {size} /Root 1 0 R /Info 4 0 R>>\nstartxref\n{table}\n%%EOF\n")
        .expect("memory");
    bytes
}
