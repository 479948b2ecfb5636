//! Goal: pages drawn here read as a person would read them, and lines are where they were drawn.
//! Method: small handwritten files with the standard fonts.

mod picture;
mod ruled;

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;
use lodestone_types::{BlockKind, JobErrorCode, PageArea, PageBox, PageStart};

/// A file with these objects, numbered from 1; the first is the catalog.
fn file(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(bytes.len());
        writeln!(bytes, "{} 0 obj", number + 1).unwrap();
        bytes.extend_from_slice(object);
        bytes.extend_from_slice(b"\nendobj\n");
    }
    let xref = bytes.len();
    write!(bytes, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    for place in places {
        writeln!(bytes, "{place:010} 00000 n ").unwrap();
    }
    let size = objects.len() + 1;
    write!(bytes, "trailer\n<</Size {size} /Root 1 0 R {trailer}>>\n").unwrap();
    write!(bytes, "startxref\n{xref}\n%%EOF\n").unwrap();
    bytes
}

fn stream(entries: &str, content: &[u8]) -> Vec<u8> {
    let mut object = format!("<<{entries} /Length {}>>\nstream\n", content.len()).into_bytes();
    object.extend_from_slice(content);
    object.extend_from_slice(b"\nendstream");
    object
}

/// Helvetica, bold Helvetica, Courier, and a font whose letters A, B, C, D are alef, bet, gimel and
/// the ligature fi.
const FONTS: &str = "/Resources <</Font <<\
    /F1 <</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>\
    /F2 <</Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding>>\
    /F3 <</Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding>>\
    /F4 <</Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 3 0 R>> >> >>";
const TO_UNICODE: &[u8] = b"/CIDInit /ProcSet findresource begin begincmap\n\
    1 begincodespacerange <00> <FF> endcodespacerange\n\
    6 beginbfchar\n<41> <05D0>\n<42> <05D1>\n<43> <05D2>\n<44> <FB01>\n<20> <0020>\n<6E> <006E>\n\
    endbfchar\nendcmap end end";

fn find(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).position(|window| window == needle).unwrap()
}

/// A file of pages, each with additional entries and its content.
fn pages(pages: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let kids = (0..pages.len()).map(|page| format!("{} 0 R ", 4 + 2 * page)).collect::<String>();
    let mut objects = vec![
        b"<</Type /Catalog /Pages 2 0 R>>".to_vec(),
        format!("<</Type /Pages /Count {} /Kids [{kids}]>>", pages.len()).into_bytes(),
        stream("", TO_UNICODE),
    ];
    for (number, (entries, content)) in pages.iter().enumerate() {
        let content_number = 5 + 2 * number;
        let page = format!(
            "<</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {FONTS} {entries} \
             /Contents {content_number} 0 R>>"
        );
        objects.extend([page.into_bytes(), content.clone()]);
    }
    file(&objects, "")
}

fn page(drawn: &str) -> Vec<u8> {
    pages(&[("", stream("", drawn.as_bytes()))])
}

/// A line of text whose baseline starts at x and y, from the lower left corner.
fn line(font: &str, size: u32, x: f32, y: f32, text: &str) -> String {
    format!("BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n")
}

/// Lines below each other.
fn lines(x: f32, y: f32, texts: &[&str]) -> String {
    let line = |(at, text): (usize, &&str)| line("F1", 10, x, y - 12.0 * at as f32, text);
    texts.iter().enumerate().map(line).collect()
}

fn text_of(bytes: &[u8]) -> String {
    read(bytes).unwrap().text
}

/// Page and area of the line that contains `text`.
fn place(extracted: &Extracted, text: &str) -> (u32, PageArea) {
    let start = extracted.text.find(text).unwrap();
    let boxes = extracted.geometry.boxes(&(start..start + text.len()));
    let [PageBox { page, area }] = boxes[..] else { panic!("one line: {boxes:?}") };
    (page, area)
}

