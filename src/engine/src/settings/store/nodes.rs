//! Settings of one process among several on one bucket.

use clap::{ArgAction, Args, ValueEnum};

use crate::settings::InvalidSetting;
use lodestone_types::Secret;

/// Maximum number of nodes per role.
const NODES_MAX: usize = 64;
/// Minimum length of the node key in characters.
const KEY_CHARS_MIN: usize = 32;

/// Role of a process among several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum NodeRole {
    /// Writes, and does everything else too.
    #[default]
    All,
    /// Answers searches and questions, and forwards writes.
    Query,
    /// Parses and embeds documents for others, and stores no data.
    Ingest,
}

/// Role of this process among several, and the other processes it knows.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct NodeSettings {
    /// Role of this process: `all` does everything, and is the only one that writes; `query`
    /// answers searches and questions from the same bucket and forwards writes; `ingest` parses and
    /// embeds documents for a writer that lists it in ingest-nodes, and stores no data.
    #[arg(
        long,
        env = "LODESTONE_ROLE",
        value_name = "ROLE",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub role: NodeRole,
    /// Comma-separated URLs of the writer and its standbys, for example http://10.0.0.5:8080. Host
    /// names may resolve to whichever one is active. Required for the role `query` [default: none].
    #[arg(long, env = "LODESTONE_WRITER_URL", value_name = "URLS", value_delimiter = ',')]
    pub writer_url: Vec<String>,
    /// Whether this process waits while another one writes to the bucket, and takes over when that
    /// one exits or has not renewed its lease for 15 seconds.
    #[arg(
        long,
        env = "LODESTONE_STANDBY",
        value_name = "BOOLEAN",
        action = ArgAction::Set,
        default_value_t = false
    )]
    pub standby: bool,
    /// Comma-separated URLs of all query nodes including this one, the same list on each node. Each
    /// tenant is then served and cached by one of them, whichever node receives a request [default:
    /// none, each node serves every tenant].
    #[arg(long, env = "LODESTONE_QUERY_NODES", value_name = "URLS", value_delimiter = ',')]
    pub query_nodes: Vec<String>,
    /// Number of rows from which searches of a tenant or sub-tenant are shared among the query
    /// nodes. Each node searches some of the segments, and needs memory only for those; requires
    /// query-nodes and node-key [default: none, one node searches all segments].
    #[arg(long, env = "LODESTONE_SHARED_SEARCH_ROWS", value_name = "ROWS")]
    pub shared_search_rows: Option<u64>,
    /// Whether query nodes read from the bucket that this process writes to. Changes are then
    /// acknowledged two seconds later, once all nodes have seen them.
    #[arg(
        long,
        env = "LODESTONE_WITH_QUERY_NODES",
        value_name = "BOOLEAN",
        action = ArgAction::Set,
        default_value_t = false
    )]
    pub with_query_nodes: bool,
    /// Comma-separated URLs of processes with the role `ingest` that parse and embed documents for
    /// this one, for example http://10.0.0.7:8080,http://10.0.0.8:8080 [default: none].
    #[arg(long, env = "LODESTONE_INGEST_NODES", value_name = "URLS", value_delimiter = ',')]
    pub ingest_nodes: Vec<String>,
    /// Shared key of at least 32 characters, the same on all nodes; required by ingest nodes and by
    /// query nodes that share searches.
    #[arg(long, env = "LODESTONE_NODE_KEY", value_name = "KEY", hide_env_values = true)]
    pub node_key: Option<Secret>,
}

impl NodeSettings {
    /// Whether this process only reads.
    pub fn only_reads(&self) -> bool {
        self.role == NodeRole::Query
    }

    /// Whether this process works for others and has no data of its own.
    pub fn is_ingest_node(&self) -> bool {
        self.role == NodeRole::Ingest
    }

    /// Returns the URLs at which the writer may be.
    pub fn writers(&self) -> impl Iterator<Item = &str> {
        named(&self.writer_url)
    }

