//! Parses a multipart form into texts and files, part by part, in any order.
//!
//! ```text
//! part -> one spool for the whole form, as a range of its bytes -> texts; files, as slices
//! ```
//! However many parts a form has, a slow client therefore costs the memory of one spool, and of
//! names of limited length.

use std::ops::Range;

use axum::body::Body;
use axum::extract::multipart::Field as Part;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart};
use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderValue, Request};

use crate::error::{ApiError, Location};
use crate::request::body::BodyReader;
use crate::request::field::{Field, Kind};
use crate::request::fields::wrong;
use crate::request::filename;
use crate::request::form_stream::FormStream;
use crate::request::indexed::{base, is_named};
use crate::request::names::Unknown;
use crate::request::spool::Spool;
use lodestone_types::limits;

/// Maximum number of parts in a form, far above any sensible batch.
const PARTS_MAX: usize = 1000;
/// Maximum length of the name of a part, far above any declared name with an index.
const NAME_BYTES_MAX: usize = 128;
/// Maximum length of the media type of a file; a longer one is treated as absent.
const MEDIA_TYPE_BYTES_MAX: usize = 255;
/// Maximum size of all text parts together.
const TEXT_BYTES_MAX: usize = limits::FORM_TEXT_BYTES_MAX;

/// An uploaded file. A large one is stored in a temporary file and memory-mapped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UploadedFile {
    /// The file name without path and control characters; empty if none was sent.
    pub filename: String,
    /// The media type sent by the client; empty if none of sensible length was sent.
    pub content_type: String,
    /// The content of the file.
    pub bytes: Bytes,
    /// Whether the file exceeded the size limit and its content was discarded, which is tolerated
    /// only in batches.
    pub is_too_large: bool,
}

impl UploadedFile {
    /// Creates the 413 for a file that exceeds the size limit.
    pub fn too_large(field: &Field) -> ApiError {
        let message = format!("a file must be at most {} bytes", limits::FILE_BYTES_MAX);
        ApiError::too_large("file_too_large", message).at(Location::Form, field.name)
    }
}

/// The parts of a form.
#[derive(Debug, Default)]
pub struct Form {
    /// Text parts, in order.
    pub texts: Vec<(String, String)>,
    /// File parts, each with its part name including the index, in order.
    pub files: Vec<(String, UploadedFile)>,
    /// Names of parts that no field declares, whose content was discarded.
    pub unknown: Unknown,
}

/// Parses a URL-encoded form.
///
/// # Errors
/// 400 `too_many_items` above the limit on parts.
pub fn read_urlencoded(bytes: &[u8]) -> Result<Form, ApiError> {
    let texts: Vec<_> = form_urlencoded::parse(bytes).into_owned().take(PARTS_MAX + 1).collect();
    match texts.len() > PARTS_MAX {
        true => Err(too_many_parts()),
        false => Ok(Form { texts, ..Form::default() }),
    }
}

fn too_many_parts() -> ApiError {
    let message = format!("the form must have at most {PARTS_MAX} parts");
    ApiError::invalid("too_many_items", message)
}

/// Parses a multipart form. Parts that are not among `fields` are discarded.
///
/// # Errors
/// 400 `malformed_body` or `too_many_items`; 413 over the limits; any error of the reader.
pub async fn read(
    reader: BodyReader,
    content_type: HeaderValue,
    fields: &'static [&'static Field],
) -> Result<Form, ApiError> {
    let (spool, feed) = (reader.spooler().begin(), FormStream::default());
    let mut request = Request::new(Body::from_stream(feed.slices(reader)));
    request.headers_mut().insert(CONTENT_TYPE, content_type);
    // The body reader already enforces a limit.
    DefaultBodyLimit::disable().apply(&mut request);
    let form = read_parts(request, fields, spool, &feed).await;
    // The parser sees an error of the feed as a broken stream; report the original error instead.
    match feed.take_error() {
        Some(error) => Err(error),
        None => form,
    }
}