/// Asserts that an area starts near this point and has about the expected size.
fn assert_near(area: PageArea, x: f32, baseline: f32, width: f32, height: f32) {
    let is_near = (area.x - x).abs() < 2.0
        && area.y < baseline
        && area.y + area.height > baseline - 1.0
        && (area.width - width).abs() < 0.15 * width + 2.0
        && (area.height - height).abs() < 0.5 * height;
    assert!(is_near, "{area:?} is not {width} by {height} above {x}, {baseline}");
}

#[test]
fn columns_are_read_one_after_the_other() {
    let left = [
        "The left column begins here and",
        "goes on for several lines of",
        "text that \
        nobody would want to",
        "see mixed with another column",
        "before it has come to its end.",
    ];
    let right = [
        "while the right column says",
        "something else entirely, which",
        "must not be \
        read before the left",
        "column has been read to its",
        "very end, as people do it.",
    ];
    let mut drawn = line("F2", 16, 150.0, 740.0, "A Title Across Both Columns");
    // Drawn in rows, as some programs do.
    for row in 0..5 {
        let y = 700.0 - 12.0 * row as f32;
        drawn += &line("F1", 10, 72.0, y, left[row]);
        drawn += &line("F1", 10, 320.0, y, right[row]);
    }
    let across = "Below both columns stands a line that is as wide as the page and closes it.";
    drawn += &line("F1", 10, 72.0, 600.0, &format!("{across} {}", &across[..20]));
    let extracted = read(&page(&drawn)).unwrap();
    let expected = format!(
        "# A Title Across Both Columns\n\n{}\n\n{}\n\n{across} {}",
        left.join(" "),
        right.join(" "),
        &across[..20]
    );
    assert_eq!(extracted.text, expected);
    assert_eq!(extracted.title.as_deref(), Some("A Title Across Both Columns"));
}

#[test]
fn a_page_is_measured_as_it_is_shown() {
    let text = "measured text";
    let width = 58.0;
    let plain = read(&page(&line("F1", 10, 100.0, 700.0, text))).unwrap();
    let (number, area) = place(&plain, text);
    assert_eq!(number, 1);
    assert_near(area, 100.0, 92.0, width, 10.0);
    // Cropped: the corner of the crop box is the corner of the page.
    let drawn = line("F1", 10, 150.0, 650.0, text) + &line("F1", 10, 20.0, 20.0, "outside");
    let cropped = pages(&[("/CropBox [100 100 500 700]", stream("", drawn.as_bytes()))]);
    let cropped = read(&cropped).unwrap();
    assert_eq!(cropped.text, text);
    assert_near(place(&cropped, text).1, 50.0, 50.0, width, 10.0);
    // Rotated clockwise: text drawn upwards is level.
    let upwards = format!("BT /F1 10 Tf 0 1 -1 0 300 200 Tm ({text}) Tj ET");
    let turned = read(&pages(&[("/Rotate 90", stream("", upwards.as_bytes()))])).unwrap();
    assert_eq!(turned.text, text);
    assert_near(place(&turned, text).1, 200.0, 300.0, width, 10.0);
    // On a page without rotation the same text runs upwards.
    let stamp = line("F1", 10, 100.0, 700.0, "level") + &upwards;
    let stamped = read(&page(&stamp)).unwrap();
    assert_eq!(stamped.text, format!("level\n\n{text}"));
    let area = place(&stamped, text).1;
    assert!((area.height - width).abs() < 8.0 && (area.y + area.height - 592.0).abs() < 2.0);
    assert!(area.x < 300.0 && area.x + area.width >= 299.0 && area.width < 20.0, "{area:?}");
}

#[test]
fn paragraphs_are_whole() {
    let drawn = lines(
        72.0,
        700.0,
        &[
            "A paragraph whose lines are joined, with a divi-",
            "ded word, a well-known compound and a well-",
            "known line end, which closes before the edge.",
            "Another one begins since there was room above it.",
        ],
    ) + &lines(
        72.0,
        630.0,
        &[
            "- an item that goes on to the edge, as others do,",
            "  below its first line",
            "- another",
        ],
    ) + &line("F1", 10, 72.0, 580.0, "Note")
        + &line("F1", 6, 92.0, 584.0, "12")
        + &line("F1", 10, 101.0, 580.0, "is raised.")
        + &line("F4", 10, 72.0, 560.0, "Dn");
    assert_eq!(
        text_of(&page(&drawn)),
        "A paragraph whose lines are joined, with a divided word, a well-known compound and a \
         well-known line end, which closes before the edge. Another one begins since there was \
         room above it.\n\n- an item that goes on to the edge, as others do, below its \
         first line\n- another\n\n\
         Note12 is raised.\n\nfin"
    );
}

