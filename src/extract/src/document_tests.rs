//! Goal: documents built here yield the text their authors meant, and no damage to one of them
//! crashes a reader. Real documents yield their text within time and memory limits.

use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::sandbox::{InProcess, Parser};
use crate::tests::{check, processor_time};
use crate::{ExtractError, Format, detect, extract};
use lodestone_types::{Extracted, JobErrorCode, PageRef, Warning};

fn zipped<T: AsRef<[u8]>>(parts: &[(&str, T)], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, content) in parts {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content.as_ref()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn stored(parts: &[(&str, &str)]) -> Vec<u8> {
    zipped(parts, CompressionMethod::Stored)
}

/// Detects and reads a document; the name gives no hint.
fn read(bytes: &[u8]) -> Extracted {
    let format = detect("upload", None, bytes).unwrap();
    let extracted = extract(format, bytes).unwrap();
    check(&extracted);
    extracted
}

fn relations(entries: &[(&str, &str, &str)]) -> String {
    let entries = entries.iter().map(|(id, kind, target)| {
        format!("<Relationship Id='{id}' Type='http://x/{kind}' Target='{target}'/>")
    });
    format!("<Relationships>{}</Relationships>", entries.collect::<String>())
}

fn content_types(main: &str) -> String {
    format!(
        "<Types><Override PartName='/x' ContentType=\
         'application/vnd.openxmlformats-officedocument.{main}.main+xml'/></Types>"
    )
}

fn docx(body: &str) -> Vec<u8> {
    let styles = "<w:styles><w:style w:styleId='berschrift1'><w:name w:val='heading 1'/></w:style>\
        <w:style w:styleId='Own'><w:basedOn w:val='berschrift1'/>\
        <w:pPr><w:outlineLvl w:val='1'/></w:pPr></w:style>\
        <w:style w:styleId='T'><w:name w:val='Title'/></w:style></w:styles>";
    let level = |level: u8, format: &str, text: &str| {
        format!(
            "<w:lvl w:ilvl='{level}'><w:start w:val='1'/><w:numFmt w:val='{format}'/>\
             <w:lvlText w:val='{text}'/></w:lvl>"
        )
    };
    let numbering = format!(
        "<w:numbering><w:abstractNum w:abstractNumId='7'>{}{}</w:abstractNum>\
         <w:num w:numId='1'><w:abstractNumId w:val='7'/></w:num>\
         <w:num w:numId='2'><w:abstractNumId w:val='7'/><w:lvlOverride w:ilvl='0'>\
         <w:startOverride w:val='5'/></w:lvlOverride></w:num></w:numbering>",
        level(0, "decimal", "%1."),
        level(1, "lowerLetter", "%1%2)"),
    );
    let notes = "<w:footnotes><w:footnote w:id='1'><w:p><w:r><w:t>A note.</w:t></w:r></w:p>\
        </w:footnote></w:footnotes>";
    let header = "<w:hdr><w:p><w:r><w:t>Acme Corporation, page </w:t></w:r>\
        <w:fldSimple w:instr=' PAGE '><w:r><w:t>7</w:t></w:r></w:fldSimple></w:p></w:hdr>";
    let body = format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>");
    stored(&[
        ("[Content_Types].xml", &content_types("wordprocessingml.document")),
        ("_rels/.rels", &relations(&[("r", "officeDocument", "doc/main.xml")])),
        (
            "doc/_rels/main.xml.rels",
            &relations(&[
                ("a", "styles", "s.xml"),
                ("b", "numbering", "/doc/n.xml"),
                ("c", "footnotes", "../doc/f.xml"),
                ("d", "header", "h.xml"),
                ("e", "header", "h.xml"),
            ]),
        ),
        ("doc/main.xml", &body),
        ("doc/s.xml", styles),
        ("doc/n.xml", &numbering),
        ("doc/f.xml", notes),
        ("doc/h.xml", header),
    ])
}

fn paragraph(properties: &str, text: &str) -> String {
    format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

fn word_sample() -> Vec<u8> {
    let item = |list: u8, level: u8, text: &str| {
        let properties =
            format!("<w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='{list}'/></w:numPr>");
        paragraph(&properties, text)
    };
    let cell = |properties: &str, text: &str| {
        format!("<w:tc><w:tcPr>{properties}</w:tcPr>{}</w:tc>", paragraph("", text))
    };
    let nested = format!(
        "<w:tc><w:tbl><w:tr>{}{}</w:tr></w:tbl>{}</w:tc>",
        cell("", "in"),
        cell("", "ner"),
        paragraph("", "after")
    );
    docx(&[
        paragraph("<w:pStyle w:val='T'/>", "The Title"),
        paragraph("<w:pStyle w:val='berschrift1'/>", "One"),
        paragraph("<w:pStyle w:val='Own'/>", "Two &amp; a half"),
        "<w:p><w:r><w:t>kept </w:t></w:r><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r>\
         <w:delText>old</w:delText></w:r></w:del><w:r><w:rPr><w:vanish/></w:rPr><w:t>no</w:t></w:r>\
         <w:r><w:footnoteReference w:id='1'/><w:t>, e\u{FB03}cient</w:t></w:r></w:p>"
            .to_owned(),
        "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>joined </w:t></w:r></w:p>".to_owned(),
        paragraph("", "again"),
        item(1, 0, "first"),
        item(1, 1, "sub"),
        item(1, 0, "second"),
        item(2, 0, "fifth"),
        "<w:tbl>".to_owned(),
        format!("<w:tr>{}{}</w:tr>", cell("<w:gridSpan w:val='2'/>", "a|b"), cell("", "c")),
        format!(
            "<w:tr>{}{}{nested}</w:tr>",
            cell("<w:vMerge w:val='restart'/>", "m"),
            cell("", "1")
        ),
        format!("<w:tr>{}{}{}</w:tr>", cell("<w:vMerge/>", ""), cell("", "2"), cell("", "3")),
        format!("<w:tr><w:trPr><w:del/></w:trPr>{}{}</w:tr>", cell("", "x"), cell("", "gone")),
        "</w:tbl>".to_owned(),
        "<w:p><w:r><AlternateContent><Choice><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p>\
         </w:txbxContent></Choice><Fallback><w:p><w:r><w:t>twice</w:t></w:r></w:p></Fallback>\
         </AlternateContent><w:t>host</w:t><w:br/><w:t>line</w:t></w:r></w:p>"
            .to_owned(),
    ]
    .concat())
}

#[test]
fn word_documents_read_as_they_are_printed() {
    let extracted = read(&word_sample());
    let expected = "# The Title\n\n# One\n\n## Two & a half\n\nkept new, efficient\n\n[1] A \
             note.\n\n\
        joined again\n\n1. first\n  1a) sub\n2. second\n5. fifth\n\n\
        | a\\|b |  | c |\n| --- | --- | --- |\n| m | 1 | in ner after |\n| m | 2 | 3 |\n\n\
        boxed\n\nhost\nline\n\nAcme Corporation, page";
    assert_eq!(extracted.text, expected);
    assert_eq!(extracted.title.as_deref(), Some("The Title"));
}

/// A Word document whose second paragraph contains `element`, which may refer to the part `name`
/// by the id `x`.
fn docx_with(element: &str, kind: &str, name: &str, part: &[u8]) -> Vec<u8> {
    let body = format!("{}<w:p>{element}</w:p>", paragraph("", "Above"));
    let own = format!("word/{name}");
    let parts = [
        ("[Content_Types].xml", content_types("wordprocessingml.document").into_bytes()),
        ("_rels/.rels", relations(&[("r", "officeDocument", "word/document.xml")]).into_bytes()),
        ("word/_rels/document.xml.rels", relations(&[("x", kind, name)]).into_bytes()),
        (
            "word/document.xml",
            format!("<w:document><w:body>{body}</w:body></w:document>").into_bytes(),
        ),
        (own.as_str(), part.to_vec()),
    ];
    zipped(&parts, CompressionMethod::Stored)
}

#[test]
fn documents_embedded_in_word_documents_are_read_in_place() {
    let with =
        |name: &str, part: &[u8]| read(&docx_with("<w:altChunk r:id='x'/>", "aFChunk", name, part));
    let archive = b"MIME-Version: 1.0\nContent-Type: multipart/related; type=\"text/html\"; \
        boundary=\"b\"\n\n--b\nContent-Type: text/html; charset=\"utf-8\"\n\
        Content-Transfer-Encoding: quoted-printable\n\n<h1>Plan</h1><p>caf=C3=A9</p>\n--b--\n";
    assert_eq!(with("afchunk.mht", archive).text, "Above\n\n# Plan\n\ncaf\u{e9}");
    let inner = docx(&paragraph("", "Inside"));
    assert_eq!(with("1.docx", &inner).text, "Above\n\nInside\n\nAcme Corporation, page");
    assert_eq!(with("1.html", b"<p>One<p>Two").text, "Above\n\nOne\n\nTwo");
    let damaged = with("2.docx", b"PK\x03\x04");
    assert_eq!(damaged.text, "Above");
    let [warning] = &damaged.warnings[..] else { panic!("{:?}", damaged.warnings) };
    assert_eq!(warning.code, "attachment_not_read");
    assert!(warning.message.contains("word/2.docx"), "{}", warning.message);
    assert!(with("empty.txt", b" ").warnings.is_empty(), "nothing is missing");
}

#[test]
fn each_text_of_a_diagram_is_written_once() {
    let point =
        |text: &str| format!("<dgm:pt><dgm:t><a:p>{text}</a:p></dgm:t> <dgm:spPr/></dgm:pt>");
    let texts = ["<a:r><a:t>Alpha</a:t></a:r>", "<a:r><a:t>Be</a:t></a:r><a:r><a:t>ta</a:t></a:r>"];
    let points = [texts[0], "<a:endParaRPr/>", texts[1], "<a:r><a:t>Gamma</a:t></a:r>"].map(point);
    let part = format!("<dgm:dataModel><dgm:ptLst>{}</dgm:ptLst></dgm:dataModel>", points.concat());
    let diagram = docx_with("<dgm:relIds r:dm='x'/>", "diagramData", "d.xml", part.as_bytes());
    assert_eq!(read(&diagram).text, "Above\n\nAlpha\n\nBeta\n\nGamma");
}

#[test]
fn values_of_a_chart_stay_next_to_their_category() {
    let points = |points: &[(usize, &str)]| -> String {
        let point =
            |(at, value): &(usize, &str)| format!("<c:pt idx='{at}'><c:v>{value}</c:v></c:pt>");
        points.iter().map(point).collect()
    };
    let name = points(&[(0, "Sales")]);
    let inner = points(&[(0, "North"), (1, "South"), (2, "West"), (9_999_999, "no")]);
    let outer = points(&[(0, "Region")]);
    let values = points(&[(0, "5"), (2, "7"), (9_999_999, "no")]);
    let part = format!(
        "<c:chartSpace><c:ser><c:tx>{name}</c:tx><c:cat><c:lvl>{inner}</c:lvl><c:lvl>{outer}\
         </c:lvl></c:cat><c:val>{values}</c:val></c:ser></c:chartSpace>"
    );
    let expected =
        "Above\n\n|  | Sales |\n| --- | --- |\n| North | 5 |\n| South |  |\n| West | 7 |";
    let chart = docx_with("<c:chart r:id='x'/>", "chart", "c.xml", part.as_bytes());
    assert_eq!(read(&chart).text, expected);
}

#[allow(clippy::too_many_lines)] // One file, part by part.
fn slides_sample() -> Vec<u8> {
    let shape = |place: &str, head: &str, text: &str| {
        format!(
            "<p:sp><p:nvSpPr><p:cNvPr id='1'/><p:nvPr>{head}</p:nvPr></p:nvSpPr><p:spPr>{place}\
             </p:spPr><p:txBody>{text}</p:txBody></p:sp>"
        )
    };
    let place = |x: u32, y: u32| {
        format!("<a:xfrm><a:off x='{x}' y='{y}'/><a:ext cx='90' cy='90'/></a:xfrm>")
    };
    let line = |properties: &str, text: &str| {
        format!("<a:p>{properties}<a:r><a:t>{text}</a:t></a:r></a:p>")
    };
    let slide = |shapes: &str| {
        format!("<p:sld><p:cSld><p:spTree><p:nvGrpSpPr/>{shapes}</p:spTree></p:cSld></p:sld>")
    };
    let first = slide(
        &[
            shape(&place(500, 500), "", &line("", "low")),
            shape(&place(0, 200), "", &line("", "high")),
            shape("", "<p:ph type='sldNum'/>", &line("", "12")),
            shape(
                &place(0, 900),
                "<p:ph idx='1'/>",
                &[
                    line("", "point"),
                    line("<a:pPr lvl='1'/>", "under"),
                    line("<a:pPr><a:buNone/></a:pPr>", "plain"),
                ]
                .concat(),
            ),
            shape("", "<p:ph type='ctrTitle'/>", &line("", "Deck")),
        ]
        .concat(),
    );
    let second = slide(
        &[
            format!(
                "<p:grpSp>{}{}</p:grpSp>",
                shape(&place(200, 0), "", &line("", "right")),
                shape(&place(0, 0), "", &line("", "left")),
            ),
            "<p:graphicFrame><a:tbl><a:tr><a:tc rowSpan='2'><a:txBody><a:p><a:r><a:t>r</a:t></a:r>\
             </a:p>\
         </a:txBody></a:tc><a:tc><a:p><a:r><a:t>s</a:t></a:r></a:p></a:tc></a:tr><a:tr>\
         <a:tc vMerge='1'><a:p/></a:tc><a:tc><a:p><a:r><a:t>t</a:t></a:r></a:p></a:tc></a:tr>\
             </a:tbl>\
         </p:graphicFrame>"
                .to_owned(),
            "<p:pic><p:nvPicPr><p:cNvPr descr='A duck&#10;made up'/></p:nvPicPr></p:pic>"
                .to_owned(),
        ]
        .concat(),
    );
    let notes = format!(
        "<p:notes>{}{}</p:notes>",
        shape("", "<p:ph type='body'/>", &line("", "say this")),
        shape("", "<p:ph type='sldImg'/>", &line("", "picture")),
    );
    stored(&[
        ("[Content_Types].xml", &content_types("presentationml.presentation")),
        ("_rels/.rels", &relations(&[("r", "officeDocument", "ppt/p.xml")])),
        (
            "ppt/p.xml",
            "<p:presentation><p:sldIdLst><p:sldId id='256' r:id='b'/><p:sldId id='257' r:id='a'/>\
             </p:sldIdLst></p:presentation>",
        ),
        (
            "ppt/_rels/p.xml.rels",
            &relations(&[("a", "slide", "slides/1.xml"), ("b", "slide", "slides/2.xml")]),
        ),
        ("ppt/slides/2.xml", &first),
        ("ppt/slides/1.xml", &second),
        ("ppt/slides/_rels/1.xml.rels", &relations(&[("n", "notesSlide", "../n.xml")])),
        ("ppt/n.xml", &notes),
    ])
}

#[test]
fn slides_come_in_the_order_in_which_they_are_shown() {
    let extracted = read(&slides_sample());
    let expected = "# Deck\n\nhigh\n\nlow\n\n- point\n  - under\n\nplain\n\n\
        left\n\nright\n\n| r | s |\n| --- | --- |\n| r | t |\n\nA duck\n\n### Notes\n\nsay this";
    assert_eq!(extracted.text, expected);
    let pages: Vec<PageRef> = extracted.pages.iter().map(|page| page.page).collect();
    assert_eq!(pages, [PageRef::Slide(1), PageRef::Slide(2)]);
    assert!(extracted.text[extracted.pages[1].start..].starts_with("left"));
}

fn workbook_sample() -> Vec<u8> {
    let sheet = |rows: &str, merges: &str| {
        format!(
            "<worksheet><sheetData>{rows}</sheetData><mergeCells>{merges}</mergeCells></worksheet>"
        )
    };
    let first = sheet(
        "<row r='1'><c r='A1' t='s'><v>0</v></c></row>\
         <row r='3'><c r='A3' t='inlineStr'><is><t>region</t></is></c><c r='B3' t='str'>\
             <v>day</v></c>\
         <c r='C3' t='s'><v>1</v></c></row>\
         <row r='4'><c r='A4' t='str'><v>North</v></c><c r='B4' s='1'><v>45351</v></c>\
         <c r='C4' s='2'><f>1/8</f><v>0.125</v></c></row>\
         <row r='5'><c r='B5' s='1'><v>45352.5</v></c><c r='C5' t='e'><v>#DIV/0!</v></c>\
         <c r='D5'><f>B5*2</f></c><c r='E5' t='str'><f>\"\"</f><v></v></c>\
         <c r='F5'><f>B5*3</f><v></v></c><c r='G5'><f>B5*4</f><v/></c></row>\
         <row r='1048576'><c r='XFD1048576'><v>0.30000000000000004</v></c></row>",
        "<mergeCell ref='A4:A5'/>",
    );
    let second = sheet(
        "<row><c t='str'><v>Name</v></c><c t='str'><v>Ada</v></c></row>\
         <row><c t='str'><v>Role</v></c><c t='b'><v>1</v></c></row>",
        "",
    );
    stored(&[
        ("[Content_Types].xml", &content_types("spreadsheetml.sheet")),
        (
            "xl/workbook.xml",
            "<workbook><sheets><sheet name='Hidden' state='hidden' r:id='c'/><sheet name='Sales' \
             r:id='a'/><sheet name='Form' r:id='b'/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            &relations(&[
                ("a", "worksheet", "1.xml"),
                ("b", "worksheet", "2.xml"),
                ("c", "worksheet", "2.xml"),
            ]),
        ),
        (
            "xl/sharedStrings.xml",
            "<sst><si><r><t>Sales </t></r><r><t>report</t></r><rPh><t>x</t></rPh></si>\
             <si><t>share</t></si></sst>",
        ),
        (
            "xl/styles.xml",
            "<styleSheet><numFmts><numFmt numFmtId='170' formatCode='dd.mm.yy hh:mm'/></numFmts>\
             <cellStyleXfs><xf numFmtId='0'/></cellStyleXfs><cellXfs><xf numFmtId='0'/>\
             <xf numFmtId='170'/><xf numFmtId='10'/></cellXfs></styleSheet>",
        ),
        ("xl/1.xml", &first),
        ("xl/2.xml", &second),
    ])
}