    /// Returns the URLs of the ingest nodes.
    pub fn ingest_nodes(&self) -> impl Iterator<Item = &str> {
        named(&self.ingest_nodes)
    }

    /// Returns the URLs of the query nodes that share the tenants.
    pub fn query_nodes(&self) -> impl Iterator<Item = &str> {
        named(&self.query_nodes)
    }

    fn validate_sharing(&self) -> Result<(), InvalidSetting> {
        let Some(rows) = self.shared_search_rows else { return Ok(()) };
        let problem = match (self.role, &self.node_key) {
            (NodeRole::All | NodeRole::Ingest, _) => "is only allowed with the role query",
            _ if rows == 0 => "must be at least 1; leave it out to share no searches",
            _ if self.query_nodes().next().is_none() => "needs query-nodes",
            (NodeRole::Query, None) => "needs node-key",
            (NodeRole::Query, Some(_)) => return Ok(()),
        };
        Err(InvalidSetting { name: "shared-search-rows", problem: problem.to_owned() })
    }

    pub(super) fn validate(&self, has_bucket: bool) -> Result<(), InvalidSetting> {
        let invalid = |name: &'static str, problem: &str| {
            Err(InvalidSetting { name, problem: problem.to_owned() })
        };
        let is_address = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        let (has_ingest_nodes, has_query_nodes) =
            (self.ingest_nodes().next().is_some(), self.query_nodes().next().is_some());
        let has_writers = self.writers().next().is_some();
        match self.role {
            NodeRole::Query if !has_bucket => return invalid("role", "query needs store"),
            NodeRole::Query if !has_writers => return invalid("role", "query needs writer-url"),
            NodeRole::Query if self.with_query_nodes => {
                return invalid("with-query-nodes", "is only allowed for the writer");
            }
            NodeRole::Query | NodeRole::Ingest if self.standby => {
                return invalid("standby", "is only allowed with the role all");
            }
            NodeRole::Ingest if has_bucket => {
                return invalid("role", "must not be ingest with store: ingest nodes hold no data");
            }
            NodeRole::Query | NodeRole::Ingest if has_ingest_nodes => {
                return invalid("ingest-nodes", "is only allowed for the writer");
            }
            NodeRole::All | NodeRole::Ingest if has_writers => {
                return invalid("writer-url", "is only allowed with the role query");
            }
            NodeRole::All | NodeRole::Ingest if has_query_nodes => {
                return invalid("query-nodes", "is only allowed with the role query");
            }
            NodeRole::All if self.with_query_nodes && !has_bucket => {
                return invalid("with-query-nodes", "needs store");
            }
            NodeRole::All if self.standby && !has_bucket => {
                return invalid("standby", "needs store");
            }
            _ => {}
        }
        let lists = [
            ("writer-url", self.writers().collect()),
            ("ingest-nodes", self.ingest_nodes().collect()),
            ("query-nodes", self.query_nodes().collect::<Vec<_>>()),
        ];
        for (name, urls) in lists {
            if let Some(url) = urls.iter().find(|url| !is_address(url)) {
                return invalid(
                    name,
                    &format!("contains {url:?}, which does not begin with http:// or https://"),
                );
            }
            if urls.len() > NODES_MAX {
                return invalid(name, "must be at most 64 addresses");
            }
        }
        self.validate_sharing()?;
        let is_short = |key: &Secret| key.expose().chars().count() < KEY_CHARS_MIN;
        match &self.node_key {
            Some(key) if is_short(key) => invalid("node-key", "must be at least 32 characters"),
            None if self.is_ingest_node() => {
                invalid("role", "ingest needs node-key (LODESTONE_NODE_KEY)")
            }
            None if has_ingest_nodes => invalid("ingest-nodes", "needs node-key"),
            _ => Ok(()),
        }
    }
}

