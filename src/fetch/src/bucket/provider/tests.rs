use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use time::OffsetDateTime;

use super::super::credentials::{AHEAD_MILLIS, Key};
use super::super::profile::Profile;
use super::super::roles::{KeysReply, MACHINE_ROLES, Source};
use super::super::{azure, google};
use super::*;
use crate::tests::world::{Duplex, Handler, Listener, PATIENCE, pages, reply};
use lodestone_types::{ManualClock, Timestamp};

/// 2026-01-01T00:00:00Z.
const NOW: Timestamp = Timestamp(1_767_225_600_000);
const HOUR: u64 = 3_600_000;

/// The role that these variables select.
fn role(variables: &[(&str, &str)]) -> Result<Role, String> {
    let known: HashMap<&str, &str> = variables.iter().copied().collect();
    let variable = |name: &str| known.get(name).map(|value| (*value).to_owned());
    match Profile::read(&variable).unwrap().source("eu-west-1") {
        Ok(Source::Role(role)) => Ok(role),
        Ok(Source::Fixed(_)) => panic!("no role"),
        Err(error) => Err(error.to_string()),
    }
}

fn credentials_of(role: Role, clock: &Arc<ManualClock>) -> Arc<RoleCredentials> {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    Arc::new(RoleCredentials::new(role, &Authorities::default(), clock))
}

/// The key inside the credentials.
fn key_of(credentials: Credentials) -> Key {
    match credentials {
        Credentials::Key(key) => key,
        Credentials::Bearer(_) | Credentials::SharedAccess(_) => panic!("no key"),
    }
}

/// The container role's credentials from a service.
fn of_container(service: &Listener, clock: &Arc<ManualClock>) -> Arc<RoleCredentials> {
    let address = format!("http://{}/task", service.address);
    credentials_of(role(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &address)]).unwrap(), clock)
}

/// Calls `ask` from sixteen threads simultaneously.
fn ask_at_once(ask: impl Fn() + Sync) {
    let barrier = std::sync::Barrier::new(16);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                barrier.wait();
                ask();
            });
        }
    });
}

/// Waits until another thread has made the condition true.
fn until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it never is");
        thread::yield_now();
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(NOW))
}

/// A service that issues keys `1`, `2`, ..., each valid for an hour of `clock`; it fails while
/// `is_down` is not 0.
fn service(clock: &Arc<ManualClock>, is_down: &Arc<AtomicU64>) -> Listener {
    let (given, clock, is_down) = (AtomicU64::new(0), Arc::clone(clock), Arc::clone(is_down));
    let handler = move |path: &str, stream: &mut dyn Duplex| -> io::Result<()> {
        if is_down.load(Ordering::SeqCst) > 0 {
            return reply(stream, 503, "", b"secret text");
        }
        let until = i64::try_from(clock.now().0 + HOUR).unwrap() / 1000;
        let at = OffsetDateTime::from_unix_timestamp(until).unwrap();
        let (hour, minute, second) = at.to_hms();
        let until = format!("{}T{hour:02}:{minute:02}:{second:02}Z", at.date());
        let next = || given.fetch_add(1, Ordering::SeqCst) + 1;
        let body = match path {
            "/latest/api/token" => "machine-token".to_owned(),
            MACHINE_ROLES => "web-role\nother".to_owned(),
            "/sts" => format!(
                "<AssumeRoleWithWebIdentityResponse xmlns=\"http://x\">\
                 <AssumeRoleWithWebIdentityResult><Audience>a</Audience><Credentials>\
                 <AccessKeyId>{}</AccessKeyId><SecretAccessKey>s+/=</SecretAccessKey>\
                 <SessionToken>t</SessionToken><Expiration>{until}</Expiration></Credentials>\
                 </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
                next()
            ),
            "/refused" => {
                let said = b"<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>\
                    <Message>not this one</Message></Error></ErrorResponse>";
                return reply(stream, 403, "", said);
            }
            _ => format!(
                "{{\"Code\": \"Success\", \"AccessKeyId\": \"{}\", \"SecretAccessKey\": \"s+/=\", \
                 \"Token\": \"t\", \"Expiration\": \"{until}\"}}",
                next()
            ),
        };
        reply(stream, 200, "", body.as_bytes())
    };
    Listener::site(Arc::new(handler) as Handler)
}

