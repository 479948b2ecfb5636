//! Tests of links that sign in to the console.

use super::*;
use lodestone_catalog::AuthError;

const MINUTE: u64 = 60 * 1000;

/// Goal: a link gives full access for ten minutes, and leaves no keys behind.
/// Method: the test advances the clock.
#[test]
fn a_link_lasts_ten_minutes_and_leaves_no_keys_behind() {
    let rig = Rig::new();
    let operator = Catalog::operator_grant();
    let before = rig.engine.keys(&operator).unwrap().len();
    let first = rig.engine.sign_in_key().unwrap();
    assert_eq!(rig.engine.catalog.authenticate(first.expose()).unwrap().role, Role::Admin);
    rig.clock.advance_millis(9 * MINUTE);
    assert!(rig.engine.catalog.authenticate(first.expose()).is_ok());
    rig.clock.advance_millis(MINUTE);
    let late = rig.engine.catalog.authenticate(first.expose());
    assert!(matches!(late, Err(AuthError::Expired)), "{late:?}");
    rig.engine.sign_in_key().unwrap();
    assert_eq!(rig.engine.keys(&operator).unwrap().len(), before + 1);
}
