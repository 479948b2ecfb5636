//! A server that uses its bucket with temporary credentials of a role, which expire and are
//! renewed.

use serde_json::json;

use crate::backups::{another, put, seen, sentence, wait};
use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::s3::Store;
use crate::shared_store::PLACE;
use crate::{Installation, ask};

/// Goal: a server keeps writing and reading while its credentials expire every three seconds, once
/// ahead of the announced time. No request is rejected, and nothing that was acknowledged is
/// missing afterwards.
#[test]
fn a_server_outlives_its_keys() {
    let test = "a_server_outlives_its_keys";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let origin = format!("http://{}", store.client.address);
    let keys = format!("{origin}/keys/3");
    let variables = [
        ("AWS_ENDPOINT_URL_S3", &*origin),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &keys),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "role-token"),
        ("LODESTONE_STORE", PLACE),
    ];
    let (mut server, client) = installation.start_with(&variables);
    // A slow start uses up credentials too; only those issued while sources arrive count.
    let (begun, mut patience, mut count) = (store.number("given"), Patience::new(), 0);
    while count < 8 || store.number("given") < begun + 3 {
        put(&client, "acme", &format!("s{count}"), &sentence(count));
        if count % 8 == 7 {
            let gone = json!({"source_ids": [format!("s{}", count - 7)]});
            ask(&client, "DELETE", "/delete_source?tenant_id=acme", gone);
        }
        count += 1;
        if count == 4 {
            store.expire_keys();
        }
        assert!(!patience.is_over(store.number("given")), "keys are renewed");
    }
    wait(&client, "acme");
    let expected = seen(&client, "acme");
    // After a kill, the next server would have to wait 15 seconds for the lease.
    server.terminate();
    assert!(server.ended().is_some_and(|status| status.success()), "{}", server.output());
    let elsewhere = another(&installation);
    let (_server, fresh) = elsewhere.start_with(&variables);
    let client = Client { key: client.key, ..fresh };
    assert_eq!(seen(&client, "acme"), expected);
}

/// Goal: a role that issues no credentials is reported at the start, with the address that was
/// asked.
#[test]
fn a_role_without_keys_is_named() {
    let test = "a_role_without_keys_is_named";
    let Some(store) = Store::start(test) else { return };
    let keys = format!("http://{}/keys/3", store.client.address);
    let mut command = crate::process::lodestone(&["doctor", "--store", PLACE]);
    command.env("AWS_CONTAINER_CREDENTIALS_FULL_URI", &keys);
    command.env("AWS_CONTAINER_AUTHORIZATION_TOKEN", "another-token");
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(!output.status.success(), "{said}");
    let origin = keys.trim_end_matches("/keys/3");
    assert!(said.contains(origin) && said.contains("401"), "{said}");
    assert!(!said.contains("/keys/3"), "the path may be a secret: {said}");
    assert!(said.contains("no credentials for the bucket"), "{said}");
    assert!(!said.contains("another-token"), "{said}");
}