#[test]
fn sheets_give_records_where_columns_have_names() {
    let extracted = read(&workbook_sample());
    let expected = "## Sales\n\nSales report\n\nregion: North\nday: 2024-02-29\nshare: 12.5%\n\n\
        region: North\nday: 2024-03-01 12:00\n\n0.3\n\n## Form\n\nName: Role\nAda: TRUE";
    assert_eq!(extracted.text, expected);
    let pages: Vec<PageRef> = extracted.pages.iter().map(|page| page.page).collect();
    assert_eq!(pages, [PageRef::Sheet(2), PageRef::Sheet(3)]);
    assert_eq!(extracted.warnings, [Warning::formulas_without_values(3)]);
}

fn open_text_sample() -> Vec<u8> {
    stored(&[
        ("mimetype", "application/vnd.oasis.opendocument.text"),
        ("meta.xml", "<office:meta><dc:title>Meta</dc:title></office:meta>"),
        (
            "content.xml",
            "<office:document-content><office:automatic-styles><text:list-style style:name='L'>\
             <text:list-level-style-number text:level='1' style:num-format='i'/></text:list-style>\
             <style:style style:name='P1' style:parent-style-name='Title'/>\
             </office:automatic-styles>\
             <office:body><office:text><text:tracked-changes><text:p>deleted</text:p>\
             </text:tracked-changes><text:p text:style-name='P1'>Top</text:p>\
             <text:h text:outline-level='2'>Head</text:h><text:p>a<text:s text:c='3'/>b<text:tab/>c\
             <text:note><text:note-citation>1</text:note-citation><text:note-body>\
             <text:p>foot</text:p>\
             </text:note-body></text:note>d</text:p><text:list text:style-name='L'><text:list-item>\
             <text:p>one</text:p><text:list><text:list-item><text:p>in</text:p></text:list-item>\
             </text:list></text:list-item><text:list-item><text:p>two</text:p></text:list-item>\
             </text:list><table:table><table:table-row><table:table-cell \
             table:number-rows-spanned='2'><text:p>x</text:p></table:table-cell><table:table-cell>\
             <text:p>y</text:p></table:table-cell></table:table-row><table:table-row>\
             <table:covered-table-cell/><table:table-cell><text:p>z</text:p></table:table-cell>\
             </table:table-row></table:table></office:text></office:body>\
             </office:document-content>",
        ),
    ])
}

