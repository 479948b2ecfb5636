//! Goal: rules separate the rows of a table whose cells have several lines, wherever these are.

use super::*;

/// Height of a line of a cell.
const LEADING: f32 = 12.0;
const PADDING: f32 = 4.0;

const HEADER: &[&str] = &["Priority", "Meaning", "Reaction", "Workaround|or repair", "Hours"];
const FAULTS: &[&[&str]] = &[
    HEADER,
    &["P1", "no bookings possible at a|site", "30 minutes", "4 hours", "24 h, every day"],
    &["P2", "important function|disturbed", "2 hours", "2 days", "Mon-Sat 05:00-22:00|CET"],
    &["P3", "minor fault", "1 day", "next release", "Mon-Fri 08:00-18:00|CET"],
];
const FAULTS_READ: &str = "| Priority | Meaning | Reaction | Workaround or repair | Hours |\n\
     | --- | --- | --- | --- | --- |\n\
     | P1 | no bookings possible at a site | 30 minutes | 4 hours | 24 h, every day |\n\
     | P2 | important function disturbed | 2 hours | 2 days | Mon-Sat 05:00-22:00 CET |\n\
     | P3 | minor fault | 1 day | next release | Mon-Fri 08:00-18:00 CET |";
const EDGES: &[f32] = &[72.0, 122.0, 252.0, 332.0, 442.0, 562.0];

/// Draws rows of cells, whose lines are separated by `|`, between columns at these edges. `share`
/// of the space that a cell leaves is above its text. Returns the edges of the rows, too.
fn table(edges: &[f32], rows: &[&[&str]], share: f32) -> (String, Vec<f32>) {
    let mut y = 720.0;
    let (mut drawn, mut ys) = (String::new(), vec![y]);
    for row in rows {
        let count = |cell: &str| cell.split('|').count() as f32;
        let most = row.iter().map(|cell| count(cell)).fold(1.0, f32::max);
        for (cell, x) in row.iter().zip(edges) {
            let top = y - PADDING - share * LEADING * (most - count(cell));
            for (at, text) in cell.split('|').enumerate() {
                let baseline = top - 9.0 - LEADING * at as f32;
                drawn += &line("F1", 10, x + PADDING, baseline, text);
            }
        }
        y -= most * LEADING + 2.0 * PADDING;
        ys.push(y);
    }
    (drawn, ys)
}

fn level(from: f32, to: f32, y: f32) -> String {
    format!("{from} {y} m {to} {y} l S\n")
}

fn upright(x: f32, from: f32, to: f32) -> String {
    format!("{x} {from} m {x} {to} l S\n")
}

/// Strokes along all edges.
fn full(xs: &[f32], ys: &[f32]) -> String {
    let levels = ys.iter().map(|y| level(xs[0], xs[xs.len() - 1], *y));
    levels.chain(xs.iter().map(|x| upright(*x, ys[0], ys[ys.len() - 1]))).collect()
}

/// Thin filled rectangles around each cell, as browsers draw them.
fn filled(xs: &[f32], ys: &[f32]) -> String {
    let mut drawn = String::new();
    for (x, y) in xs.windows(2).flat_map(|x| ys.windows(2).map(move |y| (x, y))) {
        let (left, width, top, height) = (x[0], x[1] - x[0], y[0], y[0] - y[1]);
        drawn += &format!("{left} {} {width} 0.75 re {left} {top} {width} -0.75 re f\n", y[1]);
        drawn += &format!("{left} {top} 0.75 -{height} re {} {top} -0.75 -{height} re f\n", x[1]);
    }
    drawn
}