async fn read_parts(
    request: Request<Body>,
    fields: &'static [&'static Field],
    mut spool: Spool,
    feed: &FormStream,
) -> Result<Form, ApiError> {
    let mut parts = Multipart::from_request(request, &())
        .await
        .map_err(|error| malformed(&error.body_text()))?;
    let mut form = Form::default();
    let (mut count, mut text_bytes) = (0, 0);
    let (mut texts, mut contents) = (Vec::new(), Vec::new());
    while let Some(part) = parts.next_field().await.map_err(|e| malformed(&e.body_text()))? {
        feed.progress();
        count += 1;
        if count > PARTS_MAX {
            return Err(too_many_parts());
        }
        check_encoding(&part)?;
        let name = part.name().map(str::to_owned);
        let mut pieces = Pieces { part, feed };
        let Some(name) = name else {
            pieces.skip().await?;
            continue;
        };
        match fields.iter().find(|field| is_named(field, &name, Location::Form)) {
            None => {
                form.unknown.add(Location::Form, &name);
                pieces.skip().await?;
            }
            Some(field) if name.len() > NAME_BYTES_MAX => {
                let problem = format!("has a part whose name is over {NAME_BYTES_MAX} bytes");
                return Err(wrong(field, Location::Form, &problem));
            }
            Some(field) if matches!(field.kind, Kind::File | Kind::Files) => {
                check_room(field, &form)?;
                let (file, content) = read_file(field, pieces, &mut spool).await?;
                contents.push(content);
                let index = &name[base(&name).len()..];
                form.files.push((format!("{}{index}", field.name), file));
            }
            Some(field) => {
                let text = read_text(field, pieces, &mut text_bytes, &mut spool).await?;
                texts.push((field, name, text));
            }
        }
    }
    let bytes = spool.finish().await?;
    for ((_, file), content) in form.files.iter_mut().zip(contents) {
        file.bytes = bytes.slice(content);
    }
    for (field, name, text) in texts {
        form.texts.push((name, text_of(field, &bytes[text])?));
    }
    Ok(form)
}

/// Refuses a part with a mail encoding, which forms do not use (RFC 7578 4.7): its encoded form
/// would be indexed as text.
fn check_encoding(part: &Part<'_>) -> Result<(), ApiError> {
    let encoding = part.headers().get("content-transfer-encoding");
    let encoding = encoding.map(HeaderValue::as_bytes).unwrap_or_default().trim_ascii();
    for refused in ["base64", "quoted-printable"] {
        if encoding.eq_ignore_ascii_case(refused.as_bytes()) {
            let problem =
                format!("content-transfer-encoding {refused} is not supported: send raw bytes");
            return Err(malformed(&problem));
        }
    }
    Ok(())
}

/// Reads a part piece by piece.
struct Pieces<'a> {
    part: Part<'a>,
    feed: &'a FormStream,
}

impl Pieces<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let piece = self.part.chunk().await.map_err(|error| malformed(&error.body_text()))?;
        self.feed.progress();
        Ok(piece)
    }

    /// Discards the rest of the part.
    async fn skip(&mut self) -> Result<(), ApiError> {
        while self.next().await?.is_some() {}
        Ok(())
    }
}

fn check_room(field: &Field, form: &Form) -> Result<(), ApiError> {
    let max = match field.kind {
        Kind::Files => limits::BATCH_ITEMS_MAX,
        _ => 1,
    };
    let of_field = form.files.iter().filter(|(part, _)| base(part) == field.name).count();
    if of_field < max {
        return Ok(());
    }
    let problem = match max {
        1 => "must be a single file".to_owned(),
        max => format!("must have at most {max} files"),
    };
    Err(ApiError::field("too_many_items", Location::Form, field.name, &problem))
}