fn open_sheet_sample() -> Vec<u8> {
    stored(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        (
            "content.xml",
            "<office:document-content><office:body><office:spreadsheet><table:table \
             table:name='S'><table:table-row><table:table-cell><text:p>k</text:p>\
             </table:table-cell>\
             <table:table-cell><text:p>v</text:p></table:table-cell><table:table-cell \
             table:number-columns-repeated='16382'/></table:table-row><table:table-row \
             table:number-rows-repeated='2'><table:table-cell office:value-type='date' \
             office:date-value='2024-02-29'><text:p>29.2.</text:p></table:table-cell>\
             <table:table-cell office:value-type='percentage' office:value='0.5'>\
             <text:p>50 %</text:p>\
             </table:table-cell></table:table-row><table:table-row \
             table:number-rows-repeated='1048573'><table:table-cell \
             table:number-columns-repeated='16384'/></table:table-row></table:table>\
             </office:spreadsheet></office:body></office:document-content>",
        ),
    ])
}

#[test]
fn open_documents_are_read_like_others() {
    let extracted = read(&open_text_sample());
    let expected = "# Top\n\n## Head\n\na b cd\n\n[1] foot\n\ni. one\n  - in\nii. two\n\n\
        | x | y |\n| --- | --- |\n| x | z |";
    assert_eq!(extracted.text, expected);
    assert_eq!(extracted.title.as_deref(), Some("Meta"));
    let extracted = read(&open_sheet_sample());
    assert_eq!(extracted.text, "## S\n\nk: 2024-02-29\nv: 50%\n\nk: 2024-02-29\nv: 50%");
    let slides = stored(&[
        ("mimetype", "application/vnd.oasis.opendocument.presentation"),
        (
            "content.xml",
            "<o><draw:page><draw:frame presentation:class='title'><draw:text-box><text:p>T</text:p>\
             </draw:text-box></draw:frame><draw:frame presentation:class='footer'>\
             <text:p>no</text:p>\
             </draw:frame></draw:page><draw:page><text:p>b</text:p></draw:page></o>",
        ),
    ]);
    let extracted = read(&slides);
    assert_eq!(extracted.text, "## T\n\nb");
    assert_eq!(extracted.pages[1].page, PageRef::Slide(2));
}