#[test]
fn rules_separate_rows_of_cells_with_several_lines() {
    for share in [0.0, 0.5, 1.0] {
        let (text, ys) = table(EDGES, FAULTS, share);
        for rules in [full(EDGES, &ys), filled(EDGES, &ys)] {
            let around = line("F1", 10, 72.0, 740.0, "Before the table.")
                + &line("F1", 10, 72.0, ys[ys.len() - 1] - 30.0, "After the table.");
            let extracted = read(&page(&(rules + &text + &around))).unwrap();
            let expected = format!("Before the table.\n\n{FAULTS_READ}\n\nAfter the table.");
            assert_eq!(extracted.text, expected, "{share}");
            let kinds: Vec<_> = extracted.blocks.iter().map(|block| block.kind).collect();
            assert_eq!(kinds, [BlockKind::Paragraph, BlockKind::Table, BlockKind::Paragraph]);
            assert!((place(&extracted, "disturbed").1.x - 126.0).abs() < 1.0);
        }
        // Without vertical rules, too.
        let rules: String = ys.iter().map(|y| level(72.0, 562.0, *y)).collect();
        assert_eq!(text_of(&page(&(rules + &text))), FAULTS_READ, "{share}");
    }
}

#[test]
fn a_ruled_table_is_read_upwards_as_well() {
    let (text, ys) = table(EDGES, FAULTS, 0.5);
    let drawn = format!("q 0 1 -1 0 800 0 cm {} {text} Q", full(EDGES, &ys));
    assert_eq!(text_of(&page(&drawn)), FAULTS_READ);
}

#[test]
fn rules_between_groups_of_rows_do_not_join_them() {
    let rows: &[&[&str]] = &[
        &["Region", "Country", "People"],
        &["Europe", "Germany|France|Italy", "83|67|60"],
        &["Asia", "Japan|Nepal|Laos", "125|30|7"],
    ];
    let edges = [72.0, 172.0, 272.0, 372.0];
    let (text, ys) = table(&edges, rows, 0.0);
    let plain = text_of(&page(&text));
    assert!(plain.contains("|  | France | 67 |"), "{plain}");
    assert_eq!(text_of(&page(&(full(&edges, &ys) + &text))), plain);
    let rules: String = ys.iter().map(|y| level(72.0, 372.0, *y)).collect();
    assert_eq!(text_of(&page(&(rules + &text))), plain);
    // There are no numbers, and the name of the group may stand in the middle.
    let rows: &[&[&str]] = &[
        &["Region", "Country", "City", "River"],
        &["Europe", "Germany|France", "Berlin|Paris", "Spree|Seine"],
        &["Asia", "Japan|Laos", "Tokyo|Vientiane", "Sumida|Mekong"],
    ];
    let edges = [72.0, 132.0, 192.0, 252.0, 312.0];
    for share in [0.0, 0.5] {
        let (text, ys) = table(&edges, rows, share);
        let plain = text_of(&page(&text));
        assert_eq!(text_of(&page(&(full(&edges, &ys) + &text))), plain);
    }
}

#[test]
fn a_header_above_the_first_rule_stays_with_its_table() {
    let rows: &[&[&str]] = &[
        &["What", "When", "Where"],
        &["Cold dip group", "Sundays 9.00", "steps at the south|end"],
        &["Floodlit swim", "27 June", "whole pool"],
        &["Toddler paddling", "daily", "fountain pool"],
        &["Kiosk", "11.00 to 18.30", "by the gate"],
    ];
    let expected = "| What | When | Where |\n| --- | --- | --- |\n\
         | Cold dip group | Sundays 9.00 | steps at the south end |\n\
         | Floodlit swim | 27 June | whole pool |\n\
         | Toddler paddling | daily | fountain pool |\n\
         | Kiosk | 11.00 to 18.30 | by the gate |";
    let edges = [72.0, 192.0, 312.0, 432.0];
    // Neither is there a rule below the last row.
    let (text, ys) = table(&edges, rows, 1.0);
    let rules: String = ys[1..5].iter().map(|y| level(72.0, 432.0, *y)).collect();
    assert_eq!(text_of(&page(&(rules.clone() + &text))), expected);
    // The text around the table is as near as another row would be.
    let around = line("F2", 14, 76.0, 724.0, "Programme")
        + &line("F1", 10, 76.0, 596.0, "Subject to change.");
    assert_eq!(
        text_of(&page(&(rules + &text + &around))),
        format!("# Programme\n\n{expected}\n\nSubject to change.")
    );
    let (text, ys) = table(&edges, rows, 0.0);
    assert_eq!(text_of(&page(&(full(&edges, &ys[1..]) + &text))), expected);
}

