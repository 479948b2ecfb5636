//! Formats that are ZIPs of XML.

use crate::seeds::zipped;

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

const WORD_BODY: &str = "<w:document xmlns:w='w'><w:body>\
    <w:p><w:pPr><w:pStyle w:val='T'/></w:pPr><w:r><w:t>The Title</w:t></w:r></w:p>\
    <w:p><w:pPr><w:pStyle w:val='Own'/></w:pPr><w:r><w:t>Head</w:t></w:r></w:p>\
    <w:p><w:r><w:t>kept \
    </w:t></w:r><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old\
    </w:delText></w:r></w:del><w:r><w:rPr><w:vanish/></w:rPr><w:t>no</w:t></w:r><w:r>\
    <w:footnoteReference w:id='1'/><w:tab/><w:t>, e\u{FB03}cient</w:t><w:br/><w:sym w:char='F0B7'/>\
    </w:r></w:p><w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>joined </w:t></w:r></w:p>\
    <w:p><w:pPr><w:numPr><w:ilvl w:val='0'/><w:numId \
    w:val='1'/></w:numPr></w:pPr><w:r><w:t>first</w:t>\
    </w:r></w:p><w:p><w:pPr><w:numPr><w:ilvl w:val='1'/><w:numId w:val='1'/></w:numPr></w:pPr><w:r>\
    <w:t>sub</w:t></w:r></w:p><w:p><w:pPr><w:numPr><w:ilvl w:val='0'/><w:numId \
    w:val='2'/></w:numPr>\
    </w:pPr><w:r><w:t>fifth</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan \
    w:val='2'/></w:tcPr>\
    <w:p><w:r><w:t>a|b</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>c</w:t></w:r></w:p></w:tc>\
    </w:tr><w:tr>\
    <w:tc><w:tcPr><w:vMerge \
    w:val='restart'/></w:tcPr><w:p><w:r><w:t>m</w:t></w:r></w:p></w:tc><w:tc>\
    <w:tbl><w:tr><w:tc><w:p><w:r><w:t>in</w:t></w:r></w:p></w:tc></w:tr></w:tbl><w:p/></w:tc>\
    </w:tr><w:tr>\
    <w:trPr><w:gridBefore \
    w:val='1'/></w:trPr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc></w:tr></w:tbl>\
    <w:p><w:r><AlternateContent><Choice><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p>\
    </w:txbxContent></Choice><Fallback><w:p/></Fallback></AlternateContent><w:t>host</w:t></w:r>\
    <w:fldSimple w:instr=' PAGE \
    '><w:r><w:t>7</w:t></w:r></w:fldSimple><m:oMath><m:r><m:t>x+1</m:t></m:r>\
    </m:oMath></w:p><w:sdt><w:sdtContent><w:p><w:r><w:t>s</w:t></w:r></w:p></w:sdtContent></w:sdt>\
    </w:body></w:document>";