fn book_sample() -> Vec<u8> {
    zipped(
        &[
            ("mimetype", "application/epub+zip"),
            (
                "META-INF/container.xml",
                "<container><rootfile full-path='OEBPS/b.opf'/></container>",
            ),
            (
                "OEBPS/b.opf",
                "<package><metadata><dc:title>Book</dc:title></metadata><manifest><item id='n' \
                 href='n.xhtml' media-type='application/xhtml+xml' properties='nav'/><item id='b' \
                 href='two%20b.xhtml' media-type='application/xhtml+xml'/><item id='a' \
                 href='a.xhtml' media-type='application/xhtml+xml'/></manifest><spine><itemref \
                 idref='n'/><itemref idref='b'/><itemref idref='a'/></spine></package>",
            ),
            ("OEBPS/n.xhtml", "<html><body><p>contents</p></body></html>"),
            (
                "OEBPS/a.xhtml",
                "<?xml version='1.0'?><html><head><title/></head><p>second</p></html>",
            ),
            ("OEBPS/two b.xhtml", "<html><body><script/><h1>First</h1><p>x</p></body></html>"),
        ],
        CompressionMethod::Deflated,
    )
}

/// A package with additional parts, and additional relationships of one part.
fn with_parts(sample: &[u8], parts: &[(&str, &str)]) -> Vec<u8> {
    let mut whole = zip::ZipArchive::new(Cursor::new(sample)).unwrap();
    let names: Vec<String> = whole.file_names().map(|name| name.unwrap().into_owned()).collect();
    let mut all = Vec::new();
    for name in names.iter().filter(|name| !parts.iter().any(|(part, _)| part == name)) {
        let mut content = String::new();
        whole.by_name(name).unwrap().read_to_string(&mut content).unwrap();
        all.push((name.clone(), content));
    }
    let all: Vec<(&str, &str)> =
        all.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect();
    stored(&[&all, parts].concat())
}

