//! Goal: no input crashes a reader or makes it slower than linear; real documents yield their text.

use std::time::Duration;

use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};

use crate::{ExtractError, Format, detect, extract};
use lodestone_types::{BlockKind, Extracted, JobErrorCode};

const FORMATS: [Format; 17] = [
    Format::Txt,
    Format::Md,
    Format::Html,
    Format::Json,
    Format::Csv,
    Format::Tsv,
    Format::Xml,
    Format::Docx,
    Format::Pptx,
    Format::Xlsx,
    Format::Odt,
    Format::Ods,
    Format::Odp,
    Format::Epub,
    Format::Rtf,
    Format::Eml,
    Format::Msg,
];

/// CPU time of this thread; wall-clock time would include what others do.
pub(super) fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

pub(super) fn check(extracted: &Extracted) {
    let mut done = 0;
    for block in &extracted.blocks {
        assert!(extracted.text[done..block.range.start].trim().is_empty());
        let content = &extracted.text[block.range.clone()];
        assert!(!content.trim().is_empty());
        assert!(!content.ends_with('\n') && !content.starts_with('\n'), "{content:?}");
        done = block.range.end;
    }
    assert!(extracted.text[done..].trim().is_empty());
    let starts: Vec<usize> = extracted.pages.iter().map(|page| page.start).collect();
    assert!(starts.is_sorted() && starts.iter().all(|start| *start < extracted.text.len()));
    assert!(!extracted.text.contains(['\0', '\r']));
}

fn markup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "</?(p|div|li|ul|ol|table|tr|td|th|pre|h2|b|br|a|main|nav|script|style|title|svg)[ />]",
        "<(p|td|x) (hidden|style='display:none'|a=\"b\"|role=main)>",
        "[a-z &;<>\"'=|#*`.-]{0,12}",
        "(\\{|\\[|\\]|\\}|,|:|\"[a-z]*\"|[0-9]+|null| )",
        "(# |- |1\\. |```|---|\\| a \\||\\|---\\||=== )[a-z ]{0,5}\n",
        "\\PC{0,6}",
        "(&amp;|&#x41;|&nope;|<!\\[CDATA\\[|\\]\\]>|<!--|-->|<\\?|\\?>|<!DOCTYPE a \\[)",
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

#[test]
fn a_fence_left_open_does_not_end_in_blank_lines() {
    check(&extract(Format::Md, b"```\n<p># \n ").unwrap());
    let code = extract(Format::Md, b"```\na\n\nb\n\n").unwrap();
    assert_eq!(&code.text[code.blocks[0].range.clone()], "```\na\n\nb");
}

/// Formats can write any character as a numeric reference, after line ends are normalised.
#[test]
fn carriage_returns_and_zeros_that_are_written_as_numbers_do_not_reach_the_text() {
    for (format, source) in [
        (Format::Rtf, &b"{\\rtf1 a\\'0db\\'00c\\u13?d\\par\\trowd\\cellx1 e\\'0df\\cell\\row}"[..]),
        (Format::Xml, b"<a><p>b&#13;c</p><p>d&#13;&#10;e</p></a>"),
        (Format::Html, b"<h1>a&#13;b</h1><p>c&#0;d&#13;e<pre>f&#13;g</pre>"),
        (Format::Json, br#"{"a":"b\rc\u0000d\r\n"}"#),
        (Format::Eml, b"Subject: =?utf-8?q?a=0Db=00?=\nFrom: c\n\nd"),
    ] {
        check(&extract(format, source).unwrap());
    }
    let rich = extract(Format::Rtf, b"{\\rtf1 a\\'0d\\'0ab\\'00c\\par}").unwrap();
    assert_eq!(rich.text, "a\nbc");
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = detect("x", None, &bytes);
        for format in FORMATS {
            if let Ok(extracted) = extract(format, &bytes) {
                check(&extracted);
            }
        }
    }

    #[test]
    fn any_markup_gives_an_answer(text in markup()) {
        let _ = detect("x", None, text.as_bytes());
        for format in FORMATS {
            if let Ok(extracted) = extract(format, text.as_bytes()) {
                check(&extracted);
            }
        }
    }
}