#[test]
fn tables_and_listings_keep_their_lines() {
    let mut drawn = line("F1", 10, 72.0, 720.0, "Numbers follow in a table of three columns:");
    for (row, cells) in [["Name", "Count", "Price"], ["Apples", "3", "4.50"], ["Pears|", "", "1"]]
        .iter()
        .enumerate()
    {
        for (cell, x) in cells.iter().zip([72.0, 200.0, 300.0]) {
            drawn += &line("F1", 10, x, 690.0 - 14.0 * row as f32, cell);
        }
    }
    for (row, code) in ["fn main\\(\\) {", "    let x = 1;", "}"].iter().enumerate() {
        drawn += &line("F3", 9, 72.0, 600.0 - 11.0 * row as f32, code);
    }
    let extracted = read(&page(&drawn)).unwrap();
    assert_eq!(
        extracted.text,
        "Numbers follow in a table of three columns:\n\n\
         | Name | Count | Price |\n| --- | --- | --- |\n| Apples | 3 | 4.50 |\n\
         | Pears\\| |  | 1 |\n\nfn main() {\n    let x = 1;\n}"
    );
    let kinds: Vec<_> = extracted.blocks.iter().map(|block| block.kind).collect();
    assert_eq!(kinds, [BlockKind::Paragraph, BlockKind::Table, BlockKind::Code]);
    assert_near(place(&extracted, "4.50").1, 300.0, 792.0 - 676.0, 19.0, 10.0);
    assert_near(place(&extracted, "let x = 1;").1, 93.6, 792.0 - 589.0, 54.0, 9.0);
}

#[test]
fn cells_of_several_lines_stay_in_their_row() {
    let rows: [(f32, &[(f32, &str)]); 7] = [
        (700.0, &[(72.0, "Term"), (200.0, "Meaning"), (400.0, "Since")]),
        (682.0, &[(72.0, "Warranty"), (200.0, "Two years from the day"), (400.0, "2020")]),
        (670.0, &[(200.0, "of delivery")]),
        (652.0, &[(72.0, "Return of goods"), (200.0, "Thirty days after"), (400.0, "2021")]),
        (640.0, &[(72.0, "bought online"), (200.0, "they have come")]),
        (628.0, &[(72.0, "or by mail")]),
        (610.0, &[(72.0, "Deposit"), (200.0, "Ten percent"), (400.0, "2022")]),
    ];
    let drawn = rows
        .iter()
        .flat_map(|(y, cells)| cells.iter().map(|(x, text)| line("F1", 10, *x, *y, text)));
    let text = text_of(&page(&drawn.collect::<String>()));
    assert_eq!(
        text,
        "| Term | Meaning | Since |\n| --- | --- | --- |\n\
         | Warranty | Two years from the day of delivery | 2020 |\n\
         | Return of goods bought online or by mail | Thirty days after they have come | 2021 |\n\
         | Deposit | Ten percent | 2022 |"
    );
}

#[test]
fn text_from_the_right_is_read_from_the_right() {
    // Drawn from the left: gimel, bet, alef, a number, bet, alef.
    let drawn = line("F4", 12, 300.0, 700.0, "CBA BA");
    assert_eq!(text_of(&page(&drawn)), "\u{5D0}\u{5D1} \u{5D0}\u{5D1}\u{5D2}");
}

/// Pages that each show lines at heights from the bottom.
fn drawn_pages(shown: &[Vec<(f32, f32, String)>]) -> Vec<u8> {
    let drawn = |lines: &Vec<(f32, f32, String)>| {
        let drawn: String = lines.iter().map(|(x, y, text)| line("F1", 9, *x, *y, text)).collect();
        ("", stream("", drawn.as_bytes()))
    };
    pages(&shown.iter().map(drawn).collect::<Vec<_>>())
}

