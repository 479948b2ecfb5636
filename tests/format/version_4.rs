//! Version 4: headings and table header rows that apply to the rows of segments.

use lodestone_graph::RowGraph;
use lodestone_types::{RowId, SourceId, SubTenantId};

use crate::version_3::{Fixture, source};

const FIXTURE: Fixture = Fixture { directory: "v4", collection: 0x4444 };
const CONTEXT: &str = "Sales\nBy region\n| region | units |";

#[test]
fn write_fixtures() {
    let mut sources = [
        source("bare", "bare", "pears", RowGraph::default()),
        source("table", "Report", "| north | 4 |", RowGraph::default()),
    ];
    sources[1].rows[0].context = CONTEXT.to_owned();
    FIXTURE.write(&sources);
}

#[test]
fn contexts_read_back() {
    let root = tempfile::tempdir().unwrap();
    let snapshot = FIXTURE.open(root.path()).snapshot();
    let sub_tenant = SubTenantId::default_name();
    for (id, expected) in [("bare", ""), ("table", CONTEXT)] {
        let found = snapshot.find(&sub_tenant, &SourceId::parse(id).unwrap()).unwrap();
        assert_eq!(found.live.segment.context(RowId(found.rows()[0])), expected);
    }
}