pub fn word() -> Vec<Vec<u8>> {
    let styles = "<w:styles><w:style w:styleId='berschrift1'><w:name w:val='heading 1'/></w:style>\
        <w:style w:styleId='Own'><w:basedOn w:val='berschrift1'/><w:pPr><w:outlineLvl \
        w:val='1'/></w:pPr>\
        </w:style><w:style w:styleId='T'><w:name w:val='Title'/><w:basedOn w:val='Own'/></w:style>\
        </w:styles>";
    let numbering = "<w:numbering><w:abstractNum w:abstractNumId='7'><w:lvl w:ilvl='0'><w:start \
        w:val='1'/><w:numFmt w:val='decimal'/><w:lvlText w:val='%1.'/></w:lvl><w:lvl \
        w:ilvl='1'><w:start \
        w:val='1'/><w:numFmt w:val='lowerRoman'/><w:lvlText w:val='%1%2)'/></w:lvl></w:abstractNum>\
        <w:num w:numId='1'><w:abstractNumId w:val='7'/></w:num><w:num w:numId='2'><w:abstractNumId \
        w:val='7'/><w:lvlOverride w:ilvl='0'><w:startOverride w:val='5'/></w:lvlOverride></w:num>\
        </w:numbering>";
    let notes = "<w:footnotes><w:footnote w:id='1'><w:p><w:r><w:t>A \
     note.</w:t></w:r></w:p></w:footnote>\
        </w:footnotes>";
    let header = "<w:hdr><w:p><w:r><w:t>Acme</w:t></w:r></w:p></w:hdr>";
    let chart = "<c:chartSpace><c:chart><c:title><a:p><a:r><a:t>Sales</a:t></a:r></a:p></c:title>\
        <c:plotArea><c:barChart><c:ser><c:tx><c:strRef><c:strCache><c:pt \
        idx='0'><c:v>s</c:v></c:pt>\
        </c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache><c:ptCount val='2'/><c:pt \
        idx='0'>\
        <c:v>k</c:v></c:pt></c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache><c:pt \
        idx='0'>\
        <c:v>1.5</c:v></c:pt><c:pt \
        idx='1'><c:v>2</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser>\
        </c:barChart></c:plotArea></c:chart></c:chartSpace>";
    let body = WORD_BODY.replace("<w:t>host</w:t>", "<w:t>host</w:t><c:chart r:id='f'/>");
    vec![zipped(&[
        ("[Content_Types].xml", &content_types("wordprocessingml.document")),
        ("_rels/.rels", &relations(&[("r", "officeDocument", "doc/main.xml")])),
        (
            "doc/_rels/main.xml.rels",
            &relations(&[
                ("a", "styles", "s.xml"),
                ("b", "numbering", "/doc/n.xml"),
                ("c", "footnotes", "../doc/f.xml"),
                ("d", "header", "h.xml"),
                ("f", "chart", "c.xml"),
            ]),
        ),
        ("doc/main.xml", &body),
        ("doc/s.xml", styles),
        ("doc/n.xml", numbering),
        ("doc/f.xml", notes),
        ("doc/h.xml", header),
        ("doc/c.xml", chart),
        ("docProps/core.xml", "<cp:coreProperties><dc:title>Core</dc:title></cp:coreProperties>"),
    ])]
}

pub fn slides() -> Vec<Vec<u8>> {
    let shape = |x: u32, y: u32, head: &str, text: &str| {
        format!(
            "<p:sp><p:nvSpPr><p:cNvPr \
             id='1'/><p:nvPr>{head}</p:nvPr></p:nvSpPr><p:spPr><a:xfrm><a:off \
             x='{x}' y='{y}'/><a:ext cx='90' cy='90'/></a:xfrm></p:spPr><p:txBody><a:p><a:pPr \
             lvl='1'/>\
             <a:r><a:t>{text}</a:t></a:r><a:br/></a:p></p:txBody></p:sp>"
        )
    };
    let table = "<p:graphicFrame><a:tbl><a:tr><a:tc \
     rowSpan='2'><a:txBody><a:p><a:r><a:t>r</a:t></a:r>\
        </a:p></a:txBody></a:tc><a:tc \
        gridSpan='2'><a:txBody><a:p><a:r><a:t>s</a:t></a:r></a:p></a:txBody>\
        </a:tc></a:tr><a:tr><a:tc vMerge='1'><a:p/></a:tc><a:tc \
        hMerge='1'><a:p/></a:tc></a:tr></a:tbl>\
        </p:graphicFrame>";
    let slide = |shapes: &[String]| {
        format!("<p:sld><p:cSld><p:spTree>{}</p:spTree></p:cSld></p:sld>", shapes.concat())
    };
    let first = slide(&[
        shape(500, 500, "", "low"),
        shape(0, 200, "", "high"),
        shape(0, 0, "<p:ph type='ctrTitle'/>", "Deck"),
        shape(0, 0, "<p:ph type='sldNum'/>", "12"),
        shape(0, 900, "<p:ph idx='1'/>", "point"),
    ]);
    let second = slide(&[
        format!(
            "<p:grpSp><p:grpSpPr><a:xfrm><a:off x='9' y='9'/><a:chOff x='0' y='0'/><a:chExt cx='1' \
             cy='1'/></a:xfrm></p:grpSpPr>{}{}</p:grpSp>",
            shape(200, 0, "", "right"),
            shape(0, 0, "", "left")
        ),
        table.to_owned(),
        "<p:pic><p:nvPicPr><p:cNvPr descr='A duck'/></p:nvPicPr></p:pic>".to_owned(),
    ]);
    let notes = format!("<p:notes>{}</p:notes>", shape(0, 0, "<p:ph type='body'/>", "say this"));
    vec![zipped(&[
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
        ("ppt/slides/_rels/2.xml.rels", &relations(&[("l", "slideLayout", "../l.xml")])),
        ("ppt/l.xml", &slide(&[shape(5, 5, "<p:ph idx='1' type='body'/>", "layout")])),
        ("ppt/n.xml", &notes),
    ])]
}

