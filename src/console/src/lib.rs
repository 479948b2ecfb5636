//! The browser console, embedded in the program as static files that browsers run unmodified. It
//! needs no build step and loads nothing from elsewhere.
//!
//! ```text
//! assets/index.html -> app.js -> one module a page -> api.js -> the operations of the server
//! ```
//! `files` is the table of files. A name is the path below `console/`, except for `index.html`,
//! which is the page itself. All addresses within the files are relative, so the console works
//! below any path prefix.
#![forbid(unsafe_code)]

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// Content security policy of every file: only scripts and styles of the console itself, nothing
/// inline, and requests only to this server.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const PDF: &str = "application/pdf";

/// Bytes of the SHA-256 digest used as entity tag: 128 bits.
const TAG_BYTES: usize = 16;

/// A file of the console.
#[derive(Debug)]
pub struct File {
    /// Name of the file.
    pub name: &'static str,
    /// Media type.
    pub media_type: &'static str,
    /// Content.
    pub bytes: &'static [u8],
    /// Entity tag of the content for `ETag`, including the quotes.
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
        "ids.js" SCRIPT,
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

/// Returns all files of the console.
pub fn files() -> &'static [File] {
    &FILES
}

/// Looks up a file by name.
pub fn file(name: &str) -> Option<&'static File> {
    files().iter().find(|file| file.name == name)
}