#[test]
fn of_running_headers_one_copy_stays_and_page_numbers_go() {
    let body = ["Apples are red.", "Pears are green.", "Plums are blue."];
    let shown: Vec<_> = (0..3)
        .map(|page| {
            vec![
                (72.0, 760.0, "Annual Report of the Orchard".to_owned()),
                (72.0, 500.0, body[page].to_owned()),
                (300.0, 30.0, format!("Page {} of 3", page + 1)),
            ]
        })
        .collect();
    let extracted = read(&drawn_pages(&shown)).unwrap();
    assert_eq!(extracted.text, format!("Annual Report of the Orchard\n\n{}", body.join("\n\n")));
    let start = |text: &str| extracted.text.find(text).unwrap();
    let begins = ["Annual", body[1], body[2]];
    let expected = begins
        .iter()
        .zip(1..)
        .map(|(text, number)| PageStart { page: PageRef::Page(number), start: start(text) });
    assert_eq!(extracted.pages, expected.collect::<Vec<_>>());
    assert_eq!(place(&extracted, body[2]).0, 3);
    // Text is kept if there is nothing else.
    let same = vec![vec![(72.0, 760.0, "Annual Report".to_owned())]; 3];
    assert_eq!(text_of(&drawn_pages(&same)), "Annual Report\n\nAnnual Report\n\nAnnual Report");
}

#[test]
fn what_stands_at_the_foot_of_all_pages_is_no_heading() {
    let shown: Vec<_> = (1..=3)
        .map(|page| {
            let body = lines(72.0, 600.0, &["Apples are red, pears are green.", "Plums are blue."]);
            let foot = line("F1", 16, 72.0, 30.0, "Orchard of the North");
            let title =
                line("F1", 16, 72.0, 700.0, &format!("Chapter {}", ["A", "B", "C"][page - 1]));
            ("", stream("", (title + &body + &foot).as_bytes()))
        })
        .collect();
    let text = text_of(&pages(&shown));
    assert!(text.contains("# Chapter B") && !text.contains("# Orchard"), "{text}");
    assert_eq!(text.matches("Orchard of the North").count(), 1, "{text}");
}

#[test]
fn headers_that_differ_between_pages_are_content() {
    let shown: Vec<_> = (1..=12)
        .map(|number| {
            vec![
                (72.0, 760.0, format!("Invoice {number:03}")),
                (72.0, 740.0, format!("Number {number}")),
                (72.0, 500.0, format!("Amount due: {}.50 EUR", 17 * number)),
                (300.0, 30.0, number.to_string()),
            ]
        })
        .collect();
    let text = text_of(&drawn_pages(&shown));
    for number in 1..=12 {
        assert!(text.contains(&format!("Invoice {number:03}")), "{number}: {text}");
        assert!(text.contains(&format!("Number {number}\n")), "{number}: {text}");
    }
    assert!(!text.lines().any(|line| line == "7"), "{text}");
}

#[test]
fn rows_of_tables_in_the_margins_of_a_page_stay() {
    // Rows closer than the drift of headers, at the bottom of one page and then of two.
    let row = |page: usize, row: usize| -> Vec<(f32, f32, String)> {
        let y = 110.0 - 10.0 * row as f32;
        let (name, amount) = (format!("Row {page}{row}"), format!("{}", 100 * page + row));
        vec![(72.0, y, name), (200.0, y, "paid".to_owned()), (300.0, y, amount)]
    };
    let body = |page: usize| vec![(72.0, 600.0, format!("Text of page {page} stands above it."))];
    for count in [1, 2] {
        let shown: Vec<_> = (1..=2)
            .map(|page| match page <= count {
                true => [body(page), (0..8).flat_map(|at| row(page, at)).collect()].concat(),
                false => body(page),
            })
            .collect();
        let text = text_of(&drawn_pages(&shown));
        assert_eq!(text.matches("| paid |").count(), 8 * count, "{text}");
        for (page, at) in (1..=count).flat_map(|page| (0..8).map(move |at| (page, at))) {
            assert!(text.contains(&format!("| Row {page}{at} | paid | {}", 100 * page + at)));
        }
    }
}

