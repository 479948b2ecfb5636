//! Copies to a device and back. On a card the small ones pass through page-locked memory.

use lodestone_compute::cuda::workspace::Workspace;

use crate::families::workspaces;

/// Page-locked memory of a queue, by which copies are sorted.
const STAGING_BYTES: usize = 4 << 20;

/// Bytes that differ from place to place, and from one `salt` to the next.
fn bytes(count: usize, salt: usize) -> Vec<u8> {
    (0..count).map(|at| ((at * 31 + at / 253 + salt * 101) % 251) as u8).collect()
}

/// Copies of every size, and in all many times what fits into page-locked memory, none of them
/// waited for: each comes back as it was when it was sent.
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
        // The sender may use its bytes again at once.
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