/// Inputs that are quadratic, or overflow the stack, in readers without guards.
#[test]
fn hostile_shapes_cost_no_more_than_others() {
    let attributes: String = (0..80_000).map(|n| format!(" a{n}=\"x\"")).collect();
    let shapes = [
        "<a><i>".repeat(100_000),
        "<div>".repeat(200_000) + "text",
        "<table><tr><td>".repeat(50_000) + "text",
        "<table>".to_owned() + &"<tr><td rowspan=9999 colspan=9999>x".repeat(20_000),
        "<ul><li>".repeat(50_000) + "text",
        "<p><b>".repeat(50_000) + &"</i>".repeat(100_000),
        format!("<a{attributes}>text</a>"),
        "[".repeat(100_000),
        "{\"a\":".repeat(100_000),
        "\"\\u0041".repeat(100_000),
        "&lt".repeat(100_000),
        "<!--".repeat(100_000),
        "<?xml version='1.0'?><!DOCTYPE a [".to_owned() + &"<!ENTITY a 'b'>".repeat(50_000),
        "- ".repeat(200_000),
        "|-".repeat(200_000) + "\n" + &"|-".repeat(200_000),
        "> ".repeat(200_000),
        "\"".repeat(300_000),
        "a,".repeat(300_000),
        "`".repeat(300_000),
        "{\\rtf1".to_owned() + &"{".repeat(300_000),
        "{\\rtf1".to_owned() + &"{\\footnote ".repeat(50_000) + "x",
        "{\\rtf1".to_owned() + &"\\trowd\\cellx1 a\\cell".repeat(50_000),
        "{\\rtf1".to_owned() + &"\\u8364?\\'e4".repeat(50_000),
        "From: =?utf-8?q?a?=".to_owned() + &" =?utf-8?q?a?=".repeat(50_000) + "\n\nx",
        "Subject: a\n".repeat(50_000) + "\nx",
        "Content-Type: message/rfc822\n\n".repeat(50_000) + "x",
        "Content-Type: multipart/mixed; boundary=a\n\n--a\n".repeat(20_000) + "x",
        "Content-Type: multipart/mixed; boundary=".to_owned() + &"--a\n".repeat(100_000),
        "<p hidden>".repeat(100_000),
        "<h2>".to_owned() + &"1<button>".repeat(100_000),
        "\n".repeat(500_000) + "{",
    ];
    for shape in &shapes {
        for format in FORMATS {
            let started = processor_time();
            if let Ok(extracted) = extract(format, shape.as_bytes()) {
                check(&extracted);
            }
            let took = processor_time() - started;
            let shape = &shape[..shape.len().min(20)];
            assert!(took.as_secs() < 4, "{format:?} {shape:?} took {took:?}");
        }
    }
}

#[test]
fn bounds_are_errors_of_their_own() {
    let nested = "[".repeat(300) + &"]".repeat(300);
    assert!(matches!(
        extract(Format::Json, nested.as_bytes()),
        Err(ExtractError::BeyondLimit { .. })
    ));
    let nested = "<a>".repeat(300) + "x" + &"</a>".repeat(300);
    assert!(matches!(
        extract(Format::Xml, nested.as_bytes()),
        Err(ExtractError::BeyondLimit { .. })
    ));
    let wide: String = (0..1001).map(|n| format!(" a{n}='x'")).collect();
    let wide = format!("<a{wide}>x</a>");
    assert!(matches!(extract(Format::Xml, wide.as_bytes()), Err(ExtractError::BeyondLimit { .. })));
    let long = "word ".repeat(super::TEXT_BYTES_MAX / 4);
    assert!(matches!(extract(Format::Txt, long.as_bytes()), Err(ExtractError::BeyondLimit { .. })));
    let wide = format!("name,age\nAda,36\n{}b\n", "a,".repeat(20_000));
    let failure = extract(Format::Csv, wide.as_bytes()).unwrap_err();
    assert!(failure.to_string().contains("columns of a table (at most 16384)"), "{failure}");
    assert_eq!(failure.error_code(), JobErrorCode::TooLarge);
    let commas = "a,\"\"b\"\",\n".repeat(20_000);
    let quoted = format!("name,note\nAda,\"{commas}\"\n{}b\n", "\"a\",".repeat(16_383));
    assert!(extract(Format::Csv, quoted.as_bytes()).is_ok());
}

