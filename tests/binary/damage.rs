//! `lodestone verify` over sound and damaged directories.

use std::path::Path;

use crate::process::lodestone;
use crate::{Place, files, settled, upload};

/// Places in one file at which a byte is changed, evenly apart.
const FLIPS: usize = 24;

/// Whether the directory is sound, and what was said.
fn verify(data: &Path) -> (bool, String) {
    let output = lodestone(&["verify", "--data-dir"]).arg(data).output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).expect("UTF-8"))
}

/// Every changed byte of every file that a commit or an upload wrote is found.
#[test]
fn verify_finds_a_damaged_byte() {
    let Some(place) = Place::new("verify_finds_a_damaged_byte") else { return };
    let (server, client) = place.start();
    upload(&client, "doc", &"A long text about wind and water. ".repeat(300));
    assert_eq!(settled(&client, "doc"), "success");
    server.kill();
    let (is_sound, said) = verify(&place.data());
    assert!(is_sound && said.contains("all sound"), "{said}");

    let stored = files(&place.data().join("v1"));
    let is_segment = |path: &Path| path.extension().is_some_and(|ending| ending == "seg");
    assert!(stored.iter().any(|path| is_segment(path)), "{stored:?}");
    let newest = |path: &Path| !stored.iter().any(|p| p.parent() == path.parent() && **p > *path);
    for path in stored.iter().filter(|path| is_segment(path) || newest(path)) {
        let bytes = std::fs::read(path).expect("a readable file");
        for at in (0..FLIPS).map(|n| n * (bytes.len() - 1) / (FLIPS - 1)) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            std::fs::write(path, damaged).expect("a writable file");
            let (is_sound, said) = verify(&place.data());
            assert!(!is_sound, "{} byte {at}: {said}", path.display());
            assert!(said.contains("acme: "), "the tenant is named: {said}");
        }
        std::fs::write(path, &bytes).expect("a writable file");
    }
    let (is_sound, said) = verify(&place.data());
    assert!(is_sound, "{said}");
}