#[test]
fn names_of_columns_stay_on_each_page_of_a_table() {
    let row = |y: f32, cells: [&str; 3]| -> Vec<(f32, f32, String)> {
        let cells = [72.0, 200.0, 300.0].into_iter().zip(cells);
        cells.map(|(x, cell)| (x, y, cell.to_owned())).collect()
    };
    let table = |page: usize| {
        let name = |at: usize| format!("Part {page}{at}");
        let mut lines = row(760.0, ["Name", "Colour", "Weight in kg"]);
        for at in 1..6 {
            lines.extend(row(760.0 - 14.0 * at as f32, [&name(at), "red", "2"]));
        }
        lines.push((72.0, 30.0, "A catalogue".to_owned()));
        lines
    };
    let text = text_of(&drawn_pages(&[table(1), table(2), table(3)]));
    let names = "| Name | Colour | Weight in kg |\n| --- | --- | --- |\n| Part ";
    assert_eq!(text.matches(names).count(), 3, "{text}");
    assert_eq!(text.matches("A catalogue").count(), 1, "{text}");
}

#[test]
fn headings_are_larger_or_bolder() {
    let drawn = line("F1", 20, 72.0, 740.0, "The Whole")
        + &line("F1", 14, 72.0, 700.0, "1. A Part of It")
        + &lines(72.0, 670.0, &["A sentence of body text follows it.", "And one more of them."])
        + &line("F2", 10, 72.0, 620.0, "A Bold Title")
        + &lines(72.0, 600.0, &["More of the body text, twice.", "More of the body text, twice."]);
    let text = text_of(&page(&drawn));
    let headings: Vec<_> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(headings, ["# The Whole", "## 1. A Part of It", "### A Bold Title"]);
}

fn flate(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    stream("/Filter /FlateDecode", &encoder.finish().unwrap())
}

#[test]
fn a_bomb_costs_no_more_than_its_page() {
    // 48 MB from 48 kB.
    let bomb = flate(&b" ".repeat(48 << 20));
    let good = stream("", line("F1", 10, 72.0, 700.0, "still here").as_bytes());
    assert_eq!(text_of(&pages(&[("", bomb.clone()), ("", good)])), "still here");
    assert!(read(&pages(&[("", bomb)])).unwrap().text.is_empty());
    // Letters instead of spaces: one string, and many.
    let shown = line("F1", 10, 72.0, 700.0, &"a".repeat(20 << 20));
    let many = line("F1", 10, 72.0, 700.0, "aaaaaaaa").repeat(200_000);
    for shown in [shown, many] {
        let error = read(&pages(&[("", flate(shown.as_bytes()))])).unwrap_err();
        assert!(error.to_string().contains("glyphs of a page"), "{error}");
    }
}

#[test]
fn nesting_ends_before_the_stack_does() {
    for deep in ["[".repeat(100_000), "<</A ".repeat(100_000)] {
        let drawn = line("F1", 10, 72.0, 700.0, "text");
        let entries = format!("/Deep {deep}");
        let failure = read(&pages(&[(&entries, stream("", drawn.as_bytes()))])).unwrap_err();
        assert!(matches!(failure, ExtractError::BeyondLimit { .. }), "{failure}");
        // In the page content, where it is found only during interpretation.
        let content = format!("{deep} {drawn}");
        let hidden = read(&pages(&[("", flate(content.as_bytes()))])).unwrap();
        assert_eq!(hidden.text, "");
    }
}