#[test]
fn nothing_to_search_for_is_said() {
    for (format, source) in [
        (Format::Txt, " \n\t\u{200B}"),
        (Format::Html, "<html><body><script>x</script><img src=a></body></html>"),
        (Format::Json, "{\"a\": null, \"b\": []}"),
        (Format::Xml, "<a><b/></a>"),
        (Format::Csv, ",,\n,,\n"),
    ] {
        let failure = extract(format, source.as_bytes()).unwrap_err();
        assert_eq!(failure, ExtractError::NoText, "{format:?}");
        assert_eq!(failure.error_code(), JobErrorCode::NoText);
    }
}

#[test]
fn content_wins_over_names() {
    let of = |name: &str, media: Option<&str>, bytes: &[u8]| detect(name, media, bytes);
    assert_eq!(of("notes.txt", None, b"<!DOCTYPE html><p>x"), Ok(Format::Html));
    assert_eq!(of("a.xml", None, b"<?xml version='1.0'?>\n<!-- x --><rss/>"), Ok(Format::Xml));
    assert_eq!(of("page", None, b"<?xml version='1.0'?><html xmlns='x'>"), Ok(Format::Html));
    assert_eq!(of("A.MD", Some("application/octet-stream"), b"# x"), Ok(Format::Md));
    assert_eq!(of("x", Some("text/csv; charset=utf-8"), b"a,b"), Ok(Format::Csv));
    assert_eq!(of("x", None, b"{\"a\": 1}"), Ok(Format::Json));
    assert_eq!(of("x", None, b"{ braces }"), Ok(Format::Txt));
    assert_eq!(of("main.rs", None, b"fn main() {}"), Ok(Format::Txt));
    assert_eq!(of("x.txt", None, b"\xFF\xFEh\0i\0"), Ok(Format::Txt));
    assert_eq!(of("x.txt", None, b"BMW builds cars"), Ok(Format::Txt));
    assert_eq!(of("a.docx", None, b"PK\x03\x04\0\0"), Ok(Format::Docx));
    assert_eq!(of("a", None, b"PK\x03\x04\0\0\0word/document.xml"), Ok(Format::Docx));
    assert_eq!(of("a.eml", None, b"From: a@b\n\nhello"), Ok(Format::Eml));
    assert_eq!(of("a", None, b"From: a@b\nTo: c@d\nSubject: x\n\nhello"), Ok(Format::Eml));
    assert_eq!(of("a.txt", None, b"{\\rtf1 x}"), Ok(Format::Rtf));
    assert_eq!(of("a.txt", None, b"%PDF-1.7 x"), Ok(Format::Pdf));
    assert_eq!(of("a", None, b"junk\r\n%PDF-1.4\n1 0 obj null endobj"), Ok(Format::Pdf));
    assert_eq!(of("a.md", None, b"A PDF begins with %PDF- and a number."), Ok(Format::Md));
    assert_eq!(of("a.pdf", None, b"its beginning is lost"), Ok(Format::Pdf));
    assert_eq!(of("x.txt", None, b""), Err(ExtractError::EmptyFile));
}

#[test]
fn what_is_not_read_is_named() {
    let cases: [(&str, &[u8], &str); 7] = [
        ("a.txt", b"%!PS-Adobe-3.0\n", "PostScript"),
        ("a", b"PK\x03\x04\0\0\0other", "ZIP archive"),
        ("a.doc", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "Microsoft Office 97-2003 document"),
        ("a.md", b"\x89PNG\r\n\x1A\n\0\0", "PNG image"),
        ("a.docx", b"\x89PNG\r\n\x1A\n\0\0", "PNG image"),
        ("a.txt", b"zeros\0and\0bytes", "binary data"),
        ("a.txt", b"\x01\x02\x03\x04", "binary data"),
    ];
    for (filename, bytes, expected) in cases {
        let failure = detect(filename, None, bytes).unwrap_err();
        assert_eq!(failure.to_string(), format!("Unsupported file format: {expected}"));
    }
}

