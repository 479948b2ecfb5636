//! Copies to and from a device. On a card, small ones pass through page-locked memory.

use lodestone_compute::cuda::workspace::Workspace;

use crate::families::workspaces;

/// Size of a queue's page-locked memory, which determines how copies are made.
const STAGING_BYTES: usize = 4 << 20;

/// Bytes that vary with their position and with `salt`.
fn bytes(count: usize, salt: usize) -> Vec<u8> {
    (0..count).map(|at| ((at * 31 + at / 253 + salt * 101) % 251) as u8).collect()
}

/// Goal: copies of every size, in total many times the size of the page-locked memory and without
/// waiting in between, come back as they were sent.
#[test]
fn copies_come_home_as_they_were_sent() {
    for mut workspace in workspaces("copies_come_home_as_they_were_sent") {
        let sizes = [1, 63, 64, 65, 4096, 100_001, 1 << 20, STAGING_BYTES, STAGING_BYTES + 1];
        let sizes: Vec<usize> = sizes.into_iter().chain([300_000; 20]).collect();
        check_copies(&mut workspace, &sizes);
    }
}

fn check_copies(workspace: &mut Workspace, sizes: &[usize]) {
    let total = sizes.iter().sum();
    let buffer = workspace.device().allocate(total).unwrap();
    let mut at = 0;
    for (salt, size) in sizes.iter().enumerate() {
        let mut sent = bytes(*size, salt);
        workspace.queue.upload(&buffer, at, &sent).unwrap();
        // The sender may reuse its bytes immediately.
        sent.fill(0xff);
        at += size;
    }
    let mut at = 0;
    for (salt, size) in sizes.iter().enumerate() {
        let mut home = vec![0; *size];
        workspace.queue.download(&buffer, at, &mut home).unwrap();
        assert!(home == bytes(*size, salt), "{size} bytes, the {salt}th copy");
        at += size;
    }
    workspace.queue.fill(&buffer, 0..total, 7).unwrap();
    let mut home = vec![0; total];
    workspace.queue.download(&buffer, 0, &mut home).unwrap();
    assert!(home.iter().all(|byte| *byte == 7));
}