#[test]
fn trees_of_pages_that_loop_end() {
    let drawn = stream("", line("F1", 10, 72.0, 700.0, "text").as_bytes());
    for kids in ["[2 0 R]", "[2 0 R 3 0 R 2 0 R]", "[3 0 R 3 0 R]", "2 0 R"] {
        let objects = [
            b"<</Type /Catalog /Pages 2 0 R>>".to_vec(),
            format!("<</Type /Pages /Count 9 /Kids {kids} /Parent 2 0 R>>").into_bytes(),
            format!("<</Type /Page /Parent 2 0 R {FONTS} /Contents 4 0 R>>").into_bytes(),
            drawn.clone(),
        ];
        if let Ok(extracted) = read(&file(&objects, "")) {
            assert!(extracted.text.len() < 100, "{}", extracted.text);
        }
    }
}

#[test]
fn damage_is_told_or_healed() {
    let drawn: Vec<_> = (0..4)
        .map(|number| {
            let text = format!("page number {number} of a file that is cut");
            ("", stream("", line("F1", 10, 72.0, 700.0 - number as f32, &text).as_bytes()))
        })
        .collect();
    let whole = pages(&drawn);
    assert_eq!(text_of(&whole).matches("page number").count(), 4);
    let mut found = 0;
    for cut in (0..whole.len()).step_by(97) {
        match read(&whole[..cut]) {
            Ok(extracted) => found = found.max(extracted.text.matches("page number").count()),
            Err(failure) => {
                assert_eq!(failure.error_code(), JobErrorCode::CorruptFile, "{failure}");
            }
        }
    }
    assert!(found >= 3, "{found}");
    assert_eq!(read(b"%PDF-1.7\nnothing").unwrap_err().error_code(), JobErrorCode::CorruptFile);
    // Without the catalog at the start, and without everything after the pages.
    let (start, end) = (find(&whole, b"2 0 obj"), find(&whole, b"xref\n"));
    assert_eq!(text_of(&whole[start..end]).matches("page number").count(), 4);
}

/// Two-byte codes of a font without a character mapping.
const SECRET: &str = "/Resources <</Font <<\
    /F1 <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> \
    /F9 <</Type /Font /Subtype /Type0 /BaseFont /Secret /Encoding /Identity-H /DescendantFonts \
    [<</Type /Font /Subtype /CIDFontType2 /BaseFont /Secret /CIDSystemInfo <</Registry (Adobe) \
    /Ordering (Identity) /Supplement 0>> >>]>> >> >>";

#[test]
fn pages_that_cannot_be_read_are_named() {
    let good = stream("", line("F1", 10, 72.0, 700.0, "A page that can be read.").as_bytes());
    let codes = "BT /F9 10 Tf 72 700 Td <00410042004300440045004600470048> Tj ET\n".repeat(5);
    let secret = stream("", codes.as_bytes());
    let damaged = stream("/Filter /FlateDecode", b"\x78\x9C\xFF\xFF no such stream");
    // More of them than any limit on unreadable pages, then a readable one.
    let mut drawn = vec![("", good.clone())];
    drawn.extend(vec![(SECRET, secret); 20]);
    drawn.extend([("", damaged), ("", good)]);
    let extracted = read(&pages(&drawn)).unwrap();
    assert_eq!(extracted.text.matches("A page that can be read.").count(), 2);
    let [warning] = &extracted.warnings[..] else { panic!("{:?}", extracted.warnings) };
    assert_eq!(warning.code, "unreadable_pages");
    assert_eq!(warning.pages, (2..=22).collect::<Vec<_>>());
}