#[test]
fn markdown_stays_as_it_is() {
    let source = "---\ntitle: \"T\"\n---\n\nHead\n====\n\nText *one*\ntwo.\n\n- item\n  more\n\
                  - next\n\n\
                  | a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn x() {\n\n}\n```\n## Two ##\nEnd";
    let extracted = extract(Format::Md, source.as_bytes()).unwrap();
    check(&extracted);
    assert_eq!(extracted.text, source);
    assert_eq!(extracted.title.as_deref(), Some("T"));
    let kinds: Vec<BlockKind> = extracted.blocks.iter().map(|block| block.kind).collect();
    use BlockKind::{Code, Heading, ListItem, Paragraph, Record, Table};
    let expected = [
        Record,
        Heading { level: 1 },
        Paragraph,
        ListItem,
        ListItem,
        Table,
        Code,
        Heading { level: 2 },
        Paragraph,
    ];
    assert_eq!(kinds, expected);
    let untitled = extract(Format::Md, b"## Sub\n\n# Main #\n").unwrap();
    assert_eq!(untitled.title.as_deref(), Some("Main"));
}

#[test]
fn no_heading_of_markdown_is_in_code_or_a_comment() {
    let source = "# One\n\nRun:\n\n    # as root\n    make\n\n\t# again\n\n<!-- hidden\n\n# old\n\
                  --> \n## Two\n<!-- a --> b\n\n- item\n    # note\n\n<!-- open\n### Three\n";
    let extracted = extract(Format::Md, source.as_bytes()).unwrap();
    check(&extracted);
    let is_heading = |kind| matches!(kind, BlockKind::Heading { .. });
    let headings = extracted.blocks.iter().filter(|block| is_heading(block.kind));
    let found: Vec<&str> = headings.map(|block| &source[block.range.clone()]).collect();
    assert_eq!(found, ["# One", "## Two", "### Three"]);
    let code = extracted.blocks.iter().find(|block| block.kind == BlockKind::Code).unwrap();
    assert_eq!(&source[code.range.clone()], "    # as root\n    make");
}

#[test]
fn pages_read_as_a_browser_shows_them() {
    let source = "<title> A &amp; B </title><style>x{}</style><h1>Head<br>line</h1>\
        <p>One <b>two</b>\n three&nbsp;four<p>Five<ul><li>a<li>b<ol><li>c</ol></ul>\
        <p hidden>no<p aria-hidden=true>no</p><div style='Display : NONE'>no</div>\
        <table><tr><th>k<th>v<tr><td>1<td>2 | 3</table><pre>\n  x\n   y</pre>\
        <script>if (a < b) document.write('<p>no</p>')</script>end<template>no</template>";
    let extracted = extract(Format::Html, source.as_bytes()).unwrap();
    check(&extracted);
    let expected = "# Head line\n\nOne two three\u{a0}four\n\nFive\n\n- a\n- b\n  1. c\n\n\
        | k | v |\n| --- | --- |\n| 1 | 2 \\| 3 |\n\n  x\n   y\n\nend";
    assert_eq!(extracted.text, expected);
    assert_eq!(extracted.title.as_deref(), Some("A & B"));
    let steps = b"<ol start=3><li>c<li value=7>g<li>h</ol><ol><li>a</ol>";
    let steps = extract(Format::Html, steps).unwrap();
    assert_eq!(steps.text, "3. c\n7. g\n8. h\n1. a");
    let spans =
        b"<table><tr><th rowspan=2>k<th colspan=2>v<tr><td>1<td>2<tr><td>a<td>b<td>c</table>";
    let expected = "| k | v |  |\n| --- | --- | --- |\n| k | 1 | 2 |\n| a | b | c |";
    assert_eq!(extract(Format::Html, spans).unwrap().text, expected);
    let groups = b"<table><tr><th rowspan=2>Item<th colspan=2>2024<tr><th>Q1<th>Q2\
        <tr><td rowspan=2>Chair<td>1<td>2<tr><td>3<td>4</table>";
    let expected = "| Item | 2024 Q1 | 2024 Q2 |\n| --- | --- | --- |\n\
        | Chair | 1 | 2 |\n| Chair | 3 | 4 |";
    assert_eq!(extract(Format::Html, groups).unwrap().text, expected);
}

