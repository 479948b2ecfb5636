//! Encoding labels for Windows code pages and font character sets.

/// The encoding label of a code page; Western if unknown.
pub(crate) fn label(code_page: u32) -> &'static str {
    match code_page {
        874 => "windows-874",
        932 => "shift_jis",
        936 => "gbk",
        949 => "euc-kr",
        950 => "big5",
        1250 => "windows-1250",
        1251 => "windows-1251",
        1253 => "windows-1253",
        1254 => "windows-1254",
        1255 => "windows-1255",
        1256 => "windows-1256",
        1257 => "windows-1257",
        1258 => "windows-1258",
        1200 => "utf-16le",
        10000 => "macintosh",
        10007 => "x-mac-cyrillic",
        20866 => "koi8-r",
        21866 => "koi8-u",
        866 => "ibm866",
        28592 => "iso-8859-2",
        28595 => "iso-8859-5",
        28597 => "iso-8859-7",
        28605 => "iso-8859-15",
        50220 => "iso-2022-jp",
        51932 => "euc-jp",
        54936 => "gb18030",
        65001 => "utf-8",
        _ => "windows-1252",
    }
}

/// The code page of a font character set; `None` for the document default.
pub(super) fn of_charset(charset: i32) -> Option<u32> {
    Some(match charset {
        77 => 10000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        _ => return None,
    })
}