pub fn workbooks() -> Vec<Vec<u8>> {
    let first = "<worksheet><cols><col min='2' max='3' hidden='1'/></cols><sheetData><row \
     r='1'><c r='A1' \
        t='s'><v>0</v></c></row><row r='3'><c r='A3' t='inlineStr'><is><t>region</t></is></c><c \
        r='B3' \
        t='str'><v>day</v></c><c r='C3' t='s'><v>1</v></c></row><row r='4' hidden='0'><c r='A4' \
        t='str'>\
        <v>North</v></c><c r='B4' s='1'><v>45351</v></c><c r='C4' \
        s='2'><f>1/8</f><v>0.125</v></c></row>\
        <row r='5'><c r='B5' s='3'><v>45352.5</v></c><c r='C5' t='e'><v>#DIV/0!</v></c></row>\
        <row r='1048576'><c r='XFD1048576'><v>0.30000000000000004</v></c></row></sheetData>\
        <mergeCells><mergeCell ref='A4:A5'/></mergeCells></worksheet>";
    let second = "<worksheet><sheetData><row><c t='str'><v>Name</v></c><c \
     t='str'><v>Ada</v></c></row><row>\
        <c t='str'><v>Role</v></c><c t='b'><v>1</v></c></row></sheetData></worksheet>";
    vec![zipped(&[
        ("[Content_Types].xml", &content_types("spreadsheetml.sheet")),
        (
            "xl/workbook.xml",
            "<workbook><workbookPr date1904='0'/><sheets><sheet name='Hidden' state='hidden' \
             r:id='c'/>\
             <sheet name='Sales' r:id='a'/><sheet name='Form' r:id='b'/></sheets></workbook>",
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
            "<sst><si><r><t>Sales \
             </t></r><r><t>report</t></r><rPh><t>x</t></rPh></si><si><t>share</t>\
             </si></sst>",
        ),
        (
            "xl/styles.xml",
            "<styleSheet><numFmts><numFmt numFmtId='170' formatCode='dd.mm.yy hh:mm'/><numFmt \
             numFmtId='171' formatCode='[h]:mm:ss.00;[Red]-0.0E+00;\"x\"@'/></numFmts><cellXfs><xf \
             numFmtId='0'/><xf numFmtId='170'/><xf numFmtId='10'/><xf numFmtId='171'/></cellXfs>\
             </styleSheet>",
        ),
        ("xl/1.xml", first),
        ("xl/2.xml", second),
    ])]
}