#[test]
fn a_head_of_metadata_may_hold_blank_lines() {
    let heads = [
        "---\ntitle: \"T\"\n\ntags:\n- one\n# a comment\n\n---\n",
        "---\n\ntitle: T\ndate: 2026-11-22\n---\n\n",
        "--- \ntitle: T\nlist:\n  - a\n\n  - b\n...\n",
    ];
    for head in heads {
        let extracted = extract(Format::Md, format!("{head}Text.").as_bytes()).unwrap();
        check(&extracted);
        assert_eq!(extracted.title.as_deref(), Some("T"), "{head}");
        let kinds: Vec<BlockKind> = extracted.blocks.iter().map(|block| block.kind).collect();
        assert_eq!(kinds, [BlockKind::Record, BlockKind::Paragraph], "{head}");
    }
    // A thematic break, a text, and another break.
    let ruled = extract(Format::Md, b"---\n\nA text: of words.\n\nMore\n\n---\nEnd").unwrap();
    assert_eq!(ruled.blocks[0].kind, BlockKind::Paragraph);
}

#[test]
fn json_becomes_lines_of_records() {
    let source = r#"{"team": "A\u00e9", "big": 123456789012345678901234567890,
        "people": [{"name": "Ada", "tags": ["x", "y"], "at": {"city": "L"}}, {"name": "Bo"}],
        "none": null, "flag": true}"#;
    let extracted = extract(Format::Json, source.as_bytes()).unwrap();
    check(&extracted);
    let expected = "team: Aé\nbig: 123456789012345678901234567890\n\n\
        people.name: Ada\npeople.tags: x, y\npeople.at.city: L\n\npeople.name: Bo\n\nflag: true";
    assert_eq!(extracted.text, expected);
    let lines = extract(Format::Json, b"{\"a\": 1}\n{\"a\": -2.5e3}\n").unwrap();
    assert_eq!(lines.text, "a: 1\n\na: -2.5e3");
}

#[test]
fn a_notebook_is_read_as_its_cells() {
    let source = br#"{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["Results\n",
        "===\n", "\n", "We trained\n", "on three folds.\n", "Loss fell to 0.2.\n", "---\n"]},
        {"cell_type": "code", "source": "print(1)", "outputs": [{"text": ["1\n"]}]}]}"#;
    let extracted = extract(Format::Json, source).unwrap();
    check(&extracted);
    let expected = "# Results\n\nWe trained\non three folds.\nLoss fell to 0.2.\n\nprint(1)\n\n1";
    assert_eq!(extracted.text, expected);
}

#[test]
fn a_text_that_is_not_quite_in_its_format_is_still_a_text() {
    let commented = "// settings\n{\"port\": 80, /* the usual */}\n";
    let json =
        [commented, "{\"a\": 01}", "[1,]", "{\"a\" 1}", "[1", "tru", "\"\\x\"", "[1}", "{,}"];
    let json = json.map(|text| (Format::Json, text));
    let xml = ["<a>b & c</a>", "<a><b>c</a>", "<a>cut off"].map(|text| (Format::Xml, text));
    for (format, text) in json.into_iter().chain(xml) {
        let extracted = extract(format, text.as_bytes()).unwrap();
        assert_eq!(extracted.text, text);
        let [warning] = &extracted.warnings[..] else { panic!("{text}: one warning") };
        assert_eq!(warning.code, "read_as_text");
        assert!(warning.message.contains("line 1"), "{text}: {}", warning.message);
    }
    for text in [commented, "{\"a\": 1 # one\n}", "[1 /* one */]"] {
        let read = extract(Format::Json, text.as_bytes()).unwrap();
        let message =
            "it was read as plain text: line 1 contains a comment, which JSON does not allow";
        assert_eq!(read.warnings[0].message, message, "{text}");
    }
    // Rows of different lengths are read cell by cell.
    let ragged = extract(Format::Csv, b"name,age\nAda,36,x\nBo\n").unwrap();
    assert_eq!(ragged.text, "name: Ada\nage: 36\ncolumn 3: x\n\nname: Bo");
    assert_eq!(ragged.warnings, []);
    // A zero byte among many letters is a bug of the writer.
    let log = "2026-11-22 10:00:00 the pump runs\n".repeat(40) + "\0 restarted\n";
    assert_eq!(detect("pump.log", None, log.as_bytes()), Ok(Format::Txt));
    let wide: Vec<u8> = "a text of Windows".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(detect("notes.txt", None, &wide), Ok(Format::Txt));
    assert_eq!(extract(Format::Txt, &wide).unwrap().text, "a text of Windows");
}

