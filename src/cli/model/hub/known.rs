//! Models that can be installed by a short name, and prefixes that their files do not state.

/// A model known to `lodestone model install`.
#[derive(Debug, PartialEq, Eq)]
pub struct Known {
    /// Name of the repository; its last part is the short name.
    pub repository: &'static str,
    /// Commit to install if no revision is given.
    pub commit: Option<&'static str>,
    /// SHA-256 of the weights of that commit.
    pub weights: Option<&'static str>,
    /// Text to put before queries, if the files of the model state none.
    pub query_prefix: &'static str,
    /// Text to put before documents, if the files of the model state none.
    pub passage_prefix: &'static str,
}

const fn plain(repository: &'static str) -> Known {
    Known { repository, commit: None, weights: None, query_prefix: "", passage_prefix: "" }
}

const fn e5(repository: &'static str) -> Known {
    Known { query_prefix: "query: ", passage_prefix: "passage: ", ..plain(repository) }
}

const fn bge(repository: &'static str) -> Known {
    let query_prefix = "Represent this sentence for searching relevant passages: ";
    Known { query_prefix, ..plain(repository) }
}

/// The models listed in docs/models.md. Only the commit that `scripts/setup` also uses is pinned,
/// because its hashes are known.
const KNOWN: &[Known] = &[
    Known {
        commit: Some("c9745ed1d9f207416be6d2e6f8de32d1f16199bf"),
        weights: Some("53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        ..plain("sentence-transformers/all-MiniLM-L6-v2")
    },
    plain("MongoDB/mdbr-leaf-ir"),
    plain("Snowflake/snowflake-arctic-embed-xs"),
    plain("Snowflake/snowflake-arctic-embed-s"),
    plain("Snowflake/snowflake-arctic-embed-m"),
    bge("BAAI/bge-small-en-v1.5"),
    bge("BAAI/bge-base-en-v1.5"),
    plain("ibm-granite/granite-embedding-small-english-r2"),
    plain("Alibaba-NLP/gte-modernbert-base"),
    plain("ibm-granite/granite-embedding-97m-multilingual-r2"),
    e5("intfloat/multilingual-e5-small"),
    e5("intfloat/multilingual-e5-base"),
    plain("cross-encoder/ms-marco-MiniLM-L6-v2"),
];

impl Known {
    /// Returns the short name.
    pub fn name(&self) -> &'static str {
        self.repository.rsplit('/').next().unwrap_or(self.repository)
    }
}

/// Finds the model whose weights have this SHA-256.
pub fn of_weights(hash: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.weights == Some(hash))
}

/// Finds a model by the full or short name of its repository.
pub fn find(name: &str) -> Option<&'static Known> {
    let is_it = |known: &&Known| {
        known.repository.eq_ignore_ascii_case(name) || known.name().eq_ignore_ascii_case(name)
    };
    KNOWN.iter().find(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_of_one_model_each() {
        for known in KNOWN {
            let short = known.repository.rsplit('/').next().unwrap();
            assert_eq!(find(short), Some(known), "{short}");
            assert_eq!(find(known.repository), Some(known), "{short}");
        }
        assert_eq!(find("somebody/all-MiniLM-L6-v2"), None);
    }
}