/// A table of three columns, two of which have a name in common above their own.
fn under_two_names() -> String {
    let cells = [
        (76.0, 696.0, "Country"),
        (176.0, 706.0, "Numbers"),
        (176.0, 686.0, "People"),
        (276.0, 686.0, "Area"),
        (76.0, 666.0, "Germany"),
        (176.0, 666.0, "83"),
        (276.0, 666.0, "357"),
        (76.0, 646.0, "France"),
        (176.0, 646.0, "67"),
        (276.0, 646.0, "643"),
    ];
    cells.iter().map(|(x, y, text)| line("F1", 10, *x, *y, text)).collect()
}

#[test]
fn a_header_of_two_rows_is_one() {
    let xs = [72.0, 172.0, 272.0, 372.0];
    let text = under_two_names();
    let mut rules: String = [720.0, 680.0, 660.0, 640.0].map(|y| level(72.0, 372.0, y)).concat();
    rules += &level(172.0, 372.0, 700.0);
    rules += &[xs[0], xs[1], xs[3]].map(|x| upright(x, 720.0, 640.0)).concat();
    rules += &upright(xs[2], 700.0, 640.0);
    assert_eq!(
        text_of(&page(&(rules + &text))),
        "| Country | Numbers People | Area |\n| --- | --- | --- |\n\
         | Germany | 83 | 357 |\n| France | 67 | 643 |"
    );
}

#[test]
fn a_column_without_rules_between_its_rows_is_not_one_cell() {
    let rows: &[&[&str]] = &[
        &["Country", "People", "Area"],
        &["Germany", "83", "357"],
        &["France", "67", "643"],
        &["Italy", "59", "302"],
    ];
    let edges = [72.0, 172.0, 272.0, 372.0];
    let (text, ys) = table(&edges, rows, 0.0);
    let plain = text_of(&page(&text));
    assert!(plain.contains("|\n| France | 67 | 643 |\n|"), "{plain}");
    let box_around = [ys[0], ys[4]].map(|y| level(72.0, 372.0, y)).concat()
        + &edges.map(|x| upright(x, ys[0], ys[4])).concat();
    let rules: String = ys[1..4].iter().map(|y| level(172.0, 372.0, *y)).collect();
    assert_eq!(text_of(&page(&(rules + &box_around + &text))), plain);
    // The rule below the names of the columns is whole.
    let rules = level(72.0, 372.0, ys[1])
        + &ys[2..4].iter().map(|y| level(172.0, 372.0, *y)).collect::<String>();
    assert_eq!(text_of(&page(&(rules + &box_around + &text))), plain);
    // A name stands above those of two columns.
    let text = under_two_names();
    let mut rules: String = [720.0, 640.0].map(|y| level(72.0, 372.0, y)).concat();
    rules += &[700.0, 680.0, 660.0].map(|y| level(172.0, 372.0, y)).concat();
    rules += &[72.0, 172.0, 372.0].map(|x| upright(x, 720.0, 640.0)).concat();
    rules += &upright(272.0, 700.0, 640.0);
    let read = text_of(&page(&(rules + &text)));
    assert!(read.contains("| Germany | 83 | 357 |\n| France | 67 | 643 |"), "{read}");
}