#[test]
fn a_text_beyond_the_limit_is_refused_before_it_is_accepted() {
    let long = "some words\n".repeat(super::TEXT_BYTES_MAX / 11 + 1);
    for name in ["a.txt", "a.md", "a.json", "a.csv", "a.log"] {
        let failure = detect(name, None, long.as_bytes()).unwrap_err();
        assert!(failure.to_string().contains("33554432"), "{name}: {failure}");
        assert_eq!(failure.error_code(), JobErrorCode::TooLarge);
        assert!(detect(name, None, &long.as_bytes()[..super::TEXT_BYTES_MAX]).is_ok(), "{name}");
    }
    // Pages are mostly markup, and wide letters take more bytes.
    assert_eq!(detect("a.html", None, long.as_bytes()), Ok(Format::Html));
    let wide: Vec<u8> = long[..20 << 20].encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(detect("a.txt", None, &wide), Ok(Format::Txt));
}

#[test]
fn rows_carry_the_names_of_their_columns() {
    let source = b"name;note\r\nAda;\"two\nlines; here\"\r\nBo;\r\n;x;y\r\n";
    let extracted = extract(Format::Csv, source).unwrap();
    check(&extracted);
    let expected = "name: Ada\nnote: two\nlines; here\n\nname: Bo\n\nnote: x\ncolumn 3: y";
    assert_eq!(extracted.text, expected);
    let titled = b"PRICES FROM APRIL;;\nall in pounds\ncode;item;price\nADS;Adult swim;6.40\n";
    let titled = extract(Format::Csv, titled).unwrap();
    let expected = "PRICES FROM APRIL\n\nall in pounds\n\ncode: ADS\nitem: Adult swim\nprice: 6.40";
    assert_eq!(titled.text, expected);
    let sheet =
        b"Test sheet;North;02/06/2025;;;\ntime;basin;Cl;pH;by;note\n08:05;main;0.7;7.5;PN;low\n";
    let expected = "Test sheet, North, 02/06/2025\n\n\
        time: 08:05\nbasin: main\nCl: 0.7\npH: 7.5\nby: PN\nnote: low";
    assert_eq!(extract(Format::Csv, sheet).unwrap().text, expected, "a title of several cells");
    let noted = b"stop,first,last\nHarbour,6:10,23:40\n\
        Sundays begin an hour later.,,\nMill Lane,6:20,23:50\n\"Mind the step, it is high.\"\n";
    let expected = "stop: Harbour\nfirst: 6:10\nlast: 23:40\n\nSundays begin an hour later.\n\n\
        stop: Mill Lane\nfirst: 6:20\nlast: 23:50\n\nMind the step, it is high.";
    assert_eq!(extract(Format::Csv, noted).unwrap().text, expected, "sentences alone are notes");
    let tasks = b"task,owner,due\nWrite the report on the budget,Ada,May\n\
        Check all pumps in the cellar,,\n";
    let expected = "task: Write the report on the budget\nowner: Ada\ndue: May\n\n\
        task: Check all pumps in the cellar";
    assert_eq!(extract(Format::Csv, tasks).unwrap().text, expected, "a column of sentences");
    let open = b"task,owner,due\nCheck all pumps in the cellar,,\nPaint the door of the shed,,\n";
    let expected = "task: Check all pumps in the cellar\n\ntask: Paint the door of the shed";
    assert_eq!(extract(Format::Csv, open).unwrap().text, expected, "nothing but sentences");
    let gaps = b"PRICES 2025,,\nvalid from May,in EUR,\nservice,up to kg,zone A\nSmall,3,5.40\n\
        Large,10,7.15\n";
    let expected = "PRICES 2025\n\nvalid from May, in EUR\n\n\
        service: Small\nup to kg: 3\nzone A: 5.40\n\nservice: Large\nup to kg: 10\nzone A: 7.15";
    assert_eq!(extract(Format::Csv, gaps).unwrap().text, expected, "titles with gaps");
    let short = b"name,job,\nAda,lead,x\nTom,cook,y\n";
    let expected = "name: Ada\njob: lead\ncolumn 3: x\n\nname: Tom\njob: cook\ncolumn 3: y";
    assert_eq!(extract(Format::Csv, short).unwrap().text, expected, "a column without a name");
    let years = b"Region,2022,2023\nNorth,10,20\nSouth,5,6\n";
    let expected = "Region: North\n2022: 10\n2023: 20\n\nRegion: South\n2022: 5\n2023: 6";
    assert_eq!(extract(Format::Csv, years).unwrap().text, expected, "years are names");
    let twice = b"id,name,name\n1,a,b\n2,c,d\n";
    let expected = "id: 1\nname: a\nname: b\n\nid: 2\nname: c\nname: d";
    assert_eq!(extract(Format::Csv, twice).unwrap().text, expected, "a name may be repeated");
    let bands = b"to,0-10 kg,10-20 kg\nDE,4,5\nFR,6,7\n";
    let expected = "to: DE\n0-10 kg: 4\n10-20 kg: 5\n\nto: FR\n0-10 kg: 6\n10-20 kg: 7";
    assert_eq!(extract(Format::Csv, bands).unwrap().text, expected, "bands are names");
    let groups = b"Item,2023,,2024,\n,Units,Sum,Units,Sum\nChair,1,2,3,4\nDesk,5,6,7,8\n";
    let groups = extract(Format::Csv, groups).unwrap().text;
    let expected = "Item: Chair\n2023 Units: 1\n2023 Sum: 2\n2024 Units: 3\n2024 Sum: 4\n\n";
    assert!(groups.starts_with(expected), "names in two lines: {groups}");
    let bank = b"\"Account:\";\"DE12 34\"\n\"From:\";\"01.01.2024\"\n\"Day\";\"Whom\";\"Amount\"\n\
        \"02.01.2024\";\"Rent\";\"-800,00\"\n\"03.01.2024\";\"Shop\";\"-12,34\"\n";
    let expected = "Account:, DE12 34\n\nFrom:, 01.01.2024\n\n\
        Day: 02.01.2024\nWhom: Rent\nAmount: -800,00\n\n\
        Day: 03.01.2024\nWhom: Shop\nAmount: -12,34";
    assert_eq!(extract(Format::Csv, bank).unwrap().text, expected, "short rows above a table");
    let bare = extract(Format::Csv, b"1,2\n3,4\n").unwrap();
    assert_eq!(bare.text, "1, 2\n\n3, 4");
    assert_eq!(extract(Format::Tsv, b"a\tb\n1\t2,3\n").unwrap().text, "a: 1\nb: 2,3");
}

