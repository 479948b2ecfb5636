//! Nodes of other roles that a server would use. It starts even if they do not respond.

use lodestone_engine::backup::Opener;
use lodestone_engine::ingest::nodes::describe;
use lodestone_engine::nodes::{QueryNode, RELEASE, headers, writer_at};
use lodestone_engine::read_store;
use lodestone_engine::settings::{NodeSettings, Settings};
use lodestone_fetch::{Authorities, Forwarder};

use crate::cli::scratch::Scratch;

/// Reports the writer and its standbys, as reached by a query node, which starts even without them.
pub fn writer(settings: &Settings) -> Result<Option<String>, String> {
    if !settings.store.nodes.only_reads() {
        return Ok(None);
    }
    let authorities = settings.tls.authorities().map_err(|error| error.to_string())?;
    let followed = followed_writer(settings, &authorities);
    let (mut told, mut has_writer) = (Vec::new(), false);
    for url in settings.store.nodes.writers() {
        let writer = writer_at(&Forwarder::new(url, &authorities)?);
        has_writer |= writer.is_ok();
        told.push(match (writer, &followed) {
            (Err(problem), _) => problem,
            (Ok(name), Some(followed)) if name.to_string() != *followed => {
                let problem = "does not write the data of the bucket: check --writer-url";
                return Err(format!("{url} {problem} and --store"));
            }
            (Ok(_), Some(_)) => format!("{url} writes to the bucket"),
            (Ok(_), None) => format!("{url} writes to a bucket"),
        });
    }
    if !has_writer {
        told.push("without a writer, searches work and changes are refused".to_owned());
    }
    Ok(Some(told.join("; ")))
}

/// The name of the process that writes the data of the bucket, if they can be read.
fn followed_writer(settings: &Settings, authorities: &Authorities) -> Option<String> {
    let url = settings.store.store.as_ref()?;
    let (settings, authorities) = (settings.backups.bucket.clone(), authorities.clone());
    let scratch = Scratch::new().ok()?;
    let opener = Opener { settings, authorities };
    let (_store, log) = read_store(url, &opener, scratch.path()).ok()?;
    Some(log.newest_writer().ok()??.to_string())
}

/// Returns a line for each node that the settings name.
pub fn found(settings: &Settings, fingerprint: Option<&str>) -> Vec<String> {
    let nodes = &settings.store.nodes;
    let authorities = match settings.tls.authorities() {
        Ok(authorities) => authorities,
        Err(error) => return vec![error.to_string()],
    };
    let unused = |problem| format!("currently not used: {problem}");
    let ingest = nodes.ingest_nodes().map(|url| ingest_node(nodes, &authorities, url, fingerprint));
    let mut found: Vec<String> = ingest.map(|found| found.unwrap_or_else(unused)).collect();
    if nodes.query_nodes().next().is_some() {
        let writer = nodes.writers().find_map(|url| {
            writer_at(&Forwarder::new(url, &authorities).ok()?).ok().map(|name| name.to_string())
        });
        let writer = writer.as_deref();
        let query = nodes.query_nodes().map(|url| query_node(nodes, &authorities, url, writer));
        found.extend(query.map(|found| found.unwrap_or_else(unused)));
    }
    found
}

fn ingest_node(
    nodes: &NodeSettings,
    authorities: &Authorities,
    url: &str,
    fingerprint: Option<&str>,
) -> Result<String, String> {
    let headers = headers(nodes).map_err(|error| error.to_string())?;
    let node = describe(&Forwarder::new(url, authorities)?, &headers)
        .map_err(|problem| format!("{url}: {problem}"))?;
    let has_model = |own: &str| node.models.iter().any(|known| known == own);
    Ok(match (fingerprint.is_some_and(has_model), node.version == RELEASE) {
        (true, true) => format!("{url} parses and embeds: {}", node.device),
        (true, false) => format!("{url} only embeds: it is of release {}", node.version),
        (false, true) => format!("{url} only parses: it does not have this server's model"),
        (false, false) => format!("{url} is not used: its release and its models differ"),
    })
}

/// Queries a query node; `writer` is the name of the process at the writer's address.
fn query_node(
    nodes: &NodeSettings,
    authorities: &Authorities,
    url: &str,
    writer: Option<&str>,
) -> Result<String, String> {
    let headers = headers(nodes).map_err(|error| error.to_string())?;
    let forwarder = Forwarder::new(url, authorities)?;
    let node = QueryNode::ask(&forwarder, &headers).map_err(|problem| {
        let writes = writer_at(&forwarder).is_ok();
        if writes { format!("{url} is the writer, not a query node") } else { problem }
    })?;
    let is_same_release = node.release == RELEASE;
    let mut facts = vec![format!("{url} answers, release {}", node.release)];
    match writer {
        Some(writer) if writer == node.writer.to_string() => {
            facts.push("follows the writer".to_owned());
        }
        Some(_) => facts.push("follows another process than the one at writer-url".to_owned()),
        None => facts.push("cannot tell whom it follows, as writer-url does not answer".into()),
    }
    if node.is_joining {
        facts.push("is opening its tenants, others answer for them meanwhile".to_owned());
    }
    if nodes.shared_search_rows.is_some() {
        facts.push(match (node.accepts_key, is_same_release) {
            (Some(true), true) => "shares searches".to_owned(),
            (Some(true), false) => format!("shares no searches: this release is {RELEASE}"),
            (Some(false), _) => "shares no searches: its node-key differs".to_owned(),
            (None, _) => "shares no searches: it was started without shared-search-rows".to_owned(),
        });
    }
    Ok(facts.join("; "))
}