#[test]
fn values_of_forms_stand_beside_their_labels() {
    let field = |place: &str, rest: &str| {
        format!("<</Type /Annot /Subtype /Widget /Rect [{place}] {rest}>>")
    };
    let fields = [
        field("150 695 300 711", "/FT /Tx /T (name) /V (Ada Lovelace)"),
        field("150 675 300 691", "/Parent <</FT /Tx /T (city) /V <FEFF00C50072006800750073>>>"),
        field("150 655 162 667", "/FT /Btn /AS /Yes"),
        field("150 635 162 647", "/FT /Btn /AS /Off"),
        field("150 615 300 631", "/FT /Ch /V [(red) (blue)]"),
        field("150 595 300 611", "/FT /Tx /Ff 8192 /V (secret)"),
    ];
    let entries = format!("/Annots [{}]", fields.concat());
    let labels = ["Name", "City", "Member", "Guest", "Colours", "Password"];
    let drawn: String = labels
        .iter()
        .enumerate()
        .map(|(at, label)| line("F1", 10, 72.0, 699.0 - 20.0 * at as f32, label))
        .collect();
    let extracted = read(&pages(&[(&entries, stream("", drawn.as_bytes()))])).unwrap();
    let words: Vec<&str> = extracted.text.split(|c: char| c.is_whitespace() || c == '|').collect();
    let text = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let expected = ["Name Ada Lovelace", "City Århus", "Member [x]", "Guest Colours red, blue"];
    for expected in expected {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains("secret"));
    assert_eq!(extracted.warnings, []);
    assert_near(place(&extracted, "Ada Lovelace").1, 150.0, 92.0, 60.0, 16.0);
}

#[test]
fn a_scan_says_that_it_is_one() {
    let picture = stream(
        "/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray \
         /BitsPerComponent 8",
        b"\x7F",
    );
    let objects = [
        b"<</Type /Catalog /Pages 2 0 R>>".to_vec(),
        b"<</Type /Pages /Count 1 /Kids [3 0 R]>>".to_vec(),
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R \
          /Resources <</XObject <</I 5 0 R>> >> >>"
            .to_vec(),
        stream("", b"q 9 0 0 9 0 0 cm /I Do Q"),
        picture,
    ];
    let failure = read(&file(&objects, "")).unwrap_err();
    assert_eq!(failure, ExtractError::OnlyPictures { format: "PDF" });
    assert_eq!(failure.error_code(), JobErrorCode::NoText);
    assert!(failure.to_string().contains("pictures"), "{failure}");
}

#[test]
fn a_file_without_its_end_is_damaged_or_says_what_is_missing() {
    let draw = |text: &str| format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET");
    let draw = |text: &str| stream("", draw(text).as_bytes());
    let whole = pages(&[("", draw("The first page.")), ("", draw("The second page."))]);
    let (first, second) = (find(&whole, b"The first"), find(&whole, b"The second"));
    let failure = read(&whole[..first]).unwrap_err();
    assert_eq!(failure.error_code(), JobErrorCode::CorruptFile, "{failure}");
    assert!(failure.to_string().contains("its end is missing"), "{failure}");
    let part = read(&whole[..second]).unwrap();
    assert!(part.text.contains("The first page.") && !part.text.contains("second"), "{part:?}");
    assert!(part.warnings.contains(&Warning::cut_off()), "{:?}", part.warnings);
    assert_eq!(read(&whole).unwrap().warnings, []);
}

/// A file encrypted with RC4, 40-bit keys, revision 2, made for these tests: owner and user key,
/// and the page content.
fn encrypted(owner: &str, user: &str, content: &str) -> Vec<u8> {
    let objects = [
        b"<</Type /Catalog /Pages 2 0 R>>".to_vec(),
        b"<</Type /Pages /Count 1 /Kids [4 0 R]>>".to_vec(),
        stream("", b""),
        format!("<</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {FONTS} /Contents 5 0 R>>")
            .into_bytes(),
        stream("", &hex::decode(content).unwrap()),
        format!("<</Filter /Standard /V 1 /R 2 /P -4 /O <{owner}> /U <{user}>>>").into_bytes(),
    ];
    let id = "30313233343536373839616263646566";
    file(&objects, &format!("/Encrypt 6 0 R /ID [<{id}> <{id}>]"))
}