#[test]
fn a_column_without_a_word_leaves_the_others_their_names() {
    let text = |source: &str| extract(Format::Csv, source.as_bytes()).unwrap().text;
    let long = "How content were you? ".repeat(5);
    for name in ["#", "%", "№", "1", long.trim()] {
        let read = text(&format!("{name},Name,Price\n3,Chair,10\n7,Desk,20\n"));
        assert!(read.starts_with(&format!("{name}: 3\nName: Chair\nPrice: 10\n\n")), "{read}");
    }
    let read = text("#,Name,City\n1,Chair,Oslo\n2,Desk,Rome\n");
    assert!(read.starts_with("#: 1\nName: Chair\nCity: Oslo\n\n"), "{read}");
    let read = text("5,Chair,none\n6,Desk,10\n7,Lamp,12\n");
    assert!(read.starts_with("5, Chair, none\n\n"), "a row without names: {read}");
    let read = text("-,Chair,Blue\n3,Desk,Red\n4,Lamp,Green\n");
    assert!(read.starts_with("-, Chair, Blue\n\n"), "a row without names: {read}");
    let read = text("Rent,€,none\nFood,€,30\nFuel,$,45\n");
    assert!(read.starts_with("Rent, €, none\n\n"), "a row without names: {read}");
    let read = text(&format!("Anna,{long},none\nBen,{long},3\nCem,{long},5\n"));
    assert!(read.starts_with(&format!("Anna, {}, none\n\n", long.trim())), "{read}");
    let read = text("1,Anna,absent\n2,Ben,34\n3,Cem,28\n");
    assert!(read.starts_with("1, Anna, absent\n\n"), "a row without names: {read}");
    let read = text(",name,score\n0,Anna,absent\n1,Ben,34\n2,Cem,28\n");
    assert!(read.starts_with("column 1: 0\nname: Anna\nscore: absent\n\n"), "{read}");
}

