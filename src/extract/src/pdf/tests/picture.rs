//! Goal: a page is rendered as displayed, text lies inside the areas reported for its lines, and no
//! page exceeds its limits.

use super::*;
use crate::picture::PIXELS_MAX;
use crate::{Drawing, Format, draw};

/// A decoded image, greyscale or colour.
struct Decoded {
    width: usize,
    height: usize,
    channels: usize,
    data: Vec<u8>,
}

impl Decoded {
    fn of(picture: &[u8]) -> Self {
        let mut reader = png::Decoder::new(std::io::Cursor::new(picture)).read_info().unwrap();
        let mut data = vec![0; reader.output_buffer_size().unwrap()];
        let told = reader.next_frame(&mut data).unwrap();
        let (width, height) = (told.width as usize, told.height as usize);
        Self { width, height, channels: data.len() / (width * height), data }
    }

    fn pixel(&self, x: usize, y: usize) -> &[u8] {
        let at = (y * self.width + x) * self.channels;
        &self.data[at..at + self.channels]
    }

    /// The number of pixels matching `is_counted`, inside and outside an area given in pixels.
    fn count(&self, area: PageArea, is_counted: impl Fn(&[u8]) -> bool) -> (usize, usize) {
        let is_inside = |x: usize, y: usize| {
            let (x, y) = (x as f32 + 0.5, y as f32 + 0.5);
            (area.x..area.x + area.width).contains(&x)
                && (area.y..area.y + area.height).contains(&y)
        };
        let (mut inside, mut outside) = (0, 0);
        for y in 0..self.height {
            for x in (0..self.width).filter(|x| is_counted(self.pixel(*x, y))) {
                *if is_inside(x, y) { &mut inside } else { &mut outside } += 1;
            }
        }
        (inside, outside)
    }
}

fn is_dark(pixel: &[u8]) -> bool {
    pixel.iter().all(|channel| *channel < 128)
}

/// An area scaled to a picture, a pixel wider on each side.
fn scaled(area: PageArea, scale: f32) -> PageArea {
    let PageArea { x, y, width, height } = area;
    PageArea {
        x: x * scale - 1.0,
        y: y * scale - 1.0,
        width: width * scale + 2.0,
        height: height * scale + 2.0,
    }
}

fn drawing(page: u32, width: u16) -> Drawing {
    Drawing { page, width, marks: Vec::new() }
}

/// Rendered in this process; a page with endless recursion would need its own.
fn drawn(bytes: &[u8], drawing: &Drawing) -> Result<crate::PagePicture, ExtractError> {
    draw(Format::Pdf, bytes, drawing)
}

#[test]
fn text_is_drawn_where_its_lines_are_said_to_be() {
    let boxes = [
        "",
        "/CropBox [100 200 500 700]",
        "/MediaBox [-300 -400 312 392]",
        "/MediaBox [-300 -400 312 392] /CropBox [-200 -300 200 300]",
    ];
    for entries in boxes {
        for rotate in [0, 90, 180, 270] {
            let (x, y) = if entries.contains("Media") { (-100.0, -50.0) } else { (200.0, 450.0) };
            let content = line("F2", 18, x, y, "A sentence of bold letters");
            let entries = format!("{entries} /Rotate {rotate}");
            let bytes = pages(&[(&entries, stream("", content.as_bytes()))]);
            let (_, area) = place(&read(&bytes).unwrap(), "A sentence of bold letters");
            let picture = drawn(&bytes, &drawing(1, 1000)).unwrap();
            let scale = 1000.0 / picture.size.0;
            let decoded = Decoded::of(&picture.png);
            assert_eq!((decoded.width, decoded.channels), (1000, 1), "black on white is grey");
            let height = (picture.size.1 * scale).round() as usize;
            assert_eq!((decoded.height, picture.pages), (height, 1));
            let (inside, outside) = decoded.count(scaled(area, scale), is_dark);
            assert!(inside > 500 && outside == 0, "{entries}: {inside} inside, {outside} outside");
        }
    }
}