#[test]
fn a_file_without_a_user_password_opens() {
    let open = encrypted(
        "c92422687facee686e373f10b5c7d04738053152f7e2ee30e11c69ec442576ab",
        "13f3633f3c8fe41869648cfa5552ce67d52a786c2ca737f8f9c0e496403cd4ae",
        "587ee508f243a31f26a0e7ba7d303b98ab0de62e2b8ae59a50c47db35558827c51a5ef49bb2be1d3bc0457d66a\
         5cedcaa92fc47478e4fb",
    );
    assert_eq!(text_of(&open), "kept in the open");
    let closed = encrypted(
        "92fe0f4454ad4c9644693f33c07cb54f587dce1e2682fe9ecea6107a1ef630dd",
        "902d6c0d6b77adef97ca1c71e49308c613b917b2ad6ef711a0cb410737994360",
        "06b897220985f8f9a5acefe691d850882a7ed2ad4587f8b129f697c75b42f7d7db78df2e59662e73e3b2056291\
         4e6ad85b32e965e91bc6",
    );
    let failure = read(&closed).unwrap_err();
    assert_eq!(failure.error_code(), JobErrorCode::EncryptedFile, "{failure}");
}

/// Phrases of the shared files: file, page, left, top, right, bottom, as measured by `pdftotext
/// -bbox` (poppler 22.12).
const MEASURED: [(&str, u32, [f32; 4], &str); 16] = [
    ("multi_page", 1, [72.0, 72.588, 262.987, 85.872], "The Evolution of the Word Processor"),
    ("multi_page", 2, [427.894, 295.548, 512.871, 308.832], "making it a staple"),
    ("multi_page", 3, [255.617, 184.908, 327.912, 198.192], "particularly for"),
    ("code_and_formula", 1, [133.768, 149.672, 258.706, 158.519], "Lorem ipsum dolor sit amet,"),
    (
        "code_and_formula",
        1,
        [301.226, 293.134, 477.475, 301.981],
        "hendrerit in vulputate velit esse molestie",
    ),
    (
        "multi-column",
        1,
        [119.324, 258.662, 273.256, 267.569],
        "passage retrieval to select candidate",
    ),
    ("multi-column", 1, [18.34, 443.79, 36.34, 609.89], "arXiv:2004.04906v3"),
    ("multi-column", 2, [175.84, 107.019, 246.654, 116.771], "questions in the"),
    ("multi-column", 3, [126.644, 66.371, 262.419, 76.123], "DPR applies a different encoder"),
    ("multi-column", 6, [72.0, 662.814, 144.75, 672.566], "for all questions"),
    (
        "multi-column",
        8,
        [72.0, 641.41, 290.27, 651.162],
        "additional pretraining tasks are likely more useful",
    ),
    (
        "multi-column",
        11,
        [114.64, 359.658, 273.633, 368.565],
        "the importance of semantic retrieval for",
    ),
    ("movie-theater-booking-2024", 1, [455.89, 92.82, 562.0, 102.07], "STARLIGHT CINEMAS"),
    (
        "movie-theater-booking-2024",
        1,
        [150.0, 153.256, 269.6, 160.656],
        "Holiday Movie Marathon Package",
    ),
    ("movie-theater-booking-2024", 1, [450.0, 129.256, 521.128, 136.656], "Downtown Multiplex"),
    ("right_to_left_01", 1, [223.85, 75.359, 265.086, 87.563], "Python"),
];

#[test]
fn phrases_stand_where_another_reader_finds_them() {
    let shared =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/documents");
    if !shared.join("manifest.json").exists() {
        eprintln!("skipped: phrases_stand_where_another_reader_finds_them");
        return;
    }
    for (name, page, [left, top, right, bottom], phrase) in MEASURED {
        let bytes = std::fs::read(shared.join(format!("files/{name}.pdf"))).unwrap();
        let extracted = read(&bytes).unwrap();
        let (width, height) = (right - left, bottom - top);
        // The same words may occur elsewhere too.
        let is_there = extracted.text.match_indices(phrase).any(|(start, _)| {
            let boxes = extracted.geometry.boxes(&(start..start + phrase.len()));
            boxes.iter().any(|PageBox { page: number, area }| {
                let wide = right.min(area.x + area.width) - left.max(area.x);
                let high = bottom.min(area.y + area.height) - top.max(area.y);
                let covered = wide.max(0.0) * high.max(0.0);
                // Half of it is covered by a box no higher than a line.
                *number == page
                    && covered >= 0.5 * width * height
                    && area.width.min(area.height) < 2.0 * width.min(height)
            })
        });
        assert!(is_there, "{name}: {phrase}");
    }
}
