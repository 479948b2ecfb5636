//! The console: a page for people, embedded in the program as files that a browser runs as they
//! are. No build step, nothing from elsewhere.
//!
//! ```text
//! assets/index.html -> app.js -> one module a page -> api.js -> the operations of the server
//! ```
//! `files` is the table: a name is the path below `console/`, but for `index.html`, which is the
//! page itself. Every address in them is relative, so that they work below any path prefix.
#![forbid(unsafe_code)]

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// Policy for every file: own scripts and styles only, none inline; requests to this server only.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const PDF: &str = "application/pdf";

/// Bytes of the tag of a version: 128 bits of SHA-256.
const TAG_BYTES: usize = 16;

/// A file of the console.
#[derive(Debug)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
    /// Tag of its content for `ETag`, with the quotes.
    pub tag: String,
}

macro_rules! files {
    ($($name:literal $media_type:expr,)*) => {
        [$(($name, $media_type, include_bytes!(concat!("../assets/", $name)).as_slice()),)*]
    };
}

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let files = files![
        "index.html" HTML,
        "app.css" CSS,
        "icon.svg" SVG,
        "app.js" SCRIPT,
        "answer.js" SCRIPT,
        "api.js" SCRIPT,
        "ask.js" SCRIPT,
        "dom.js" SCRIPT,
        "drawing.js" SCRIPT,
        "graph.js" SCRIPT,
        "jobs.js" SCRIPT,
        "keys.js" SCRIPT,
        "login.js" SCRIPT,
        "memories.js" SCRIPT,
        "meters.js" SCRIPT,
        "operations.js" SCRIPT,
        "options.js" SCRIPT,
        "page.js" SCRIPT,
        "passage.js" SCRIPT,
        "picker.js" SCRIPT,
        "projection.js" SCRIPT,
        "sample.js" SCRIPT,
        "sample.pdf" PDF,
        "search.js" SCRIPT,
        "source.js" SCRIPT,
        "sources.js" SCRIPT,
        "state.js" SCRIPT,
        "system.js" SCRIPT,
        "tenants.js" SCRIPT,
        "told.js" SCRIPT,
        "upload.js" SCRIPT,
        "vectors.js" SCRIPT,
    ];
    let file = |(name, media_type, bytes): (_, _, &'static [u8])| {
        let digest = Sha256::digest(bytes);
        let tag = format!("\"{}\"", hex::encode(&digest[..TAG_BYTES]));
        File { name, media_type, bytes, tag }
    };
    files.into_iter().map(file).collect()
});

/// Every file.
pub fn files() -> &'static [File] {
    &FILES
}

/// The file of a name.
pub fn file(name: &str) -> Option<&'static File> {
    files().iter().find(|file| file.name == name)
}
