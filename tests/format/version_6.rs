//! Version 6: sparse vectors in segments.

use lodestone_graph::RowGraph;
use lodestone_storage::segment::SparseRow;
use lodestone_types::{RowId, SourceId, SubTenantId};

use crate::version_3::{Fixture, source};

const FIXTURE: Fixture = Fixture { directory: "v6", collection: 0x6666 };
const MODEL: [u8; 32] = [6; 32];

#[test]
fn write_fixtures() {
    let mut sources = [
        source("bare", "bare", "pears", RowGraph::default()),
        source("both", "Report", "apples and pears", RowGraph::default()),
    ];
    for (source, weights) in sources.iter_mut().zip([vec![(7, 1.5)], vec![(7, 0.25), (900, 3.0)]]) {
        source.rows[0].sparse = Some(SparseRow { model: MODEL, weights });
    }
    FIXTURE.write(&sources);
}

#[test]
fn vectors_read_back() {
    let root = tempfile::tempdir().unwrap();
    let snapshot = FIXTURE.open(root.path()).snapshot();
    let sub_tenant = SubTenantId::default_name();
    for (id, expected) in [("bare", 3.0), ("both", 0.5 + 12.0)] {
        let found = snapshot.find(&sub_tenant, &SourceId::parse(id).unwrap()).unwrap();
        let impacts = found.live.segment.impacts().unwrap().expect("vectors");
        assert_eq!(impacts.model(), &MODEL);
        let scores = impacts.score(&[(7, 2.0), (900, 4.0), (8, 9.0)], None).unwrap();
        assert_eq!(scores.get(RowId(found.rows()[0])), expected, "{id}");
    }
}