/// The heads of the requests that a service received, in lower case.
fn heads(service: &Listener) -> Vec<String> {
    service.requests().iter().map(|head| head.to_ascii_lowercase()).collect()
}

#[test]
fn each_kind_of_role_is_asked_in_its_own_way() {
    let (clock, up) = (clock(), Arc::new(AtomicU64::new(0)));
    let service = service(&clock, &up);
    let at = |path: &str| format!("http://{}{path}", service.address);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "first&token\n").unwrap();
    let file = file.to_str().unwrap();

    let arn = "arn:aws:iam::1:role/a";
    let identity = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", file),
        ("AWS_ROLE_ARN", arn),
        ("AWS_ENDPOINT_URL_STS", &at("/sts")),
    ];
    let provider = credentials_of(role(&identity).unwrap(), &clock);
    let Key { id, secret, session_token } = key_of(provider.current().unwrap());
    assert_eq!((&*id, &*secret, session_token.as_deref()), ("1", "s+/=", Some("t")));
    let body = String::from_utf8(service.bodies().remove(0)).unwrap();
    for part in [
        "Action=AssumeRoleWithWebIdentity",
        "WebIdentityToken=first%26token",
        "RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa",
        "RoleSessionName=lodestone",
    ] {
        assert!(body.contains(part), "{body}");
    }
    // The file is rewritten before its token expires.
    std::fs::write(file, "second").unwrap();
    clock.advance_millis(HOUR);
    assert_eq!(key_of(provider.current().unwrap()).id, "2");
    assert!(String::from_utf8_lossy(&service.bodies()[1]).contains("WebIdentityToken=second"));

    let container = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*at("/task")),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file),
    ];
    let provider = credentials_of(role(&container).unwrap(), &clock);
    assert_eq!(key_of(provider.current().unwrap()).id, "3");
    assert!(heads(&service)[2].contains("authorization: second\r\n"));

    let machine = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", &*at("/"))];
    let provider = credentials_of(role(&machine).unwrap(), &clock);
    assert_eq!(key_of(provider.current().unwrap()).id, "4");
    let asked = heads(&service).split_off(3);
    assert!(asked[0].starts_with("put /latest/api/token "), "{asked:?}");
    assert!(asked[0].contains("x-aws-ec2-metadata-token-ttl-seconds: 21600"));
    assert!(asked[2].starts_with(&format!("get {MACHINE_ROLES}web-role ")), "{asked:?}");
    assert!(asked[1..].iter().all(|head| head.contains("x-aws-ec2-metadata-token: machine-token")));
}