pub fn open_texts() -> Vec<Vec<u8>> {
    let content = "<office:document-content><office:automatic-styles><text:list-style \
     style:name='L'>\
        <text:list-level-style-number text:level='1' style:num-format='i' text:start-value='3'/>\
        </text:list-style><style:style style:name='P1' style:parent-style-name='Title'/>\
        </office:automatic-styles><office:body><office:text><text:tracked-changes>\
        <text:p>deleted</text:p>\
        </text:tracked-changes><text:p text:style-name='P1'>Top</text:p><text:h \
        text:outline-level='2'>\
        Head</text:h><text:p>a<text:s text:c='3'/>b<text:tab/>c<text:line-break/><text:note>\
        <text:note-citation>1</text:note-citation><text:note-body><text:p>foot</text:p>\
        </text:note-body>\
        </text:note>d<text:span text:style-name='x'>e</text:span></text:p><text:list \
        text:style-name='L'>\
        <text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>in</text:p>\
        </text:list-item></text:list></text:list-item><text:list-item><text:p>two</text:p>\
        </text:list-item>\
        </text:list><table:table><table:table-row><table:table-cell table:number-rows-spanned='2'>\
        <text:p>x</text:p></table:table-cell><table:table-cell \
        table:number-columns-spanned='2'><text:p>y\
        </text:p></table:table-cell></table:table-row><table:table-row><table:covered-table-cell/>\
        <table:table-cell><text:p>z</text:p></table:table-cell></table:table-row></table:table>\
        <draw:frame><draw:text-box><text:p>box</text:p></draw:text-box></draw:frame></office:text>\
        </office:body></office:document-content>";
    vec![zipped(&[
        ("mimetype", "application/vnd.oasis.opendocument.text"),
        ("META-INF/manifest.xml", "<manifest:manifest/>"),
        ("meta.xml", "<office:meta><dc:title>Meta</dc:title></office:meta>"),
        ("styles.xml", "<s><style:style style:name='Title' style:family='paragraph'/></s>"),
        ("content.xml", content),
    ])]
}

pub fn open_sheets() -> Vec<Vec<u8>> {
    let content = "<office:document-content><office:body><office:spreadsheet><table:table \
     table:name='S'>\
        <table:table-row><table:table-cell><text:p>k</text:p></table:table-cell><table:table-cell>\
        <text:p>v</text:p></table:table-cell><table:table-cell \
        table:number-columns-repeated='16382'/>\
        </table:table-row><table:table-row table:number-rows-repeated='2'><table:table-cell \
        office:value-type='date' \
        office:date-value='2024-02-29'><text:p>29.2.</text:p></table:table-cell>\
        <table:table-cell office:value-type='percentage' office:value='0.5'><text:p>50 %</text:p>\
        </table:table-cell></table:table-row><table:table-row table:number-rows-repeated='1048573'>\
        <table:table-cell table:number-columns-repeated='16384'/></table:table-row></table:table>\
        </office:spreadsheet></office:body></office:document-content>";
    vec![zipped(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("content.xml", content),
    ])]
}

pub fn open_slides() -> Vec<Vec<u8>> {
    let content = "<o><draw:page draw:name='p'><draw:frame \
     presentation:class='title'><draw:text-box>\
        <text:p>T</text:p></draw:text-box></draw:frame><draw:frame \
        presentation:class='footer'><text:p>no\
        </text:p></draw:frame><presentation:notes><text:p>said</text:p></presentation:notes>\
        </draw:page>\
        <draw:page><text:list><text:list-item><text:p>b</text:p></text:list-item></text:list>\
        </draw:page>\
        </o>";
    vec![zipped(&[
        ("mimetype", "application/vnd.oasis.opendocument.presentation"),
        ("content.xml", content),
    ])]
}

pub fn books() -> Vec<Vec<u8>> {
    vec![zipped(&[
        ("mimetype", "application/epub+zip"),
        ("META-INF/container.xml", "<container><rootfile full-path='OEBPS/b.opf'/></container>"),
        (
            "OEBPS/b.opf",
            "<package><metadata><dc:title>Book</dc:title></metadata><manifest><item id='n' \
             href='n.xhtml' \
             media-type='application/xhtml+xml' properties='nav'/><item id='b' \
             href='two%20b.xhtml' \
             media-type='application/xhtml+xml'/><item id='a' href='a.xhtml' \
             media-type='application/xhtml+xml'/></manifest><spine><itemref idref='n'/><itemref \
             idref='b'/>\
             <itemref idref='a' linear='no'/></spine></package>",
        ),
        ("OEBPS/n.xhtml", "<html><body><p>contents</p></body></html>"),
        ("OEBPS/a.xhtml", "<?xml version='1.0'?><html><head><title/></head><p>second</p></html>"),
        (
            "OEBPS/two b.xhtml",
            "<html><body><script/><h1>First</h1><p>x</p><table><tr><td>y</table>",
        ),
    ])]
}