#[test]
fn comments_are_read_where_they_were_made() {
    let body = "<w:p><w:commentRangeStart w:id='4'/><w:r><w:t>The rent is due.</w:t></w:r>\
        <w:commentRangeEnd w:id='4'/><w:r><w:commentReference w:id='4'/></w:r></w:p>\
        <w:p><w:r><w:t>Next.</w:t></w:r></w:p>";
    let relations_of = relations(&[("c", "comments", "c.xml")]);
    let comments = "<w:comments><w:comment w:id='4' w:author='Ada'><w:p><w:r><w:t>Only from</w:t>\
        </w:r></w:p><w:p><w:r><w:t>March on.</w:t></w:r></w:p></w:comment></w:comments>";
    let parts = [("doc/_rels/main.xml.rels", relations_of.as_str()), ("doc/c.xml", comments)];
    let word = read(&with_parts(&docx(body), &parts));
    let expected = "The rent is due.\n\n[1] Comment by Ada: Only from March on.\n\nNext.";
    assert_eq!(word.text, expected);

    let relations_of = relations(&[("a", "comments", "c.xml"), ("b", "threadedComment", "t.xml")]);
    let old = "<comments><authors><author>Ada</author></authors><commentList><comment ref='B4' \
        authorId='0'><text><r><rPr/><t>an early </t></r><r><t>count</t></r></text></comment>\
        <comment ref='C4'><text><t>[Threaded comment] Your version of Excel</t></text></comment>\
        </commentList></comments>";
    let thread = "<ThreadedComments><threadedComment ref='C4'><text>without tax</text>\
        </threadedComment><threadedComment ref='C4'><text>Thanks!</text></threadedComment>\
        </ThreadedComments>";
    let parts =
        [("xl/_rels/1.xml.rels", relations_of.as_str()), ("xl/c.xml", old), ("xl/t.xml", thread)];
    let text = read(&with_parts(&workbook_sample(), &parts)).text;
    let expected = "Comment on B4: an early count\n\nComment on C4: without tax\n\n\
        Comment on C4: Thanks!\n\n## Form";
    assert!(text.contains(expected) && !text.contains("Your version"), "{text}");

    let relations_of = relations(&[("a", "comments", "../c.xml"), ("b", "comments", "../d.xml")]);
    let old = "<p:cmLst><p:cm authorId='0'><p:pos x='1'/><p:text>too small</p:text></p:cm>\
        </p:cmLst>";
    let new = "<p188:cmLst><p188:cm id='x'><p188:replyLst><p188:reply><p188:txBody><a:p><a:r>\
        <a:t>agreed</a:t></a:r></a:p></p188:txBody></p188:reply></p188:replyLst><p188:txBody>\
        <a:p><a:r><a:t>wrong year</a:t></a:r></a:p></p188:txBody></p188:cm></p188:cmLst>";
    let parts = [
        ("ppt/slides/_rels/2.xml.rels", relations_of.as_str()),
        ("ppt/c.xml", old),
        ("ppt/d.xml", new),
    ];
    let text = read(&with_parts(&slides_sample(), &parts)).text;
    for comment in ["too small", "agreed", "wrong year"] {
        assert!(text.contains(&format!("Comment: {comment}\n\n")), "{text}");
    }
}

#[test]
fn equations_keep_their_operators() {
    let run = |text: &str| format!("<m:r><m:t>{text}</m:t></m:r>");
    let sum = format!(
        "<m:nary><m:naryPr><m:chr m:val='\u{2211}'/></m:naryPr><m:sub>{}</m:sub><m:sup>{}</m:sup>\
         <m:e>{}</m:e></m:nary>",
        run("i=1"),
        run("n"),
        run("x")
    );
    let integral =
        format!("<m:nary><m:naryPr/><m:sub/><m:sup/><m:e>{}</m:e></m:nary>", run("f dx"));
    let bracket = format!(
        "<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e>{}</m:e></m:d>",
        run("a")
    );
    let root = format!("<m:rad><m:radPr/><m:deg/><m:e>{}</m:e></m:rad>", run("b"));
    let share = format!("<m:f><m:num>{}</m:num><m:den>{}</m:den></m:f>", run("1"), run("2"));
    let math = format!("<m:oMath>{sum}{}{integral}{bracket}{root}{share}</m:oMath>", run("="));
    let expected = "\u{2211}_i=1^nx=\u{222B}_^f dx[a]\u{221A}(b)1/2";
    let word = read(&docx(&format!("<w:p>{math}</w:p>")));
    assert!(word.text.starts_with(expected), "{}", word.text);
    let slide = format!("<p:sp><p:txBody><a:p><a14:m>{math}</a14:m></a:p></p:txBody></p:sp>");
    let parts = [("ppt/slides/2.xml", slide.as_str())];
    let slides = read(&with_parts(&slides_sample(), &parts));
    assert!(slides.text.contains(expected), "{}", slides.text);
}

