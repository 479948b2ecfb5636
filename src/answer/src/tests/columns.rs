//! Names and words of a question that occur in several columns of a table.

use super::*;

/// A record for each row, as a file of comma-separated values is read.
fn records(names: &str, rows: &[&str]) -> String {
    let record = |row: &&str| {
        let pairs = names.split(',').zip(row.split(',')).filter(|(_, value)| !value.is_empty());
        pairs.map(|(name, value)| format!("{name}: {value}\n")).collect::<String>()
    };
    rows.iter().map(record).collect::<Vec<_>>().join("\n")
}

fn table(names: &str, rows: &[&str]) -> String {
    let line = |row: &str| format!("| {} |\n", row.replace(',', " | "));
    let rule = line(&names.split(',').map(|_| "---").collect::<Vec<_>>().join(","));
    format!("{}{rule}{}", line(names), rows.iter().map(|row| line(row)).collect::<String>())
}

const LESSONS: &str = "Code,Lesson,Price,Tax,Note";
const OF_LESSONS: [&str; 7] = [
    "L-01,Cello lesson beginners,£30.00,20 %,",
    "L-02,Cello lesson advanced,£45.00,20 %,Bring your own bow",
    "L-03,Cello lesson in a pair with a friend,£24.00,20 %,",
    "V-01,Viola lesson,£28.00,20 %,",
    "H-01,Hire of a music stand,£2.00,20 %,Free for a cello lesson",
    "H-02,Hire of a metronome,£3.00,20 %,Not with the drum kit",
    "D-01,Drum lesson,£26.00,20 %,Not on Sundays",
];

/// A note that mentions the things asked for does not make its row one of them.
#[test]
fn rows_are_taken_by_their_names_rather_than_by_a_note() {
    for list in [records(LESSONS, &OF_LESSONS), table(LESSONS, &OF_LESSONS)] {
        let told = |question: &str| told(question, &[("prices.csv", &list)]);
        let answer = told("What is the cheapest cello lesson?");
        assert!(answer.contains("L-03") && !answer.contains("H-01"), "{answer}");
        let answer = told("What is the average price of a cello lesson?");
        assert!(answer.starts_with("Average of Price: £33.00 (3 rows)."), "{answer}");
        let answer = told("Which is the most expensive cello lesson?");
        assert!(answer.contains("L-02"), "{answer}");
    }
}

/// A word that rows hold in an enumeration counts like one in their names.
#[test]
fn an_enumeration_is_no_note() {
    let rooms = table(
        "Room,Seats,Equipment",
        &[
            "Beech,20,projector; screen", "Projector room west wing,30,", "Oak,12,screen",
            "Elm,16,projector; flip chart", "Ash,8,",
        ],
    );
    let answer = told("How many rooms have a projector?", &[("rooms.md", &rooms)]);
    assert!(answer.starts_with("3 of 5:"), "{answer}");
}

const FERRY: &str = "Date,Skipper,Deckhand,Reserve";
const OF_FERRY: [&str; 8] = [
    "2027-05-03,Ines Falk,Tom Reed,Pia Lund",
    "2027-05-04,Ines Falk,Pia Lund,Tom Reed",
    "2027-05-05,Tom Reed,Ines Falk,Pia Lund",
    "2027-05-06,Pia Lund,Ines Falk,Olaf Berg",
    "2027-05-07,Ines Falk,Tom Reed,Pia Lund",
    "2027-05-08,Tom Reed,Pia Lund,Ines Falk",
    "2027-05-09,Pia Lund,Tom Reed,Ines Falk",
    "2027-05-10,Tom Reed,Pia Lund,Olaf Berg",
];