#[test]
fn a_cell_across_rows_or_columns_is_one() {
    let xs = [72.0, 172.0, 272.0, 372.0];
    let ys = [720.0, 700.0, 680.0, 660.0, 640.0];
    let cells = [
        (76.0, 706.0, "Report of the year"),
        (76.0, 686.0, "Region"),
        (176.0, 686.0, "Country"),
        (276.0, 686.0, "People"),
        (76.0, 656.0, "Europe"),
        (176.0, 666.0, "Germany"),
        (276.0, 666.0, "83"),
        (176.0, 646.0, "France"),
        (276.0, 646.0, "67"),
    ];
    let text: String = cells.iter().map(|(x, y, text)| line("F1", 10, *x, *y, text)).collect();
    let mut rules: String = [720.0, 700.0, 680.0, 640.0].map(|y| level(72.0, 372.0, y)).concat();
    rules += &level(172.0, 372.0, ys[3]);
    rules += &[72.0, 372.0].map(|x| upright(x, 720.0, 640.0)).concat();
    rules += &[xs[1], xs[2]].map(|x| upright(x, 700.0, 640.0)).concat();
    assert_eq!(
        text_of(&page(&(rules + &text))),
        "Report of the year\n\n| Region | Country | People |\n| --- | --- | --- |\n\
         | Europe | Germany | 83 |\n|  | France | 67 |"
    );
}

#[test]
fn a_vertical_rule_separates_cells_without_a_gap() {
    let rows: &[&[&str]] = &[
        &["Code", "Name", "Count"],
        &["A1", "a bolt of the longer kind", "12"],
        &["A2", "a nut", "13"],
    ];
    let edges = [72.0, 102.0, 218.0, 260.0];
    let (text, ys) = table(&edges, rows, 0.0);
    assert_eq!(
        text_of(&page(&(full(&edges, &ys) + &text))),
        "| Code | Name | Count |\n| --- | --- | --- |\n\
         | A1 | a bolt of the longer kind | 12 |\n| A2 | a nut | 13 |"
    );
}

#[test]
fn rules_below_headings_form_no_table() {
    let sections = [
        ("EXPERIENCE", "Engineer, Acme", "2019 - 2024", "Built the billing service."),
        ("EDUCATION", "Degree in physics", "2014", "Thesis on the tides."),
        ("PRIZES", "First prize, Rome", "2012", "For a bridge of paper."),
        ("LANGUAGES", "German", "fluent", "Read and written as well."),
    ];
    for (font, size, distance) in [("F2", 12, 40.0), ("F2", 10, 24.0), ("F1", 10, 32.0)] {
        let (mut y, mut text, mut rules) = (740.0, String::new(), String::new());
        for (heading, what, when, more) in sections {
            text += &line(font, size, 72.0, y, heading);
            rules += &level(72.0, 540.0, y - 5.0);
            text += &line("F1", 10, 72.0, y - 20.0, what);
            text += &line("F1", 10, 470.0, y - 20.0, when);
            text += &line("F1", 10, 72.0, y - 32.0, more);
            y -= 32.0 + distance;
        }
        let plain = text_of(&page(&text));
        assert!(plain.contains("EDUCATION\n\n") && !plain.contains('|'), "{plain}");
        assert_eq!(text_of(&page(&(rules.clone() + &text))), plain, "{font} {size}");
        // A box around the page joins them.
        rules += &[72.0, 540.0].map(|x| upright(x, 770.0, y)).concat();
        rules += &[770.0, y].map(|y| level(72.0, 540.0, y)).concat();
        assert_eq!(text_of(&page(&(rules + &text))), plain, "{font} {size} in a box");
    }
}

#[test]
fn the_text_inside_a_box_around_a_page_is_no_cell() {
    let cells = [
        (64.0, 746.0, "Document"),
        (224.0, 746.0, "Title"),
        (404.0, 746.0, "Page"),
        (64.0, 726.0, "4711"),
        (224.0, 726.0, "Maintenance"),
        (404.0, 726.0, "1"),
        (64.0, 66.0, "Author"),
        (224.0, 66.0, "Checked"),
        (404.0, 66.0, "Released"),
    ];
    let text: String = cells.iter().map(|(x, y, text)| line("F1", 10, *x, *y, text)).collect();
    let body = line("F2", 14, 72.0, 690.0, "Cleaning")
        + &lines(72.0, 660.0, &["Take off the lid before you clean the tank."; 8]);
    let levels = [760.0, 740.0, 720.0, 80.0, 60.0].map(|y| level(60.0, 560.0, y));
    let mut rules = levels.concat() + &[60.0, 560.0].map(|x| upright(x, 760.0, 60.0)).concat();
    for (from, to) in [(760.0, 720.0), (80.0, 60.0)] {
        rules += &[220.0, 400.0].map(|x| upright(x, from, to)).concat();
    }
    let text = text_of(&page(&(rules + &text + &body)));
    let expected = "| Document | Title | Page |\n| --- | --- | --- |\n\
         | 4711 | Maintenance | 1 |\n\n# Cleaning\n\nTake off";
    assert!(text.starts_with(expected) && text.contains("\n\nAuthor"), "{text}");
}

