//! Tests that no passage is embedded twice: after an interruption, or when content is unchanged.

use super::*;

/// A text of `chunks` chunks, all of them different.
fn long(chunks: usize) -> String {
    let sentence = |number: usize, at: usize| format!("Sentence {at} of part {number} is here. ");
    let paragraph = |number| (0..28).map(|at| sentence(number, at)).collect::<String>() + "\n\n";
    (0..chunks).map(paragraph).collect()
}

fn kept_files(rig: &Rig) -> usize {
    let collections = std::fs::read_dir(rig.dir.path().join("data/v1/c")).unwrap();
    let files = collections.flat_map(|collection| {
        let directory = collection.unwrap().path().join("w");
        std::fs::read_dir(directory).into_iter().flatten()
    });
    files.count()
}

fn chunks(rig: &Rig, id: &str) -> u64 {
    let view = settled(&rig.engine, id);
    assert_eq!(view.status, JobStatus::Success, "{}", view.message);
    view.chunks.unwrap()
}

#[test]
fn a_stopped_server_goes_on_where_it_was() {
    let rig = Rig::new();
    rig.upload("first", "makes the tenant");
    let rig = rig.restart(GatedEmbedder::with_passes(2), |_| {});
    submit(&rig.engine, "long", &long(600), &Metadata::new());
    wait_for("the third slice", || {
        (rig.gate.embedded() == 512 && rig.gate.has_waiting()).then_some(())
    });
    let progress = rig.engine.source(&access(&rig.engine), &id("long")).unwrap().unwrap().progress;
    let progress = progress.unwrap();
    assert_eq!((progress.chunks_done, progress.stage.as_str()), (512, "embedding"));
    assert!(progress.chunks > 512 && progress.share().unwrap() < 1.0);

    let rig = rig.restart(GatedEmbedder::default(), |data| {
        // A damaged file of kept vectors only costs its own slice.
        let kept = std::fs::read_dir(data.join("v1/c")).unwrap().find_map(|collection| {
            let files = std::fs::read_dir(collection.unwrap().path().join("w")).ok()?;
            let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
            files.sort();
            Some(files)
        });
        let kept = kept.expect("vectors were kept");
        assert_eq!(kept.len(), 2);
        let mut bytes = std::fs::read(&kept[1]).unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        std::fs::write(&kept[1], bytes).unwrap();
    });
    let chunks = chunks(&rig, "long");
    assert_eq!(chunks, u64::from(progress.chunks));
    assert_eq!(rig.gate.embedded(), chunks - 256);
    wait_for("the end of the claim", || (kept_files(&rig) == 0).then_some(()));
}

#[test]
fn unchanged_chunks_are_not_embedded_again() {
    let rig = Rig::new();
    let text = long(20);
    rig.upload("doc", &text);
    let all = chunks(&rig, "doc");
    assert_eq!(rig.gate.embedded(), all);

    rig.upload("doc", &text);
    assert_eq!((chunks(&rig, "doc"), rig.gate.embedded()), (all, all), "the same once more");
    let view = settled(&rig.engine, "doc");
    assert_eq!(view.version, 2);

    rig.upload("doc", &text.replace("Sentence 5 of part 19", "Another sentence of part 19"));
    let changed = rig.gate.embedded() - all;
    assert!((1..=3).contains(&changed), "{changed} of {all} chunks changed");

    // Words that precede every chunk change every vector.
    let before = rig.gate.embedded();
    let titled = map(serde_json::json!({"title": "Another"}));
    submit(&rig.engine, "doc", &text, &titled);
    let chunks = chunks(&rig, "doc");
    assert_eq!(rig.gate.embedded() - before, chunks);
}

#[test]
fn a_deleted_document_is_not_embedded_to_its_end() {
    let rig = Rig::new();
    rig.upload("first", "makes the tenant");
    let rig = rig.restart(GatedEmbedder::with_passes(1), |_| {});
    submit(&rig.engine, "long", &long(600), &Metadata::new());
    wait_for("the second slice", || rig.gate.has_waiting().then_some(()));
    rig.engine.delete_sources(&access(&rig.engine), &[id("long")]).unwrap();
    rig.gate.open();
    submit(&rig.engine, "next", "comes after it", &Metadata::new());
    assert_eq!(chunks(&rig, "next"), 1);
    assert_eq!(rig.gate.embedded(), 256 + 256 + 1, "the slice that had begun, and no more");
}