/// The column that the question names holds the name that it names.
#[test]
fn a_name_is_counted_in_the_column_that_is_named() {
    for list in [records(FERRY, &OF_FERRY), table(FERRY, &OF_FERRY)] {
        let told = |question: &str| told(question, &[("ferry.csv", &list)]);
        for (question, start) in [
            ("How many skipper days does Ines Falk have?", "3 of 8:"),
            ("How many deckhand days does Ines Falk have?", "2 of 8:"),
            ("How many deckhand days does Tom Reed have?", "3 of 8:"),
            ("How many skipper days does Tom have?", "3 of 8:"),
            ("How many reserve days does Pia Lund have?", "3 of 8:"),
        ] {
            let answer = told(question);
            assert!(answer.starts_with(start), "{question}: {answer}");
        }
        let answer = told("How many skipper days does Olaf Berg have?");
        assert_eq!(answer, ABSTENTION, "only ever in reserve");
        let answer = told("On which days is Tom Reed the deckhand?");
        let days = ["05-03", "05-04", "05-05", "05-06", "05-07", "05-08", "05-09", "05-10"];
        let found: Vec<&str> = days.into_iter().filter(|day| answer.contains(day)).collect();
        assert_eq!(found, ["05-03", "05-07", "05-09"], "{answer}");
    }
    let rounds = table("Date,Morning round,Evening round,Backup", &OF_FERRY);
    for (question, start) in [
        ("How many evening rounds does Tom Reed have?", "3 of 8:"),
        ("How many morning rounds does Pia Lund have?", "2 of 8:"),
    ] {
        let answer = told(question, &[("rounds.md", &rounds)]);
        assert!(answer.starts_with(start), "{question}: {answer}");
    }
    let six = table(FERRY, &OF_FERRY[..6]);
    let answer = told("How many skipper days does Ines Falk have?", &[("ferry.md", &six)]);
    assert!(answer.starts_with("3 of 6:"), "{answer}");
}

/// A column that is asked for does not bind the name of the row.
#[test]
fn the_row_of_a_name_is_told_whatever_column_is_asked_for() {
    let staff = table(
        "No,Name,Deputy,Room",
        &["1,Ada Holm,Bo Tarn,12", "2,Bo Tarn,Cy Marsh,14", "3,Cy Marsh,Ada Holm,9"],
    );
    let texts = table(
        "Text,Author,Reviewer",
        &["Bylaws,Ada Holm,Bo Tarn", "Rules,Bo Tarn,Ada Holm", "Guide,Cy Marsh,Bo Tarn"],
    );
    for (question, list, expected) in [
        ("Who is the deputy of Bo Tarn?", &staff, "Deputy: Cy Marsh"),
        ("What is the room of Bo Tarn?", &staff, "Room: 14"),
        ("Who is the reviewer of the Rules?", &texts, "Reviewer: Ada Holm"),
    ] {
        let answer = told(question, &[("list.md", list)]);
        assert!(answer.contains(expected), "{question}: {answer}");
    }
    let answer = told("How many texts is Bo Tarn the reviewer of?", &[("list.md", &texts)]);
    assert!(answer.starts_with("2 of 3:") && !answer.contains("Rules"), "{answer}");
}

/// The answer of a table to a question that is asked on 4 May 2027, a Tuesday.
fn asked_on_tuesday(question: &str, list: &str) -> String {
    let clock = ManualClock::new(Timestamp(1_809_432_000_000));
    let answerer = Answerer::new(Arc::new(HashEmbedder)).with_clock(Arc::new(clock));
    let chunks = titled(&[("ferry.md", list)]);
    let context = RequestContext::default();
    answerer.answer(&context, question, &chunks, &[], SourceOrder::ByUse).unwrap().text
}

