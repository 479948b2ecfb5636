//! E-mail messages as transmitted, and as stored by Outlook.

use std::io::{Cursor, Write};

pub fn letters() -> Vec<Vec<u8>> {
    let inner = "From: x@y\nSubject: inner\nMIME-Version: 1.0\n\nnested words";
    let letter = format!(
        "Received: by x\nFrom: =?utf-8?q?J=C3=BCrgen?= <j@x>\nTo: a@b\nDate: Tue, 1 Jul 2003 \
         10:52:37 \
         +0200\nSubject: =?big5?B?pKQ=?= and\n more\nMIME-Version: 1.0\nContent-Type: \
         multipart/mixed; \
         boundary=\"o u\"\n\npreamble\n--o u\nContent-Type: multipart/alternative; \
         boundary=in\n\n--in\n\
         Content-Type: text/plain; charset=iso-8859-1; format=flowed\nContent-Transfer-Encoding: \
         quoted-printable\n\nGr=FC=DFe \nfrom=20here=\n.\n> quoted\n-- \nsign\n--in\nContent-Type: \
         text/html\n\n<p>Other</p>\n--in--\n--o u\nContent-Type: text/csv\nContent-Disposition: \
         attachment; filename*=utf-8''%c3%a9.csv\n\nname,share\nAda,7\n--o u\nContent-Type: \
         application/octet-stream; name*0=a; name*1=.txt\nContent-Transfer-Encoding: base64\n\n\
         aGVsbG8=\n--o u\nContent-Type: message/rfc822\n\n{inner}\n--o u--\nepilogue\n"
    );
    let page = "Subject: s\nMIME-Version: 1.0\nFrom: a\nContent-Type: text/html\n\n<p>One<p>Two";
    let coded = "Subject: uu\nFrom: a\nContent-Transfer-Encoding: x-uuencode\n\nbegin 644 a.txt\n\
         #0V%T\n`\nend\n";
    let texts = [letter.replace('\n', "\r\n"), page.to_owned(), coded.to_owned()];
    texts.into_iter().map(String::into_bytes).collect()
}

pub fn outlook() -> Vec<Vec<u8>> {
    let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let properties = {
        let mut properties = vec![0; 32];
        // A code page (0x3FFD0003) and a delivery time (0x0E060040).
        properties.extend([0x03, 0, 0xFD, 0x3F, 6, 0, 0, 0, 0xE4, 4, 0, 0, 0, 0, 0, 0]);
        properties.extend([0x40, 0, 6, 0x0E, 6, 0, 0, 0, 0, 0x80, 0x3E, 0xD5, 0xDE, 0xB1, 0x9D, 1]);
        properties
    };
    let recipient = ("/__recip_version1.0_#00000000", vec![("__substg1.0_3001001F", wide("R"))]);
    let attached = (
        "/__attach_version1.0_#00000000",
        vec![
            ("__substg1.0_3707001F", wide("a.txt")),
            ("__substg1.0_37010102", b"attached".to_vec()),
        ],
    );
    let plain = vec![("/__substg1.0_1000001F", wide("Body €"))];
    let page = vec![("/__substg1.0_10130102", b"<html><p>Page<table><tr><td>x</table>".to_vec())];
    let rich = vec![("/__substg1.0_10090102", compressed(b"{\\rtf1\\ansi Rich\\par text}"))];
    let bodies = [plain, page, rich];
    let file = |body: Vec<(&str, Vec<u8>)>| {
        let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).expect("memory");
        let mut put = |path: &str, bytes: &[u8]| {
            file.create_stream(path).and_then(|mut s| s.write_all(bytes)).expect("memory");
        };
        put("/__properties_version1.0", &properties);
        put("/__substg1.0_0037001F", &wide("Subject"));
        put("/__substg1.0_0C1A001E", b"Sender");
        put("/__substg1.0_5D01001F", &wide("s@x"));
        body.iter().for_each(|(path, bytes)| put(path, bytes));
        for (storage, streams) in [&recipient, &attached] {
            file.create_storage(storage).expect("memory");
            for (name, bytes) in streams {
                let mut stream = file.create_stream(format!("{storage}/{name}")).expect("memory");
                stream.write_all(bytes).expect("memory");
            }
        }
        file.flush().expect("memory");
        file.into_inner().into_inner()
    };
    bodies.into_iter().map(file).collect()
}

/// Compressed RTF as in messages (MS-OXRTFCP), with literals only.
fn compressed(text: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for run in text.chunks(8) {
        body.push(0);
        body.extend_from_slice(run);
    }
    let mut bytes = Vec::new();
    for word in [body.len() as u32 + 12, text.len() as u32, 0x75_46_5A_4C, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(body);
    bytes
}