/// Returns the non-empty URLs of a list, trimmed.
fn named(urls: &[String]) -> impl Iterator<Item = &str> {
    urls.iter().map(|url| url.trim()).filter(|url| !url.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let url = vec!["http://writer:8080".to_owned()];
        let all = NodeSettings::default;
        let query = || NodeSettings { role: NodeRole::Query, writer_url: url.clone(), ..all() };
        let key = Some(Secret::new("k".repeat(32)));
        let ingest = || NodeSettings { role: NodeRole::Ingest, node_key: key.clone(), ..all() };
        let nodes = |urls: &[&str]| {
            let ingest_nodes = urls.iter().map(|url| (*url).to_owned()).collect();
            NodeSettings { ingest_nodes, node_key: key.clone(), ..all() }
        };
        let check = |settings: NodeSettings, has_bucket| {
            settings.validate(has_bucket).map_err(|error| error.name)
        };
        assert_eq!(check(all(), false), Ok(()));
        assert_eq!(check(NodeSettings { with_query_nodes: true, ..all() }, true), Ok(()));
        assert_eq!(check(query(), true), Ok(()));
        assert_eq!(check(query(), false), Err("role"));
        assert_eq!(check(NodeSettings { writer_url: vec![], ..query() }, true), Err("role"));
        assert_eq!(
            check(NodeSettings { writer_url: url.clone(), ..all() }, true),
            Err("writer-url")
        );
        let bare = vec!["http://writer:8080".to_owned(), "writer:8080".to_owned()];
        assert_eq!(check(NodeSettings { writer_url: bare, ..query() }, true), Err("writer-url"));
        let waits = |settings| NodeSettings { with_query_nodes: true, ..settings };
        assert_eq!(check(waits(query()), true), Err("with-query-nodes"));
        assert_eq!(check(waits(all()), false), Err("with-query-nodes"));
        let later = |settings| NodeSettings { standby: true, ..settings };
        assert_eq!(check(later(all()), true), Ok(()));
        assert_eq!(check(later(all()), false), Err("standby"));
        assert_eq!(check(later(query()), true), Err("standby"));
        let others = |settings| NodeSettings { query_nodes: vec!["http://a:1".into()], ..settings };
        assert_eq!(check(others(query()), true), Ok(()));
        assert_eq!(check(others(all()), true), Err("query-nodes"));
        let shared = |settings| NodeSettings { shared_search_rows: Some(1), ..settings };
        assert_eq!(check(shared(query()), true), Err("shared-search-rows"));
        assert_eq!(check(shared(others(query())), true), Err("shared-search-rows"));
        let with_key = |settings| NodeSettings { node_key: key.clone(), ..settings };
        assert_eq!(check(shared(with_key(others(query()))), true), Ok(()));
        let none = NodeSettings { shared_search_rows: Some(0), ..with_key(others(query())) };
        assert_eq!(check(none, true), Err("shared-search-rows"));
        assert_eq!(check(shared(with_key(all())), true), Err("shared-search-rows"));
        let bare = NodeSettings { query_nodes: vec!["a:1".into()], ..query() };
        assert_eq!(check(bare, true), Err("query-nodes"));
        assert_eq!(check(ingest(), false), Ok(()));
        assert_eq!(check(ingest(), true), Err("role"));
        assert_eq!(check(NodeSettings { node_key: None, ..ingest() }, false), Err("role"));
        let short = Some(Secret::new("k".repeat(31)));
        assert_eq!(check(NodeSettings { node_key: short, ..ingest() }, false), Err("node-key"));
        assert_eq!(check(nodes(&["http://a:1", "https://b"]), false), Ok(()));
        assert_eq!(check(nodes(&["http://a:1", " http://b", ""]), false), Ok(()));
        assert_eq!(check(nodes(&["http://a:1", "b:2"]), false), Err("ingest-nodes"));
        assert_eq!(check(nodes(&["http://a"; 65]), false), Err("ingest-nodes"));
        let keyless = NodeSettings { node_key: None, ..nodes(&["http://a:1"]) };
        assert_eq!(check(keyless, false), Err("ingest-nodes"));
        let both = NodeSettings { role: NodeRole::Query, writer_url: url, ..nodes(&["http://a"]) };
        assert_eq!(check(both, true), Err("ingest-nodes"));
    }
}
