//! Settings of one process among several on one bucket.

use clap::{ArgAction, Args, ValueEnum};

use crate::settings::InvalidSetting;

/// The part of a process among those on one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum NodeRole {
    /// It writes, and does everything else too.
    #[default]
    All,
    /// It answers searches and questions, and passes on what has to be written.
    Query,
}

/// The part of this process among those on one bucket.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct NodeSettings {
    /// Part of this process among those that use one bucket: `all` is the one that writes; `query`
    /// answers searches and questions over the same data, and passes on what has to be written.
    #[arg(
        long,
        env = "LODESTONE_ROLE",
        value_name = "ROLE",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub role: NodeRole,
    /// Address of the process that writes, for example http://10.0.0.5:8080, or of a name that
    /// leads to it; needed by the role `query` [default: none].
    #[arg(long, env = "LODESTONE_WRITER_URL", value_name = "URL")]
    pub writer_url: Option<String>,
    /// Whether others answer from the bucket that this process writes to: what has changed is told
    /// two seconds later, when they all know of it.
    #[arg(
        long,
        env = "LODESTONE_WITH_QUERY_NODES",
        value_name = "BOOLEAN",
        action = ArgAction::Set,
        default_value_t = false
    )]
    pub with_query_nodes: bool,
}

impl NodeSettings {
    /// Whether this process only reads.
    pub fn only_reads(&self) -> bool {
        self.role == NodeRole::Query
    }

    pub(super) fn validate(&self, has_bucket: bool) -> Result<(), InvalidSetting> {
        let invalid = |name: &'static str, problem: &str| {
            Err(InvalidSetting { name, problem: problem.to_owned() })
        };
        let url = self.writer_url.as_deref();
        match (self.role, url) {
            (NodeRole::Query, _) if !has_bucket => invalid("role", "query needs store"),
            (NodeRole::Query, None) => invalid("role", "query needs writer-url"),
            (NodeRole::All, Some(_)) => invalid("writer-url", "is for the role query"),
            (_, Some(url)) if !url.starts_with("http://") && !url.starts_with("https://") => {
                invalid("writer-url", "must begin with http:// or https://")
            }
            (NodeRole::Query, _) if self.with_query_nodes => {
                invalid("with-query-nodes", "is for the process that writes")
            }
            _ if self.with_query_nodes && !has_bucket => invalid("with-query-nodes", "needs store"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let check = |role, url: Option<&str>, with_query_nodes, has_bucket| {
            let writer_url = url.map(str::to_owned);
            let settings = NodeSettings { role, writer_url, with_query_nodes };
            settings.validate(has_bucket).map_err(|error| error.name)
        };
        let (all, query, url) = (NodeRole::All, NodeRole::Query, Some("http://writer:8080"));
        assert_eq!(check(all, None, false, false), Ok(()));
        assert_eq!(check(all, None, true, true), Ok(()));
        assert_eq!(check(query, url, false, true), Ok(()));
        assert_eq!(check(query, url, false, false), Err("role"));
        assert_eq!(check(query, None, false, true), Err("role"));
        assert_eq!(check(all, url, false, true), Err("writer-url"));
        assert_eq!(check(query, Some("writer:8080"), false, true), Err("writer-url"));
        assert_eq!(check(query, url, true, true), Err("with-query-nodes"));
        assert_eq!(check(all, None, true, false), Err("with-query-nodes"));
    }
}