/// A message saved as text by a Windows program.
#[test]
fn a_message_in_utf_16_is_read_as_a_message() {
    let message = "From: a@b\r\nTo: c@d\r\nSubject: Caf\u{E9}\r\nContent-Type: text/plain; \
        charset=iso-8859-1\r\n\r\nThe pl\u{E4}ne is late.\r\n";
    for mark in ["\u{FEFF}", ""] {
        let wide: Vec<u8> =
            format!("{mark}{message}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(detect("a.eml", None, &wide), Ok(Format::Eml));
        let text = extract(Format::Eml, &wide).unwrap().text;
        assert!(text.starts_with("# Caf\u{E9}\n\nFrom: a@b\n"), "{text}");
        assert!(text.ends_with("The pl\u{E4}ne is late."), "{text}");
    }
}

/// A directory that claims more entries than it has.
#[test]
fn counts_of_containers_are_not_believed() {
    let sound = word_sample();
    let end = sound.len() - 22;
    let (count, start) =
        (30_000_000_u64, u32::from_le_bytes(sound[end + 16..end + 20].try_into().unwrap()));
    let size = end as u64 - u64::from(start);
    let mut wide = sound[..end].to_vec();
    let wide_end = wide.len() as u64;
    wide.extend_from_slice(b"PK\x06\x06");
    wide.extend_from_slice(&44_u64.to_le_bytes());
    wide.extend_from_slice(&[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [count, count, size, u64::from(start)] {
        wide.extend_from_slice(&number.to_le_bytes());
    }
    wide.extend_from_slice(b"PK\x06\x07\0\0\0\0");
    wide.extend_from_slice(&wide_end.to_le_bytes());
    wide.extend_from_slice(&1_u32.to_le_bytes());
    wide.extend_from_slice(b"PK\x05\x06\0\0\0\0\xFF\xFF\xFF\xFF");
    wide.extend_from_slice(&[0xFF; 8]);
    wide.extend_from_slice(&[0, 0]);
    let failure = extract(Format::Docx, &wide).unwrap_err();
    assert!(failure.to_string().contains("fewer parts than it says"), "{failure}");
    // A list that really is too long.
    let entry = [b"PK\x01\x02".as_slice(), &[0; 42]].concat();
    let long =
        [sound[..start as usize].to_vec(), entry.repeat(10_001), sound[end..].to_vec()].concat();
    let failure = extract(Format::Docx, &long).unwrap_err();
    assert!(matches!(failure, ExtractError::BeyondLimit { .. }), "{failure}");
    // The usual end of a truncated file.
    let cut = extract(Format::Docx, &sound[..sound.len() / 2]).unwrap_err().to_string();
    assert!(cut.contains("truncated") && !cut.contains("EOCD"), "{cut}");
}

#[test]
fn parts_that_are_stored_count_like_others() {
    // One part, listed as every slide of a presentation.
    let slide = format!(
        "<p:sld><!--{}--><p:sp><p:txBody><a:p><a:r><a:t>x</a:t></a:r></a:p></p:txBody></p:sp>\
         </p:sld>",
        " ".repeat(1 << 20)
    );
    let ids: String = (0..200).map(|_| "<p:sldId r:id='a'/>").collect();
    let main = format!("<p:presentation><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>");
    let parts = [("ppt/p.xml", main.as_str()), ("ppt/slides/1.xml", slide.as_str())];
    let failure = extract(Format::Pptx, &with_parts(&slides_sample(), &parts)).unwrap_err();
    assert!(failure.to_string().contains("bytes of unpacked content"), "{failure}");
    assert_eq!(failure.error_code(), JobErrorCode::TooLarge);
}

/// Detection sees names in the bytes; the reader, which opens the archive, knows better.
#[test]
fn archives_are_judged_twice() {
    let presentation = slides_sample();
    assert_eq!(detect("notes.docx", None, &presentation), Ok(Format::Docx));
    let (format, extracted) = InProcess.parse(Format::Docx, &presentation).unwrap();
    assert_eq!(format, Format::Pptx);
    assert!(extracted.text.starts_with("# Deck"));
    let other = stored(&[("holiday.txt", "sun")]);
    let failure = detect("holiday.zip", None, &other).unwrap_err();
    assert_eq!(failure.to_string(), "Unsupported file format: ZIP archive");
    assert_eq!(detect("holiday.docx", None, &other), Ok(Format::Docx));
    let failure = extract(Format::Docx, &other).unwrap_err();
    assert_eq!(failure.to_string(), "Unsupported file format: ZIP archive");
}

/// Excel writes line ends from Windows as numeric references.
#[test]
fn carriage_returns_in_cells_do_not_reach_the_text() {
    let row = |number: u8, text: &str| {
        format!("<row r='{number}'><c t='inlineStr'><is><t>{text}</t></is></c></row>")
    };
    let escaped = row(4, "three_x000D_\nfour_x005F_x0041__x20AC__x1_");
    let rows = [row(1, "head"), row(2, "one&#13;&#10;two&#13;"), row(3, "a\0b"), escaped].concat();
    let read = read(&stored(&[
        ("[Content_Types].xml", &content_types("spreadsheetml.sheet")),
        (
            "xl/workbook.xml",
            "<workbook><sheets><sheet name='a&#13;b' r:id='a'/></sheets></workbook>",
        ),
        ("xl/_rels/workbook.xml.rels", &relations(&[("a", "worksheet", "1.xml")])),
        ("xl/1.xml", &format!("<worksheet><sheetData>{rows}</sheetData></worksheet>")),
    ]));
    assert!(read.text.contains("one two"), "{}", read.text);
    assert!(read.text.contains("three four_x0041_€_x1_"), "{}", read.text);
}

#[test]
fn books_are_read_by_their_spine() {
    let extracted = read(&book_sample());
    assert_eq!(extracted.text, "# First\n\nx\n\nsecond");
    assert_eq!(extracted.title.as_deref(), Some("Book"));
}

const RICH_TEXT: &[u8] = b"{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0 A;}{\\f1\\fcharset204 B;}\
    {\\f2\\fcharset128 C;}}{\\stylesheet{\\s1 heading 1;}{\\s2 Normal;}}{\\info{\\title Caf\\'e9}\
    {\\author no}}{\\header page \\chpgn}{\\pard\\s1 Head\\par}\\pard caf\\'e9 \\u8364?\\u-10179?\
    \\u-8704? {\\f1\\'cf\\'f0} {\\f2\\'93\\'fa\\'96\\'7b}{\\v hidden}{\\*\\unknown no}{\\pict 00ff}\
    {\\field{\\*\\fldinst HYPERLINK x}{\\fldrslt link}}{\\footnote a \
             note}.\\par{\\listtext\\'b7\\tab}\
    item\\par\\trowd\\cellx1\\cellx2\\pard\\intbl a\\cell \
             b\\cell\\row\\trowd\\clvmrg\\cellx1\\cellx2\
    \\intbl\\cell c\\par d\\cell\\row\\pard {\\upr{bad}{\\*\\ud{good}}}\\'93q\\rdblquote\\line \
             end}";

#[test]
fn rich_text_reads_code_pages_and_rows() {
    let extracted = read(RICH_TEXT);
    let expected = "# Head\n\ncafé €\u{1f600} Пр 日本link.\n\n\
        [1] a note\n\n- item\n\n| a | b |\n| --- | --- |\n| a | c d |\n\n\
        good“q”\nend";
    assert_eq!(extracted.text, expected);
    assert_eq!(extracted.title.as_deref(), Some("Café"));
}

fn mail_sample() -> Vec<u8> {
    let sheet = "name,share\nAda,7\n";
    let inner = "From: x@y\nSubject: inner\nMIME-Version: 1.0\n\nnested words";
    format!(
        "Received: by x\nFrom: =?utf-8?q?J=C3=BCrgen?= <j@x>\nTo: a@b\nSubject: =?big5?B?pKQ=?= \
             and\n \
         more\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"o u\"\n\npreamble\n\
         --o u\nContent-Type: multipart/alternative; boundary=in\n\n--in\nContent-Type: \
             text/plain; \
         charset=iso-8859-1; format=flowed\nContent-Transfer-Encoding: quoted-printable\n\n\
         Gr=FC=DFe \nfrom here.\n--in\nContent-Type: text/html\n\n<p>Other</p>\n--in--\n--o u\n\
         Content-Type: text/csv\nContent-Disposition: attachment; filename*=utf-8''%c3%a9.csv\n\n\
         {sheet}--o u\nContent-Type: application/zip; name=a.zip\n\nPK\n--o u\n\
         Content-Type: message/rfc822\n\n{inner}\n--o u--\nepilogue\n"
    )
    .replace('\n', "\r\n")
    .into_bytes()
}

#[test]
fn mail_gives_its_headers_its_words_and_what_came_with_it() {
    let extracted = read(&mail_sample());
    let expected = "# 中 and more\n\nFrom: Jürgen <j@x>\nTo: a@b\n\n\
        Grüße from here.\n\n## Attachment: é.csv\n\nname: Ada\nshare: 7\n\n\
        Attachment: a.zip\n\n## Attachment: message.eml\n\n# inner\n\nFrom: x@y\n\nnested words";
    assert_eq!(extracted.text, expected);
    let [warning] = &extracted.warnings[..] else { panic!("{:?}", extracted.warnings) };
    let message = "the attachment a.zip was not read: Unsupported file format: ZIP archive";
    assert_eq!((warning.code.as_str(), warning.message.as_str()), ("attachment_not_read", message));
    let page = b"Subject: s\nMIME-Version: 1.0\nFrom: a\nContent-Type: text/html\n\n<p>One<p>Two";
    assert_eq!(read(page).text, "# s\n\nFrom: a\n\nOne\n\nTwo");
}

#[test]
fn a_plain_text_that_refers_to_the_html_of_a_mail_does_not_hide_it() {
    let text = |plain: &str, page: &str| {
        let mail = format!(
            "From: a@b\nSubject: s\nMIME-Version: 1.0\n\
             Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n\
             {plain}\n--b\nContent-Type: text/html\n\n{page}\n--b--\n"
        );
        read(mail.as_bytes()).text
    };
    let page = "<p>The pump costs 40 euros.</p>".repeat(100);
    let address = format!("https://mail.example/{}", "x".repeat(2000));
    let hint = format!("Best viewed in a browser: {address}\nNo more of this? {address}");
    assert!(text(&hint, &page).contains("The pump costs"));
    let letter = "The pump runs again since noon. ".repeat(10);
    assert!(text(&letter, &page).contains("The pump costs"));
    let signed = format!("<p>{letter}</p><p>Regards from the sales team</p>");
    assert!(!text(&letter, &signed).contains("Regards"));
    assert!(text("https://meet.example/123456", "<p>Join us</p>").contains("123456"));
}

#[test]
fn style_sheets_and_scripts_of_a_saved_page_are_not_read() {
    let page = b"From: <Saved by Blink>\nSubject: Page\nMIME-Version: 1.0\n\
        Content-Type: multipart/related; type=\"text/html\"; boundary=b\n\n\
        --b\nContent-Type: text/html\n\n<p>Words</p>\n\
        --b\nContent-Type: text/css\n\np { top: 0 }\n\
        --b\nContent-Type: application/x-javascript\n\nfunction f() {}\n\
        --b\nContent-Type: font/woff2\n\nwOF2{\n\
        --b\nContent-Type: text/x-amp-html\n\n<p>Words</p>\n\
        --b\nContent-Type: text/css; name=a.css\nContent-Disposition: attachment\n\n\
        a { top: 1 }\n\
        --b\nContent-Type: text/css; name=b.css\nContent-Disposition: inline; filename=b.css\n\
        Content-Location: http://host.example/b.css\n\nb { top: 2 }\n\
        --b\nContent-Type: text/javascript; name=c.js\n\
        Content-Disposition: inline; filename=c.js\n\nrun();\n--b--\n";
    let extracted = read(page);
    let expected = "# Page\n\nFrom: <Saved by Blink>\n\nWords\n\n\
        ## Attachment: a.css\n\na { top: 1 }\n\n## Attachment: c.js\n\nrun();";
    assert_eq!(extracted.text, expected);
    assert_eq!(extracted.warnings, []);
}

fn outlook_sample() -> Vec<u8> {
    let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    let mut put = |path: &str, bytes: &[u8]| {
        file.create_stream(path).unwrap().write_all(bytes).unwrap();
    };
    put("/__properties_version1.0", &[0; 32]);
    put("/__substg1.0_0037001F", &wide("Subject"));
    put("/__substg1.0_0C1A001E", b"Sender");
    put("/__substg1.0_5D01001F", &wide("s@x"));
    put("/__substg1.0_1000001F", &wide("Body €"));
    for (storage, streams) in [
        ("/__recip_version1.0_#00000000", vec![("__substg1.0_3001001F", wide("R"))]),
        (
            "/__attach_version1.0_#00000000",
            vec![
                ("__substg1.0_3707001F", wide("a.txt")),
                ("__substg1.0_37010102", b"attached".to_vec()),
            ],
        ),
    ] {
        file.create_storage(storage).unwrap();
        for (name, bytes) in streams {
            let path = format!("{storage}/{name}");
            file.create_stream(path).unwrap().write_all(&bytes).unwrap();
        }
    }
    file.flush().unwrap();
    file.into_inner().into_inner()
}

#[test]
fn outlook_messages_are_read_like_mail() {
    let extracted = read(&outlook_sample());
    let expected = "# Subject\n\nFrom: Sender <s@x>\nTo: R\n\nBody €\n\n\
        ## Attachment: a.txt\n\nattached";
    assert_eq!(extracted.text, expected);
}

#[test]
fn what_needs_a_password_is_said() {
    let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    file.create_stream("/EncryptedPackage").unwrap().write_all(b"x").unwrap();
    file.flush().unwrap();
    let bytes = file.into_inner().into_inner();
    assert_eq!(detect("a.xlsx", None, &bytes), Ok(Format::Xlsx));
    let failure = extract(Format::Xlsx, &bytes).unwrap_err();
    assert_eq!(failure.error_code(), JobErrorCode::EncryptedFile);
    let open = stored(&[
        ("mimetype", "application/vnd.oasis.opendocument.text"),
        ("META-INF/manifest.xml", "<m><manifest:encryption-data/></m>"),
        ("content.xml", "x"),
    ]);
    let failure = extract(detect("a", None, &open).unwrap(), &open).unwrap_err();
    assert_eq!(failure.error_code(), JobErrorCode::EncryptedFile);
}

/// Inputs that decompress, repeat or nest without end.
#[test]
fn bombs_end_in_errors() {
    let started = processor_time();
    let body =
        |content: String| zipped(&[("word/document.xml", &content)], CompressionMethod::Deflated);
    let refused = |format: Format, bytes: &[u8]| {
        let failure = extract(format, bytes).unwrap_err();
        assert!(matches!(failure, ExtractError::BeyondLimit { .. }), "{failure}");
    };
    refused(Format::Docx, &body("<w:p/>".repeat(16 << 20)));
    refused(Format::Docx, &body(" ".repeat(64 << 20)));
    refused(Format::Docx, &body("<a>".repeat(300)));
    refused(Format::Docx, &body(format!("<a b='{}'/>", "x".repeat(32 << 20))));
    let span = "<w:tr><w:tc><w:tcPr><w:gridSpan w:val='99999999'/></w:tcPr></w:tc></w:tr>";
    let _ = extract(Format::Docx, &body(format!("<w:tbl>{}</w:tbl>", span.repeat(100_000))));
    let row = "<table:table-row table:number-rows-repeated='1048576'><table:table-cell \
        table:number-columns-repeated='16384'><text:p>x</text:p></table:table-cell>\
             </table:table-row>";
    let sheet = format!("<o><table:table>{}</table:table></o>", row.repeat(1000));
    let mimetype = "application/vnd.oasis.opendocument.spreadsheet";
    refused(Format::Ods, &stored(&[("mimetype", mimetype), ("content.xml", &sheet)]));
    let many: Vec<(String, &str)> = (0..10_001).map(|n| (format!("p{n}"), "")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, part)| (name.as_str(), *part)).collect();
    refused(Format::Docx, &stored(&many));
    // Nested messages end at the maximum depth, not with an error.
    let mut mail = String::from("innermost");
    for n in 0..50 {
        mail = format!("Subject: {n}\nContent-Type: message/rfc822\n\n{mail}");
    }
    assert!(extract(Format::Eml, mail.as_bytes()).is_ok());
    let took = processor_time() - started;
    assert!(took.as_secs() < 20, "{took:?}");
}

fn samples() -> Vec<Vec<u8>> {
    vec![
        word_sample(),
        slides_sample(),
        workbook_sample(),
        open_text_sample(),
        open_sheet_sample(),
        book_sample(),
        RICH_TEXT.to_vec(),
        mail_sample(),
        outlook_sample(),
    ]
}

fn survives(bytes: &[u8]) {
    if let Ok(format) = detect("upload", None, bytes)
        && let Ok(extracted) = extract(format, bytes)
    {
        check(&extracted);
    }
}

proptest! {
    #[test]
    fn damage_brings_no_reader_down(
        which in 0_usize..9,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = samples().swap_remove(which);
        for (place, value) in &changes {
            let place = place.index(bytes.len());
            bytes[place] = *value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        survives(&bytes);
    }
}

fn shared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/documents")
}

/// The manifest entries, if the shared documents are present.
fn manifest(test: &str) -> Vec<serde_json::Value> {
    let Ok(manifest) = std::fs::read(shared().join("manifest.json")) else {
        eprintln!("skipped: {test} (no {})", shared().display());
        return Vec::new();
    };
    serde_json::from_slice(&manifest).unwrap()
}

/// Method: real documents, each truncated and changed in many places.
#[test]
fn damage_to_real_documents_brings_no_reader_down() {
    for entry in manifest("damage_to_real_documents_brings_no_reader_down") {
        let file = entry["file"].as_str().unwrap();
        let bytes = std::fs::read(shared().join(file)).unwrap();
        for part in 1..16 {
            survives(&bytes[..bytes.len() * part / 16]);
            let mut changed = bytes.clone();
            for step in 0..8 {
                let place = (part * 7919 + step * 104_729) % bytes.len();
                changed[place] ^= 1 << (step % 8);
            }
            survives(&changed);
        }
    }
}

/// The variable by which a copy of this test finds its document.
const DOCUMENT: &str = "LODESTONE_TEST_DOCUMENT";
/// Time and memory limit of a document (manifest of the shared documents).
const SECONDS_MAX: f32 = 2.0;
const MEMORY_MIB_MAX: u64 = 256;

/// Method: a process for each document, so that its memory can be measured.
#[test]
fn real_documents_give_their_outcome() {
    for entry in manifest("real_documents_give_their_outcome") {
        let file = entry["file"].as_str().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "document_tests::one_real_document", "--nocapture"])
            .env(DOCUMENT, file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{file}: {said}");
        for line in said.lines().filter(|line| line.starts_with("files/")) {
            eprintln!("{line}");
        }
    }
}

#[test]
fn one_real_document() {
    let Ok(file) = std::env::var(DOCUMENT) else { return };
    let entries = manifest("one_real_document");
    let entry = entries.iter().find(|entry| entry["file"] == file.as_str()).unwrap();
    let bytes = std::fs::read(shared().join(&file)).unwrap();
    let started = processor_time();
    let outcome = detect(&file, None, &bytes).and_then(|format| extract(format, &bytes));
    let took = processor_time() - started;
    let memory = memory_peak_mib();
    assert!(took.as_secs_f32() < SECONDS_MAX, "{took:?}");
    assert!(memory < MEMORY_MIB_MAX, "{memory} MiB");
    let told = match &outcome {
        Ok(extracted) => format!("{} bytes", extracted.text.len()),
        Err(failure) => format!("{} ({failure})", failure.error_code().as_str()),
    };
    match (entry["outcome"].as_str().unwrap(), &outcome) {
        ("text", Ok(extracted)) => {
            check(extracted);
            let recall = compare(entry, extracted);
            eprintln!("{file}: {told}, recall {recall:.3}, {took:?}, {memory} MiB");
        }
        ("text", Err(failure)) => panic!("{failure}"),
        ("clean-error", Ok(_)) => panic!("this is no document"),
        (_, outcome) => {
            outcome.iter().for_each(check);
            let name = entry["note"].as_str().unwrap_or("");
            let is_encrypted =
                outcome.as_ref().is_err_and(|e| e.error_code() == JobErrorCode::EncryptedFile);
            assert_eq!(name.contains("encrypted"), is_encrypted, "{told}");
            eprintln!("{file}: {told}, {took:?}, {memory} MiB");
        }
    }
}

/// The share of the expected words that was found, after checking required and forbidden text.
fn compare(entry: &serde_json::Value, extracted: &Extracted) -> f64 {
    let folded = extracted.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let folded = folded.replace(['\u{2018}', '\u{2019}'], "'");
    let folded = folded.replace(['\u{201c}', '\u{201d}'], "\"");
    let strings = |key: &str| entry[key].as_array().cloned().unwrap_or_default();
    for needed in strings("must_contain") {
        assert!(folded.contains(needed.as_str().unwrap()), "lacks {needed}");
    }
    for unwanted in strings("must_not_contain") {
        assert!(!folded.contains(unwanted.as_str().unwrap()), "has {unwanted}");
    }
    let Some(expected) = entry["expected"].as_str() else { return 1.0 };
    let expected = std::fs::read_to_string(shared().join(expected)).unwrap();
    // A reference produced without rejoining hyphenated words marks each with U+0002.
    let expected = expected.replace('\u{2}', "");
    let (found, wanted) = (words(&extracted.text), words(&expected));
    let shared = wanted.iter().filter(|word| found.contains(*word)).count();
    let recall = shared as f64 / wanted.len() as f64;
    assert!(recall >= entry["min_word_recall"].as_f64().unwrap(), "recall {recall}");
    recall
}

fn words(text: &str) -> std::collections::BTreeSet<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let lower = text.to_lowercase();
    lower.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Peak resident memory of this process; 0 if the system does not report it.
fn memory_peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok());
    kib.unwrap_or(0_u64) / 1024
}
