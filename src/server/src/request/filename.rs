//! The name of an uploaded file, from the `Content-Disposition` of its part.

use percent_encoding::percent_decode_str;

/// Longest file name in characters, the limit of common file systems.
const FILENAME_CHARS_MAX: usize = 255;

/// Extracts the name without path and control characters; empty if none was sent. `filename*` (RFC
/// 5987) takes precedence, because libraries that send it (.NET, older `requests`) put an encoded
/// name, or nothing, into `filename`.
pub(super) fn of_disposition(disposition: &[u8]) -> String {
    let text = String::from_utf8_lossy(disposition);
    let (mut is_quoted, mut before) = (false, ' ');
    let parameters = text.split(|c| {
        is_quoted ^= c == '"' && before != '\\';
        before = c;
        c == ';' && !is_quoted
    });
    let (mut plain, mut extended) = (None, None);
    for (name, value) in parameters.filter_map(|parameter| parameter.split_once('=')) {
        match name.trim().to_ascii_lowercase().as_str() {
            "filename" => plain = Some(value.trim()),
            "filename*" => extended = decoded(value.trim()),
            _ => {}
        }
    }
    clean(&extended.or_else(|| plain.map(unescaped)).unwrap_or_default())
}

/// Decodes the value of `filename*`, which holds charset, language and bytes; `None` unless it is
/// UTF-8.
fn decoded(value: &str) -> Option<String> {
    let (charset, value) = value.trim_matches('"').split_once('\'')?;
    let (_language, value) = value.split_once('\'')?;
    let value = charset.eq_ignore_ascii_case("utf-8").then(|| percent_decode_str(value))?;
    value.decode_utf8().ok().map(|name| name.into_owned())
}

/// Removes quotes and escapes from the value of `filename`. Browsers and most libraries escape
/// these three characters only (WHATWG HTML 4.10.21.8), not even `%`; older ones put a backslash
/// before quotes.
fn unescaped(value: &str) -> String {
    let value = value.strip_prefix('"').unwrap_or(value);
    let value = value.strip_suffix('"').unwrap_or(value);
    value.replace("\\\"", "\"").replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n")
}

/// Returns the last component of a path of any operating system, without control characters.
fn clean(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = last.chars().filter(|c| !c.is_control()).take(FILENAME_CHARS_MAX);
    let name: String = kept.collect();
    let name = name.trim();
    if name == "." || name == ".." { String::new() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_as_browsers_and_libraries_write_them() {
        for (parameters, name) in [
            ("filename=\"a.pdf\"", "a.pdf"),
            ("FileName = a.pdf ; x=y", "a.pdf"),
            ("filename=\"a%22b%0D%0A 100%.pdf\"", "a\"b 100%.pdf"),
            ("filename=\"a\\\"b; filename=c.pdf\"", "a\"b; filename=c.pdf"),
            ("filename=\"%C3%BC.pdf\"", "%C3%BC.pdf"),
            ("filename=\"ü; 日本.pdf\"", "ü; 日本.pdf"),
            ("filename*=UTF-8''%C3%BC%22.pdf", "ü\".pdf"),
            ("filename=\"=?utf-8?B?w7w=?=\"; filename*=utf-8'de'%C3%BC.pdf", "ü.pdf"),
            ("filename*=UTF-8''%FF; filename=\"a.pdf\"", "a.pdf"),
            ("filename*=UTF-8''..%2Fb.pdf", "b.pdf"),
            ("filename=\"x; filename*=UTF-8''y.pdf\"", "x; filename*=UTF-8''y.pdf"),
            ("filename=\"", ""),
            ("filename=", ""),
            ("filename", ""),
        ] {
            let disposition = format!("form-data; name=\"file\"; {parameters}");
            assert_eq!(of_disposition(disposition.as_bytes()), name, "{parameters}");
        }
        assert_eq!(of_disposition(b"form-data; filename=\"\xfc.pdf\""), "\u{fffd}.pdf");
    }

    #[test]
    fn file_names_lose_their_path() {
        for (given, kept) in [
            ("a.pdf", "a.pdf"),
            ("/etc/passwd", "passwd"),
            ("C:\\x\\y.docx", "y.docx"),
            ("a\r\nb\0.txt", "ab.txt"),
            ("..", ""),
            ("a/", ""),
            ("Übersicht 日本.txt", "Übersicht 日本.txt"),
        ] {
            assert_eq!(clean(given), kept);
        }
    }
}
