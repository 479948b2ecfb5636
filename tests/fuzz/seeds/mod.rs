//! Small documents of every format, and the shared documents if they are next to the checkout.
//!
//! - `text`: text formats; `packed`: ZIP-based formats; `mail`: messages
//! - `drawn`: PDF pages

mod drawn;
mod mail;
mod packed;
mod text;

use std::io::{Cursor, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::runner::INPUT_BYTES_MAX;

/// The documents built here with this extension.
pub fn made(extension: &str) -> Vec<Vec<u8>> {
    match extension {
        "docx" => packed::word(),
        "pptx" => packed::slides(),
        "xlsx" => packed::workbooks(),
        "odt" => packed::open_texts(),
        "ods" => packed::open_sheets(),
        "odp" => packed::open_slides(),
        "epub" => packed::books(),
        "eml" => mail::letters(),
        "msg" => mail::outlook(),
        "pdf" => drawn::pages(),
        _ => text::of(extension),
    }
}

/// The documents built here, and the shared ones that are small enough.
pub fn of(extension: &str) -> Vec<Vec<u8>> {
    let mut seeds = made(extension);
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/documents/files");
    let Ok(entries) = std::fs::read_dir(&shared) else {
        println!("no shared documents for {extension} (no {})", shared.display());
        return seeds;
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|own| own == extension)) {
        let bytes = std::fs::read(path).expect("a shared document");
        if bytes.len() <= INPUT_BYTES_MAX {
            seeds.push(bytes);
        } else if matches!(extension, "html" | "md" | "nxml" | "csv" | "rtf" | "eml") {
            // The beginning of a text is a text.
            seeds.push(bytes[..INPUT_BYTES_MAX / 2].to_vec());
        }
    }
    seeds
}

fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, content) in parts {
        writer.start_file(*name, options).expect("a name of its own");
        writer.write_all(content.as_bytes()).expect("memory");
    }
    writer.finish().expect("memory").into_inner()
}