/// Goal: a bold name and the line below it, across all columns, do not cut off the rows after them
/// from the names of the columns.
#[test]
fn the_name_of_a_part_divides_no_table() {
    let row = |y: f32, cells: [&str; 3]| -> String {
        let xs = [76.0, 176.0, 276.0];
        xs.iter().zip(cells).map(|(x, text)| line("F1", 10, *x, y, text)).collect()
    };
    let text = row(706.0, ["Part", "Price", "Stock"])
        + &row(686.0, ["Bolt", "2", "50"])
        + &row(666.0, ["Nut", "1", "70"])
        + &line("F2", 10, 76.0, 648.0, "Spare parts")
        + &line("F1", 10, 76.0, 636.0, "only to order")
        + &row(614.0, ["Blade", "30", "4"])
        + &row(594.0, ["Belt", "12", "9"]);
    let levels = [720.0, 700.0, 680.0, 660.0, 628.0, 608.0, 588.0];
    let mut rules: String = levels.map(|y| level(72.0, 372.0, y)).concat();
    rules += &[72.0, 372.0].map(|x| upright(x, 720.0, 588.0)).concat();
    for (from, to) in [(720.0, 660.0), (628.0, 588.0)] {
        rules += &[172.0, 272.0].map(|x| upright(x, from, to)).concat();
    }
    assert_eq!(
        text_of(&page(&(rules + &text))),
        "| Part | Price | Stock |\n| --- | --- | --- |\n| Bolt | 2 | 50 |\n| Nut | 1 | 70 |\n\
         | Spare parts only to order |  |  |\n| Blade | 30 | 4 |\n| Belt | 12 | 9 |"
    );
}

#[test]
fn words_divided_in_cells_become_whole() {
    let rows: &[&[&str]] = &[
        &["Word", "Meaning", "Since"],
        &["Warranty", "two years of repla-|cement", "2020"],
        &["Deposit", "ten percent, a well-|known share", "2021"],
        &["Share", "a well-known sum", "2022"],
    ];
    let expected = "| Word | Meaning | Since |\n| --- | --- | --- |\n\
         | Warranty | two years of replacement | 2020 |\n\
         | Deposit | ten percent, a well-known share | 2021 |\n\
         | Share | a well-known sum | 2022 |";
    let edges = [72.0, 172.0, 292.0, 372.0];
    let (text, ys) = table(&edges, rows, 0.0);
    assert_eq!(text_of(&page(&(full(&edges, &ys) + &text))), expected);
    assert_eq!(text_of(&page(&text)), expected, "without rules");
}

#[test]
fn a_drawing_has_no_rules() {
    let (text, ys) = table(EDGES, FAULTS, 1.0);
    let plain = text_of(&page(&text));
    assert_ne!(plain, FAULTS_READ);
    // Graph paper, and more edges than any table has.
    let squares: String = (0..300).map(|at| level(72.0, 562.0, 10.0 + 2.0 * at as f32)).collect();
    let squares = squares + &full(EDGES, &ys);
    assert_eq!(text_of(&page(&(squares + &text))), plain);
    let edges = "10 10 m 20 10 l S\n".repeat(100_000) + &full(EDGES, &ys);
    assert_eq!(text_of(&page(&(edges + &text))), plain);
    // Thick bars, curves and paths that are only clipped are none either.
    let thick = format!("20 w {} 1 w\n", full(EDGES, &ys));
    let clipped = full(EDGES, &ys).replace("S\n", "W n\n");
    for drawn in [thick, clipped] {
        assert_eq!(text_of(&page(&(drawn + &text))), plain);
    }
}