#[test]
fn decimal_commas_do_not_delimit_cells() {
    let text = |source: &str| extract(Format::Csv, source.as_bytes()).unwrap().text;
    let rows: String = (1..=45).map(|_| "01.03.2026;Shop;Rent;12,50;EUR\n").collect();
    let bank = format!(
        "Account;DE12 34\nPeriod;March\nOld balance;1.000,00\nNew balance;1.234,56\n\n\
         Day;Whom;Why;Sum;Unit\n{rows}"
    );
    let record = "Day: 01.03.2026\nWhom: Shop\nWhy: Rent\nSum: 12,50\nUnit: EUR";
    let bank = text(&bank);
    assert!(bank.contains(&format!("New balance, 1.234,56\n\n{record}\n\n{record}")), "{bank}");
    assert_eq!(text("Day, hour;Value\n01.02.2026;7,5\n"), "Day, hour: 01.02.2026\nValue: 7,5");
    assert_eq!(text("1,5;1,25\n2,5;2,25\n"), "1,5, 1,25\n\n2,5, 2,25");
    assert_eq!(text("1,2,3\n4,5,6\n"), "1, 2, 3\n\n4, 5, 6");
    let lists = text("user,groups,age\n1,2;3,44\n2,4;5,45\n3,6;7,46\n");
    assert!(lists.starts_with("user: 1\ngroups: 2;3\nage: 44\n\n"), "{lists}");
    // A row without any number is divided by both delimiters.
    let lists = text(
        "name,count,price,tags\nChair,3,10,red; oak\nDesk,7,20,blue; pine\n\
         Lamp,,5,green; iron\nRug,none,none,red; wool\n",
    );
    assert!(lists.starts_with("name: Chair\ncount: 3\nprice: 10\ntags: red; oak\n\n"), "{lists}");
}

#[test]
fn xml_is_prose_or_data() {
    let feed = b"<?xml version='1.0'?><!DOCTYPE rss [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>\
        <rss><channel><title>News</title><item><title>A &amp; B</title><link>u</link></item>\
        <item><title>C&x;</title><g id='7'/><d><![CDATA[x < y]]></d></item></channel></rss>";
    let extracted = extract(Format::Xml, feed).unwrap();
    check(&extracted);
    let expected = "title: News\ntitle: A & B\nlink: u\n\ntitle: C&x;\ng.id: 7\nd: x < y";
    assert_eq!(extracted.text, expected);
    assert_eq!(extracted.title.as_deref(), Some("News"));
    let drawing = b"<svg xmlns='http://www.w3.org/2000/svg' width='9'><title>Sales</title>\
        <style>text { fill: red }</style><rect x='1'/><g><text x='2'>North\n <tspan>4&#37;</tspan>\
        </text><path d='M0 0'/><text>South</text></g></svg>";
    let extracted = extract(Format::Xml, drawing).unwrap();
    check(&extracted);
    assert_eq!(extracted.text, "Sales\n\nNorth 4%\n\nSouth");
    assert_eq!(extracted.title.as_deref(), Some("Sales"));
    let article = b"<article><title>T</title><sec><title>S</title><p>One <b>two</b>.</p>\
        <list><item><p>i</p></item></list></sec></article>";
    let extracted = extract(Format::Xml, article).unwrap();
    assert_eq!(extracted.text, "# T\n\n## S\n\nOne two.\n\n- i");
    let table = b"<article><p>x</p><table><thead><tr><th rowspan='2'>k</th><th>v</th></tr></thead>\
        <tbody><tr><td>1</td></tr><tr><td>a</td><td>b</td></tr></tbody></table></article>";
    let expected = "x\n\n| k | v |\n| --- | --- |\n| k | 1 |\n| a | b |";
    assert_eq!(extract(Format::Xml, table).unwrap().text, expected);
    let rows = |[a, b, c, d]: [char; 4]| {
        format!(
            "<informaltable><tgroup><tbody><row><entry>{a}</entry><entry>{b}</entry></row> \
             <row><entry>{c}</entry><entry>{d}</entry></row></tbody></tgroup></informaltable>"
        )
    };
    let (first, second) = (rows(['a', 'b', 'c', 'd']), rows(['e', 'f', 'g', 'h']));
    let inside = format!("<book><para>Either: {first} Or: {second} End.</para></book>");
    let expected = "Either:\n\n| a | b |\n| --- | --- |\n| c | d |\n\n\
        Or:\n\n| e | f |\n| --- | --- |\n| g | h |\n\nEnd.";
    assert_eq!(extract(Format::Xml, inside.as_bytes()).unwrap().text, expected, "in a paragraph");
}