#[test]
fn marks_lie_behind_the_text() {
    let bytes = page(&line("F2", 18, 100.0, 500.0, "Marked"));
    let (_, area) = place(&read(&bytes).unwrap(), "Marked");
    let beyond = PageArea { x: 600.0, y: -50.0, width: 1.0e30, height: 60.0 };
    let marked = Drawing { marks: vec![area, beyond], ..drawing(1, 612) };
    let decoded = Decoded::of(&drawn(&bytes, &marked).unwrap().png);
    let is_yellow = |pixel: &[u8]| pixel[0] > 200 && pixel[2] < 180;
    let around = PageArea { x: area.x - 1.0, y: area.y - 1.0, ..area };
    let around = PageArea { width: area.width + 2.0, height: area.height + 2.0, ..around };
    let (yellow, _) = decoded.count(around, is_yellow);
    let (dark, elsewhere) = decoded.count(around, is_dark);
    assert!(yellow > 500 && dark > 100 && elsewhere == 0, "{yellow} yellow, {dark} dark");
    assert!(is_yellow(decoded.pixel(605, 2)), "a mark beyond the edge is cut there");
}

#[test]
fn pictures_are_bounded() {
    let refused = |entries: &str, drawing: Drawing| {
        let bytes = pages(&[(entries, stream("", b""))]);
        drawn(&bytes, &drawing).map_err(|error| error.to_string())
    };
    for page in [0, 2, u32::MAX] {
        let error = refused("", drawing(page, 64)).unwrap_err();
        assert_eq!(error, format!("page {page} does not exist: the document has 1"));
    }
    let long = "/MediaBox [0 0 1 999999]";
    let error = refused(long, drawing(1, 64)).unwrap_err();
    assert!(error.contains(&PIXELS_MAX.to_string()), "{error}");
    for entries in
        ["/MediaBox [0 0 999999 1]", "/MediaBox [0 0 0 0]", "/MediaBox [0 0 9999999 9999999]"]
    {
        let picture = refused(entries, drawing(1, 2048)).unwrap();
        assert_eq!(Decoded::of(&picture.png).width, 2048, "{entries}");
    }
    let told = draw(Format::Docx, b"", &drawing(1, 64)).unwrap_err();
    assert_eq!(told, ExtractError::NoPages { format: "docx" });
    assert!(drawn(b"%PDF-1.7 of nothing", &drawing(1, 64)).is_err());
}

/// Goal: the first page of every document is rendered and not blank, or there is a reason.
#[test]
fn real_documents_are_drawn() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(files) = std::fs::read_dir(root.join("../../../shared/data/documents/files")) else {
        println!("SKIPPED: shared/data/documents is not beside the repository");
        return;
    };
    let (mut drawn_files, mut others) = (0, Vec::new());
    for path in files.map(|file| file.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "pdf") {
            continue;
        }
        let outcome = drawn(&std::fs::read(&path).unwrap(), &drawing(1, 800));
        let dark = outcome
            .as_ref()
            .map(|picture| Decoded::of(&picture.png).count(PageArea::default(), is_dark).1);
        match dark {
            Ok(dark) if dark > 500 => drawn_files += 1,
            _ => others.push((path.file_stem().unwrap().to_str().unwrap().to_owned(), outcome)),
        }
    }
    others.sort_by(|one, other| one.0.cmp(&other.0));
    let [(locked, Err(ExtractError::Encrypted { .. })), (fuzzed, Ok(blank))] = &others[..] else {
        panic!("{others:?}")
    };
    assert_eq!((drawn_files, locked.as_str()), (6, "password"));
    // Its first page uses a broken font for text.
    assert_eq!((fuzzed.as_str(), blank.size), ("poppler-395-0-fuzzed", (612.0, 792.0)));
}
