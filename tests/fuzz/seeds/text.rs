//! Text formats.

const TXT: &[&str] = &[
    "One paragraph\nof two lines.\n\nAnother; with € and \u{1f600}.\r\n\x0CNext page\r\rend",
    "\u{FEFF}fn main() {\n    let x = [1, 2];\n}\n",
];
const MD: &[&str] = &[
    "---\ntitle: Front\n---\n# Head #\n\nText *with* `code` and [a link](http://x \"t\").\n\n\
     Setext\n======\n\n- item\n  - under\n1. one\n2) two\n\n> quoted\n\n```rust\nlet x;\n```\n\n\
     | a | b |\n|---|:-:|\n| 1 | 2 \\| 3 |\n\n    indented\n\n~~~\nopen",
    "<!-- c -->\n<div>\n\n* * *\n\nTwo\n---\n\n[ref]: x\n\n+ a\n+ b\n\n####### seven\n#no\n",
];
const HTML: &[&str] = &[
    "<!DOCTYPE html><html><head><meta charset=utf-8><title>T &amp; U</title><link rel=canonical \
     href='/c'><meta property='og:title' content='O'><style>p{}</style></head><body><nav><ul><li>\
     <a href=a>A</a><li><a href=b>B</a></ul></nav><main><h1>Head</h1><p>One \
     <b>two</b><br>three&nbsp;\
     four.<ol start=3><li>x<ul><li>y</ul><li value=9>z</ol><pre>  a\n  b</pre><table><caption>C\
     </caption><thead><tr><th rowspan=2>k<th colspan=2>v</thead><tr><td>1<td>2<tr><td>a|b<td>d\
     </table><dl><dt>t<dd>d</dl><blockquote><p>q</blockquote><img \
     alt=pic><script>if(a<b){}</script>\
     <select><option>o</select><p hidden>no<p style='display:none'>no</main><footer>f</footer>",
    "<table><tr><td><table><tr><td>in<td>ner</table><td>x</table><p><code>c</code><svg><text>s\
     </svg><template>t</template><textarea>v</textarea><h2>Two</h2>text <a href=x>link</a> &#x41;\
     <details><summary>S</summary>d</details><article><p>",
];
const JSON: &[&str] = &[
    "{\"title\":\"T\",\"n\":1.50,\"deep\":{\"a\":[1,2,{\"b\":null}],\"c\":true},\
    \"s\":\"x\\ny\\u00e9\"}",
    "[{\"id\":1,\"name\":\"Ada\"},{\"id\":2,\"name\":\"Bo\",\"more\":[[],{}]}]",
    "{\"a\":1}\n{\"a\":2}\n",
];
const NOTEBOOK: &[&str] = &[
    "{\"cells\":[{\"cell_type\":\"markdown\",\"source\":[\"# Head\\n\",\"text\"]},{\"cell_type\":\
     \"code\",\"source\":\"print(1)\",\"outputs\":[{\"output_type\":\"stream\",\
     \"text\":[\"1\\n\"]},\
     {\"data\":{\"text/plain\":\"2\",\"image/png\":\"x\"}},{\"ename\":\"E\",\"evalue\":\"v\"}]},\
     {\"cell_type\":\"raw\",\"source\":\"r\"}],\
     \"metadata\":{\"language_info\":{\"name\":\"python\"}},\
     \"nbformat\":4,\"nbformat_minor\":5}",
];
const CSV: &[&str] = &[
    "name;note\r\nAda;\"two\nlines; here\"\r\nBo;\r\n;x;y\r\n",
    "a,b,c\n1,\"x \"\"y\"\"\",3\n,,\n4,5\n",
    "1|2\n3|4\n",
];
const TSV: &[&str] = &["a\tb\n1\t2,3\n\"q\tr\"\ts\n"];
const XML: &[&str] = &[
    "<?xml version='1.0' encoding='UTF-8'?><!DOCTYPE rss [<!ENTITY x \
     'y'>]><rss><channel><title>News\
     </title><item><title>A &amp; B</title><link>u</link></item><item><title>C&x;</title><g \
     id='7'/>\
     <d><![CDATA[x < y]]></d></item></channel></rss>",
    "<article><front><article-title>T</article-title></front><body><sec><title>S</title><p>One \
     <b>two\
     </b>.</p><list><item><p>i</p></item></list><table><thead><tr><th \
     rowspan='2'>k</th><th>v</th></tr>\
     </thead><tbody><tr><td>1</td></tr></tbody></table></sec></body></article>",
];
const RTF: &[&str] = &[
    "{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0 A;}{\\f1\\fcharset204 B;}{\\f2\\fcharset128 C;}}\
     {\\stylesheet{\\s1 heading 1;}{\\s2 Normal;}}{\\info{\\title Caf\\'e9}{\\author no}}{\\header \
     page \\chpgn}{\\pard\\s1 Head\\par}\\pard caf\\'e9 \\u8364?\\u-10179?\\u-8704? \
     {\\f1\\'cf\\'f0} \
     {\\f2\\'93\\'fa\\'96\\'7b}{\\v hidden}{\\*\\unknown no}{\\pict 00ff}{\\field{\\*\\fldinst X}\
     {\\fldrslt link}}{\\footnote a \
     note}.\\par{\\listtext\\'b7\\tab}item\\par\\trowd\\cellx1\\cellx2\
     \\pard\\intbl a\\cell b\\cell\\row\\trowd\\clvmrg\\cellx1\\cellx2\\intbl\\cell c\\par \
     d\\cell\\row\
     \\pard {\\upr{bad}{\\*\\ud{good}}}\\'93q\\rdblquote\\line end\\bin3 abc}",
    "{\\rtf1\\fromhtml1{\\*\\htmltag <p>}text{\\*\\htmltag \
     </p>}\\uc2\\u1234ab\\page\\sect\\outlinelevel1 \
     h\\par{\\nestcell\\nestrow}\\itap2\\intbl \
     x\\nestcell{\\*\\nesttableprops\\nestrow}\\cell\\row}",
];

/// Documents of one of these formats.
pub fn of(extension: &str) -> Vec<Vec<u8>> {
    let texts = match extension {
        "txt" => TXT,
        "md" => MD,
        "html" => HTML,
        "json" => JSON,
        "ipynb" => NOTEBOOK,
        "csv" => CSV,
        "tsv" => TSV,
        "xml" | "nxml" => XML,
        "rtf" => RTF,
        _ => &[],
    };
    let mut seeds: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    if matches!(extension, "txt" | "html" | "xml" | "csv") {
        let wide = texts[0].encode_utf16().flat_map(u16::to_le_bytes);
        seeds.push([0xFF, 0xFE].into_iter().chain(wide).collect());
        // Cyrillic in an undeclared encoding.
        seeds.push([texts[0].as_bytes(), b"\xCF\xF0\xE8\xE2\xE5\xF2, \xEC\xE8\xF0"].concat());
    }
    seeds
}