/// Reads a file without its content, which becomes the returned range of the spool.
async fn read_file(
    field: &Field,
    mut pieces: Pieces<'_>,
    spool: &mut Spool,
) -> Result<(UploadedFile, Range<usize>), ApiError> {
    let disposition = pieces.part.headers().get(CONTENT_DISPOSITION);
    let disposition = disposition.map(HeaderValue::as_bytes).unwrap_or_default();
    let filename = filename::of_disposition(disposition);
    let content_type = pieces.part.content_type().unwrap_or_default();
    let is_sensible = content_type.len() <= MEDIA_TYPE_BYTES_MAX;
    let content_type = if is_sensible { content_type.to_owned() } else { String::new() };
    let mut file =
        UploadedFile { filename, content_type, bytes: Bytes::new(), is_too_large: false };
    let start = spool.len() as usize;
    while let Some(data) = pieces.next().await? {
        if spool.len() as usize - start + data.len() > limits::FILE_BYTES_MAX {
            if !matches!(field.kind, Kind::Files) {
                return Err(UploadedFile::too_large(field));
            }
            // The other files of the batch are still accepted.
            pieces.skip().await?;
            file.is_too_large = true;
            return Ok((file, start..start));
        }
        spool.push(data).await?;
    }
    Ok((file, start..spool.len() as usize))
}

/// Reads a text, which becomes the returned range of the spool.
async fn read_text(
    field: &Field,
    mut pieces: Pieces<'_>,
    text_bytes: &mut usize,
    spool: &mut Spool,
) -> Result<Range<usize>, ApiError> {
    let start = spool.len() as usize;
    while let Some(data) = pieces.next().await? {
        *text_bytes += data.len();
        if *text_bytes > TEXT_BYTES_MAX {
            let message = format!("text parts must be at most {TEXT_BYTES_MAX} bytes in total");
            let error = ApiError::too_large("content_too_large", message);
            return Err(error.at(Location::Form, field.name));
        }
        spool.push(data).await?;
    }
    Ok(start..spool.len() as usize)
}

fn text_of(field: &Field, bytes: &[u8]) -> Result<String, ApiError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| {
        ApiError::field("invalid_value", Location::Form, field.name, "is not valid UTF-8")
    })
}