/// Goal: services of other clouds get requests in their own form, and tokens expire as stated.
#[test]
fn tokens_of_other_clouds_are_asked_for_in_their_own_ways() {
    let reply = |token: &str, seconds: &str| {
        format!("{{\"access_token\": \"{token}\", \"expires_in\": {seconds}, \"x\": 1}}")
    };
    let [google, azure, pod] = [("g", "3599"), ("a", "\"3599\""), ("p", "3599")]
        .map(|(token, seconds)| reply(token, seconds));
    let metadata = "/computeMetadata/v1/instance/service-accounts/default/token";
    let identity = "/metadata/identity/oauth2/token?api-version=2018-02-01&client_id=c&\
        resource=https%3A%2F%2Fstorage.azure.com%2F";
    let refusal = "{\"error\": \"unauthorized_client\", \"error_description\": \"unknown\"}";
    let service = Listener::site(pages(&[
        (metadata, 200, "", &google),
        (identity, 200, "", &azure),
        ("/t/oauth2/v2.0/token", 200, "", &pod),
        ("/other/oauth2/v2.0/token", 400, "", refusal),
        ("/none/oauth2/v2.0/token", 200, "", "{\"access_token\": \"\", \"expires_in\": 1}"),
    ]));
    let (host, clock) = (service.address.to_string(), clock());
    let origin = format!("http://{host}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "hidden&\n").unwrap();
    let file = file.to_str().unwrap();
    let of = |place: &str, variables: &[(&str, &str)]| {
        let known: HashMap<&str, &str> = variables.iter().copied().collect();
        let variable = |name: &str| known.get(name).map(|value| (*value).to_owned());
        let url = place.parse().unwrap();
        let opened = match place.starts_with("gs") {
            true => google::open(&variable, &url),
            false => azure::open(&variable, &url),
        };
        let Source::Role(role) = opened.unwrap().source else { panic!("no role") };
        credentials_of(role, &clock)
    };
    let machine = of("gs://acme/x", &[("GCE_METADATA_HOST", &*host)]);
    assert!(machine.current().unwrap() == Credentials::Bearer("g".into()));
    assert!(heads(&service)[0].contains("metadata-flavor: google\r\n"));
    let account = ("AZURE_STORAGE_ACCOUNT", "acme");
    let (host, client) =
        (("AZURE_POD_IDENTITY_AUTHORITY_HOST", &*origin), ("AZURE_CLIENT_ID", "c"));
    let identity = of("az://acme/x", &[account, host, client]);
    assert!(identity.current().unwrap() == Credentials::Bearer("a".into()));
    assert!(heads(&service)[1].contains("metadata: true\r\n"));

    let authority = ("AZURE_AUTHORITY_HOST", &*format!("{origin}/"));
    let pod = |tenant: &str| {
        let tenant = ("AZURE_TENANT_ID", tenant);
        let token_file = ("AZURE_FEDERATED_TOKEN_FILE", file);
        of("az://acme/x", &[account, client, authority, tenant, token_file])
    };
    let workload = pod("t");
    assert!(workload.current().unwrap() == Credentials::Bearer("p".into()));
    let body = String::from_utf8(service.bodies()[2].clone()).unwrap();
    for part in ["client_assertion=hidden%26", "scope=https%3A%2F%2Fstorage.azure.com%2F.default"] {
        assert!(body.contains(part), "{body}");
    }
    clock.advance_millis(3_599_000 - AHEAD_MILLIS - 1);
    assert!(workload.current().is_ok() && service.requests().len() == 3, "it is still good");
    clock.advance_millis(AHEAD_MILLIS + 1);
    assert!(workload.current().is_ok() && service.requests().len() == 4, "it has ended");
    let error = pod("other").current().unwrap_err();
    assert!(error.contains("400 unauthorized_client: unknown"), "{error}");
    assert!(error.contains(&format!("workload's identity from {origin}")), "{error}");
    assert!(!error.contains("hidden"), "{error}");
    let error = pod("none").current().unwrap_err();
    assert!(error.contains("an answer without a token"), "{error}");
}

#[test]
fn credentials_are_renewed_ahead_and_used_on_while_the_service_is_down() {
    let (clock, is_down) = (clock(), Arc::new(AtomicU64::new(0)));
    let service = service(&clock, &is_down);
    let provider = of_container(&service, &clock);
    let key = || provider.current().map(|credentials| key_of(credentials).id);
    let count = || service.requests().len();
    assert_eq!((key().unwrap(), key().unwrap(), count()), ("1".into(), "1".into(), 1));
    clock.advance_millis(HOUR - AHEAD_MILLIS - 1);
    assert_eq!((key().unwrap(), count()), ("1".into(), 1));
    clock.advance_millis(1);
    assert_eq!(key().unwrap(), "1", "no request waits while these are valid");
    until(|| key().unwrap() == "2");
    assert_eq!(count(), 2);

    let is_idle = || !provider.is_renewing.load(Ordering::SeqCst);
    is_down.store(1, Ordering::SeqCst);
    clock.advance_millis(HOUR - AHEAD_MILLIS);
    assert_eq!(key().unwrap(), "2");
    until(|| count() == 3 && is_idle());
    assert_eq!((key().unwrap(), count()), ("2".into(), 3), "not again so soon");
    clock.advance_millis(RETRY_MILLIS);
    assert_eq!(key().unwrap(), "2");
    until(|| count() == 4 && is_idle());
    clock.advance_millis(AHEAD_MILLIS - RETRY_MILLIS);
    let error = key().unwrap_err();
    let origin = format!("http://{}", service.address);
    assert!(error.contains("503") && error.contains(&origin), "{error}");
    assert!(!error.contains("secret text") && !error.contains("/task"), "{error}");

    is_down.store(0, Ordering::SeqCst);
    until(|| key().is_ok_and(|key| key == "3"));
}

/// Goal: with a service that fails slowly and a clock that goes back, waiting callers get the
/// failure of the one that asked, and a later call asks again.
#[test]
fn a_failure_is_the_answer_to_all_who_wait_and_is_not_kept() {
    let (clock, asked) = (clock(), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&asked);
    let handler = move |_: &str, stream: &mut dyn Duplex| -> io::Result<()> {
        counted.fetch_add(1, Ordering::SeqCst);
        thread::park_timeout(Duration::from_millis(300));
        reply(stream, 503, "", b"")
    };
    let service = Listener::site(Arc::new(handler) as Handler);
    let provider = of_container(&service, &clock);
    ask_at_once(|| assert!(provider.current().is_err()));
    let count = asked.load(Ordering::SeqCst);
    assert!(count <= 3, "{count} requests for one failure");
    clock.set_back_millis(HOUR);
    until(|| provider.current().is_err() && asked.load(Ordering::SeqCst) > count);
}

#[test]
fn keys_of_a_machine_are_used_beyond_their_end_and_asked_for_again() {
    let (clock, is_down) = (clock(), Arc::new(AtomicU64::new(0)));
    let service = service(&clock, &is_down);
    let address = format!("http://{}", service.address);
    let machine = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", &*address)];
    let provider = credentials_of(role(&machine).unwrap(), &clock);
    let key = || provider.current().map(|credentials| key_of(credentials).id);
    assert_eq!(key().unwrap(), "1");
    is_down.store(1, Ordering::SeqCst);
    clock.advance_millis(2 * HOUR);
    assert_eq!(key().unwrap(), "1", "its service is down");
    is_down.store(0, Ordering::SeqCst);
    clock.advance_millis(RETRY_MILLIS);
    until(|| key().unwrap() == "2");
    let ended = || KeysReply {
        access_key_id: "k".into(),
        secret_access_key: "s".into(),
        expiration: Some("2025-12-31T23:59:59Z".into()),
        ..KeysReply::default()
    };
    assert!(
        ended().into_credentials(NOW, true).unwrap().renew_at > NOW,
        "the service itself is behind"
    );
    assert!(ended().into_credentials(NOW, false).is_err());
}

#[test]
fn credentials_that_the_store_refuses_are_discarded_once() {
    let (clock, is_down) = (clock(), Arc::new(AtomicU64::new(0)));
    let service = service(&clock, &is_down);
    let provider = CredentialProvider::Role(of_container(&service, &clock));
    let first = provider.current().unwrap();
    assert!(provider.discard(&first));
    let second = provider.current().unwrap();
    assert_eq!(key_of(second).id, "2");
    // Discarding the first credentials again does not affect the second ones.
    assert!(provider.discard(&first));
    assert_eq!(key_of(provider.current().unwrap()).id, "2");
    assert!(!CredentialProvider::Static(first.clone()).discard(&first), "there are no others");
}

#[test]
fn many_requests_at_once_ask_once() {
    let (clock, is_down) = (clock(), Arc::new(AtomicU64::new(0)));
    let service = service(&clock, &is_down);
    let provider = of_container(&service, &clock);
    ask_at_once(|| assert_eq!(key_of(provider.current().unwrap()).id, "1"));
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn a_refusal_and_an_answer_without_keys_are_told() {
    let (clock, is_down) = (clock(), Arc::new(AtomicU64::new(0)));
    let service = service(&clock, &is_down);
    let refused = format!("http://{}/refused", service.address);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "hidden").unwrap();
    let told = |service: &str, file: &str| {
        let identity = [
            ("AWS_WEB_IDENTITY_TOKEN_FILE", file),
            ("AWS_ROLE_ARN", "arn:a"),
            ("AWS_ENDPOINT_URL_STS", service),
        ];
        credentials_of(role(&identity).unwrap(), &clock).current().unwrap_err()
    };
    let error = told(&refused, file.to_str().unwrap());
    assert!(error.contains("arn:a") && error.contains("AccessDenied: not this one"), "{error}");
    assert!(!error.contains("hidden"), "{error}");
    let error = told(&refused, "/nowhere/token");
    assert!(error.contains("/nowhere/token"), "{error}");
    let other = Listener::site(pages(&[
        ("/sts", 200, "", "{}"),
        ("/json", 403, "", r#"{"code": "InvalidToken", "message": "too old"}"#),
    ]));
    let error = told(&format!("http://{}/sts", other.address), file.to_str().unwrap());
    assert!(error.contains("an answer without credentials"), "{error}");
    let error = told(&format!("http://{}/json", other.address), file.to_str().unwrap());
    assert!(error.contains("403 InvalidToken: too old"), "{error}");
    let of_machine = |code: &str| KeysReply { code: code.into(), ..KeysReply::default() };
    let refusal =
        of_machine("AssumeRoleUnauthorizedAccess").into_credentials(NOW, true).unwrap_err();
    assert_eq!(refusal, "AssumeRoleUnauthorizedAccess: ");
    let ended = KeysReply {
        access_key_id: "k".into(),
        secret_access_key: "hidden".into(),
        expiration: Some("2025-12-31T23:59:59.5Z".into()),
        ..KeysReply::default()
    };
    let error = ended.into_credentials(NOW, false).unwrap_err();
    assert_eq!(error, "credentials expired at 2025-12-31T23:59:59.5Z");
    let endless: KeysReply =
        serde_json::from_str(r#"{"AccessKeyId": "k", "SecretAccessKey": "s"}"#).unwrap();
    let endless = endless.into_credentials(NOW, false).unwrap();
    let session_token = key_of(endless.credentials).session_token;
    assert_eq!((endless.renew_at.0, session_token), (u64::MAX, None));
}

#[test]
fn credentials_of_a_container_are_not_asked_for_in_the_open() {
    let of = |address: &str| role(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", address)]);
    for near in [
        "http://127.0.0.1:5/x", "http://localhost/x", "http://169.254.170.23/v1/credentials",
        "http://[fd00:ec2::23]/v1", "https://keys.example/x",
    ] {
        assert!(of(near).is_ok(), "{near}");
    }
    for wrong in [
        "http://keys.example/x", "http://10.0.0.1/x", "http://127.evil.example/x",
        "ftp://localhost/x", "x",
    ] {
        let error = of(wrong).unwrap_err();
        assert!(error.contains("must begin with https://") && !error.contains("/x"), "{error}");
    }
    let relative = role(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1")]);
    let shown = relative.unwrap().to_string();
    assert_eq!(shown, "the container's role from http://169.254.170.2", "the path is a secret");
    let off = role(&[("AWS_EC2_METADATA_DISABLED", "true")]).unwrap_err();
    assert!(off.contains("no credentials") && off.contains("AWS_EC2_METADATA_DISABLED"), "{off}");
}