#[test]
fn a_table_by_days_is_asked_for_the_day_that_tomorrow_is() {
    let ferry = table(FERRY, &OF_FERRY);
    let told = |question: &str| asked_on_tuesday(question, &ferry);
    assert!(told("Who is the skipper tomorrow?").starts_with("Date: 2027-05-05; Skipper: Tom"));
    assert!(told("Who is the skipper today?").starts_with("Date: 2027-05-04; Skipper: Ines"));
    let answer = told("Who is the skipper next Monday?");
    assert!(answer.starts_with("Date: 2027-05-10;") && !answer.contains("05-03"), "{answer}");
    assert_eq!(told("Who was the skipper last Friday?"), ABSTENTION, "no row is of that day");
    let answer = told("Who is the skipper on 7 May?");
    assert!(answer.starts_with("Date: 2027-05-07;"), "{answer}");
    let week = table("Day,Soup", &["Monday,Leek", "Tuesday,Carrot", "Wednesday,Onion"]);
    let answer = asked_on_tuesday("Which soup is there tomorrow?", &week);
    assert!(answer.contains("Onion") && !answer.contains("Leek"), "{answer}");
    let staff =
        table("Name,Role,Since", &["Ada Holm,porter,2019-03-01", "Bo Tarn,cook,2021-05-09"]);
    let answer = asked_on_tuesday("Who is the porter today?", &staff);
    assert!(answer.contains("Ada Holm"), "its dates are not its rows': {answer}");
}

/// A column whose name holds a comma is a value of its row like any other.
#[test]
fn a_name_with_a_comma_is_the_name_of_a_column() {
    let record = |cabin: &str, summer: u32, winter: u32| {
        format!(
            "Cabin: {cabin}\nBeds: 4\nRent a night, summer: {summer}\n\
             Rent a night, winter: {winter}\nStove: yes\n"
        )
    };
    let list = [record("Heron", 84, 51), record("Teal", 120, 75), record("Wigeon", 66, 40)];
    let list = list.join("\n");
    let question = "What is the rent of Teal a night in summer?";
    let answer = told(question, &[("cabins.csv", &list)]);
    assert!(answer.starts_with("Cabin: Teal; Beds: 4; Rent a night, summer: 120;"), "{answer}");
    assert!(!answer.contains("84") && !answer.contains("66"), "{answer}");
}

/// Goal: a number written as a word finds the row whose range holds it, a day of the month the row
/// with its date.
#[test]
fn numbers_in_words_and_days_of_the_month_choose_rows() {
    let notice = table(
        "Group,Years,Clerk,Driver",
        &[
            "1,trial,one day,two days", "2,1-4,20 days,25 days", "3,5-11,40 days,50 days",
            "4,12-19,60 days,70 days", "5,20 and more,80 days,90 days",
        ],
    );
    let notice = format!("# Periods of notice\n\n{notice}");
    let answer = told(
        "I've been a driver here for seven years. What is my period of notice?",
        &[("notice.md", &notice)],
    );
    assert!(answer.contains("50 days") && !answer.contains("25 days"), "{answer}");
    let tours = records(
        "date,tour,guide,helpers,first aid",
        &[
            "2026-05-02,Mill walk,Ada Brook,2,Ines Holm",
            "2026-05-09,Harbour walk,Ben Lowe,3,Olaf Reed",
            "2026-05-16,Mill walk,Ada Brook,2,Ines Holm",
            "2026-05-23,Tower walk,Cleo Hart,4,Olaf Reed",
        ],
    );
    let asked = "I'm helping at the tower walk on the 23rd, who does first aid that day?";
    let answer = told(asked, &[("tours.csv", &tours)]);
    assert!(answer.contains("Olaf Reed") && !answer.contains("Ben Lowe"), "{answer}");
}

/// Goal: a column that says when its things were counted is still the number of them.
#[test]
fn a_dated_column_counts_its_things() {
    let table = "# Rowing club: fees\n\n\
        | Category | 2025 | Members on 30 Sep 2025 |\n|---|---|---|\n\
        | Adult | 45 | 241 |\n| Couple | 68 | 86 |\n";
    let answer = told("How many couples are members of the rowing club?", &[("fees.md", table)]);
    assert!(answer.contains("Members on 30 Sep 2025: 86"), "{answer}");
}