fn malformed(problem: &str) -> ApiError {
    ApiError::invalid("malformed_body", format!("the form cannot be read: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::pace::Pace;
    use crate::tests::support::Spools;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    static FILE: Field = Field::form("file", Kind::File, "a file").required();
    static TENANT: Field = Field::query("tenant_id", Kind::Identifier, "the tenant");
    static FILES: Field = Field::form("files", Kind::Files, "files");
    static FIELDS: &[&Field] = &[&FILE, &TENANT, &FILES];

    async fn read_bytes(body: &[u8], bytes_max: usize) -> Result<Form, ApiError> {
        read_body(Body::from(body.to_vec()), bytes_max).await
    }

    async fn read_body(body: Body, bytes_max: usize) -> Result<Form, ApiError> {
        read_into(&Spools::new(), body, bytes_max).await
    }

    async fn read_into(spools: &Spools, body: Body, bytes_max: usize) -> Result<Form, ApiError> {
        let pace = Pace { window: Duration::from_secs(1), bytes_per_second_min: 0 };
        let reader = BodyReader::new(body, None, bytes_max, pace, spools.spooler());
        let content_type = HeaderValue::from_static("multipart/form-data; boundary=B");
        read(reader?, content_type, FIELDS).await
    }

    const GOOD: &str = "--B\r\nContent-Disposition: form-data; name=\"file\"; \
        filename=\"../a/b\\\\c.txt\"\r\nContent-Type: text/plain\r\n\r\nhello\r\n\
        --B\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nignored\r\n\
        --B\r\nContent-Disposition: form-data; name=\"tenant_id\"\r\n\r\nacme\r\n--B--\r\n";

    #[tokio::test]
    async fn parts_come_in_any_order() {
        let form = read_bytes(GOOD.as_bytes(), 10_000).await.unwrap();
        assert_eq!(form.texts, [("tenant_id".to_owned(), "acme".to_owned())]);
        let (name, file) = &form.files[0];
        assert_eq!((name.as_str(), file.filename.as_str()), ("file", "c.txt"));
        assert_eq!((file.content_type.as_str(), &file.bytes[..]), ("text/plain", &b"hello"[..]));
    }

    #[tokio::test]
    async fn broken_forms_are_malformed() {
        let half = &GOOD.as_bytes()[..GOOD.len() / 2];
        assert_eq!(read_bytes(half, 10_000).await.unwrap_err().reason(), "malformed_body");
        assert_eq!(read_bytes(b"{}", 10_000).await.unwrap_err().reason(), "malformed_body");
    }

    #[tokio::test]
    async fn parts_that_are_encoded_as_in_mail_are_refused() {
        let read = async |encoding: &str| {
            let form = GOOD.replace(
                "Content-Type: text/plain",
                &format!("Content-Transfer-Encoding: {encoding}"),
            );
            read_bytes(form.as_bytes(), 10_000).await
        };
        assert_eq!(read("binary").await.unwrap().files[0].1.bytes, "hello");
        for encoding in ["base64", "BASE64", "Quoted-Printable"] {
            let error = read(encoding).await.unwrap_err();
            assert_eq!(error.reason(), "malformed_body");
            assert!(error.to_string().contains("send raw bytes"), "{error}");
        }
    }

    /// Goal: a form in which the parser finds no structure is rejected early, and is not buffered
    /// until then. Method: endless bodies, counting the bytes that were read.
    #[tokio::test]
    async fn a_form_without_structure_ends_early() {
        let part = "--B\r\nContent-Disposition: form-data; name=\"file\"\r\n";
        let unknown = format!("{part}\r\n{}", "x".repeat(1 << 20)).replace("file", "other");
        let cases = [
            String::new(),
            part.to_owned(),
            format!("{part}\r\nhello\r\n{part}"),
            // Skipped parts neither stop the parser nor excuse malformed data after them.
            format!("{unknown}\r\n{part}"),
        ];
        for begins in cases {
            let pulled = Arc::new(AtomicUsize::new(0));
            let (count, begun) = (Arc::clone(&pulled), begins.len());
            let pieces = std::iter::once(Bytes::from(begins))
                .chain(std::iter::repeat(Bytes::from_static(&[b'x'; 10_000])))
                .inspect(move |piece| _ = count.fetch_add(piece.len(), Ordering::Relaxed))
                .map(Ok::<_, std::io::Error>);
            let body = Body::from_stream(futures_util::stream::iter(pieces));
            let error = read_body(body, 100 << 20).await.unwrap_err();
            assert_eq!(error.reason(), "malformed_body");
            assert!(error.to_string().contains("131072 bytes"), "{error}");
            let in_vain = pulled.load(Ordering::Relaxed) - begun;
            assert!(in_vain <= 300_000, "{in_vain} bytes were read in vain");
        }
    }

    /// Goal: the way a form is cut into pieces does not matter, and part headers may be long.
    #[tokio::test]
    async fn any_pieces_give_the_same_form() {
        let long = "a".repeat(60_000);
        let mut form = format!("a preamble\r\n--B\r\nX-Long: {long}\r\n{}", &GOOD[5..]);
        let file = "\r\nx".repeat(100_000);
        form = form.replace("\r\n\r\nhello", &format!("\r\n\r\n{file}"));
        for bytes in [1, 7, 60_000, form.len()] {
            let pieces = form.as_bytes().chunks(bytes).map(Bytes::copy_from_slice);
            let pieces: Vec<_> = pieces.map(Ok::<_, std::io::Error>).collect();
            let read = read_body(Body::from_stream(futures_util::stream::iter(pieces)), 1 << 20);
            let read = read.await.unwrap();
            assert_eq!(read.texts, [("tenant_id".to_owned(), "acme".to_owned())]);
            assert!(read.files[0].1.bytes == file, "in pieces of {bytes} bytes");
        }
    }

    #[tokio::test]
    async fn limits_are_reported_as_limits() {
        let error = read_bytes(GOOD.as_bytes(), 100).await.unwrap_err();
        assert_eq!(error.reason(), "body_too_large");
        let part = "--B\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n";
        let twice = format!("{part}{part}--B--\r\n");
        let error = read_bytes(twice.as_bytes(), 10_000).await.unwrap_err();
        assert_eq!(error.reason(), "too_many_items");
    }

    /// Goal: a form takes little memory, however many parts it has. Method: parts that would each
    /// fit into memory are counted where spooled bytes are, and stay there with the form.
    #[tokio::test]
    async fn many_small_parts_wait_in_one_file() {
        let spools = Spools::new();
        let mut form = String::new();
        for number in 0..40 {
            let head = |name| format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"");
            let (text, file) = ("t".repeat(5_000 + number), "f".repeat(5_000 + number));
            form += &format!("{}\r\n\r\n{text}\r\n", head("tenant_id"));
            form += &format!("{}; filename=\"{number}\"\r\n\r\n{file}\r\n", head("files"));
        }
        form += "--B--\r\n";
        let read = read_into(&spools, Body::from(form), 1 << 20).await.unwrap();
        assert_eq!(spools.bytes(), (0..40).map(|number| 2 * (5_000 + number)).sum::<u64>());
        for (number, ((_, text), (_, file))) in read.texts.iter().zip(&read.files).enumerate() {
            assert_eq!((text.len(), file.bytes.len()), (5_000 + number, 5_000 + number));
            assert!(text.bytes().all(|byte| byte == b't') && file.filename == number.to_string());
            assert!(file.bytes.iter().all(|byte| *byte == b'f'));
        }
        assert_eq!((read.texts.len(), read.files.len()), (40, 40));
        drop(read);
        assert_eq!(spools.bytes(), 0, "given back");
    }

    #[tokio::test]
    async fn what_describes_a_part_is_short() {
        let named = |name: &str, media_type: &str| {
            let part = format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"");
            format!("{part}; filename=\"a\"\r\nContent-Type: {media_type}\r\n\r\nx\r\n--B--\r\n")
        };
        let index = |bytes: usize| format!("files[{}]", "0".repeat(bytes - "files[]".len()));
        let form = named(&index(NAME_BYTES_MAX), "text/plain");
        let form = read_bytes(form.as_bytes(), 100_000).await.unwrap();
        assert_eq!(form.files[0].1.content_type, "text/plain");
        let form = named(&index(NAME_BYTES_MAX + 1), "text/plain");
        let error = read_bytes(form.as_bytes(), 100_000).await.unwrap_err();
        assert_eq!(error.message(), "files has a part whose name is over 128 bytes");
        let form = named("file", &format!("text/plain; a={}", "b".repeat(MEDIA_TYPE_BYTES_MAX)));
        let form = read_bytes(form.as_bytes(), 100_000).await.unwrap();
        let file = &form.files[0].1;
        assert_eq!((file.content_type.as_str(), &file.bytes[..]), ("", &b"x"[..]));
    }

    /// If one of several files is too large, its content is discarded and the others are kept.
    #[tokio::test]
    async fn one_file_of_several_may_be_too_large() {
        let head = |name: &str, filename: &str| {
            let disposition = format!("form-data; name=\"{name}\"; filename=\"{filename}\"");
            Bytes::from(format!("--B\r\nContent-Disposition: {disposition}\r\n\r\n"))
        };
        let read = |name: &'static str| {
            let large = std::iter::repeat_n(Bytes::from_static(&[b'x'; 1 << 20]), 101);
            let rest = [Bytes::from("\r\n"), head("files", "b"), Bytes::from("b\r\n--B--\r\n")];
            let pieces = std::iter::once(head(name, "a")).chain(large).chain(rest);
            let pieces = futures_util::stream::iter(pieces.map(Ok::<_, std::io::Error>));
            read_body(Body::from_stream(pieces), limits::BATCH_BYTES_MAX)
        };
        let form = read("files").await.unwrap();
        let files: Vec<_> = form.files.iter().map(|(_, file)| file).collect();
        assert_eq!((files[0].is_too_large, files[0].bytes.len()), (true, 0));
        assert_eq!((files[1].is_too_large, &files[1].bytes[..]), (false, &b"b"[..]));
        assert_eq!(read("file").await.unwrap_err().reason(), "file_too_large");
    }
}
