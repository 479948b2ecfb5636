//! Version 5: the positions of the text lines of segment rows.

use lodestone_graph::RowGraph;
use lodestone_types::{LineBox, PageArea, PageBox, RowId, SourceId, SubTenantId};

use crate::version_3::{Fixture, source};

const FIXTURE: Fixture = Fixture { directory: "v5", collection: 0x5555 };

fn lines() -> Vec<LineBox> {
    let line = |start, end, y| {
        let area = PageArea { x: 72.0, y, width: 240.5, height: 11.25 };
        LineBox { start, end, place: PageBox { page: 7, area } }
    };
    vec![line(0, 6, 90.0), line(7, 12, 104.0)]
}

#[test]
fn write_fixtures() {
    let mut sources = [
        source("bare", "bare", "pears", RowGraph::default()),
        source("placed", "Report", "apples\npears", RowGraph::default()),
    ];
    sources[1].rows[0].lines = lines();
    FIXTURE.write(&sources);
}

#[test]
fn lines_read_back() {
    let root = tempfile::tempdir().unwrap();
    let snapshot = FIXTURE.open(root.path()).snapshot();
    let sub_tenant = SubTenantId::default_name();
    for (id, expected) in [("bare", Vec::new()), ("placed", lines())] {
        let found = snapshot.find(&sub_tenant, &SourceId::parse(id).unwrap()).unwrap();
        assert_eq!(found.live.segment.lines(RowId(found.rows()[0])).unwrap(), expected);
    }
}
