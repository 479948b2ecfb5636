//! Flags that select server, key and tenant.

use std::path::PathBuf;

use clap::{Arg, Args, Command};

/// Server, key and scope of a request.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerOptions {
    /// Address of the server [default: from the profile, else http://127.0.0.1:8080].
    #[arg(long, env = "LODESTONE_SERVER", value_name = "URL", global = true)]
    pub server: Option<String>,
    /// API key. As a flag it is visible to other users of this machine [default: LODESTONE_API_KEY,
    /// then LODESTONE_API_KEY_FILE, then the profile].
    #[arg(long, value_name = "KEY", global = true, conflicts_with = "api_key_file")]
    pub api_key: Option<String>,
    /// File containing the API key.
    #[arg(long, value_name = "FILE", global = true)]
    pub api_key_file: Option<PathBuf>,
    /// PEM file with the certificate authorities trusted for the server [default: from the profile,
    /// else Mozilla's, which are built in].
    #[arg(long, env = "LODESTONE_CA_FILE", value_name = "FILE", global = true)]
    pub ca_file: Option<PathBuf>,
    /// Section of profiles.toml in $XDG_CONFIG_HOME/lodestone or ~/.config/lodestone [default:
    /// default, if it exists].
    #[arg(long, env = "LODESTONE_PROFILE", value_name = "NAME", global = true)]
    pub profile: Option<String>,
    /// Tenant [default: from the profile].
    #[arg(long, env = "LODESTONE_TENANT", value_name = "TENANT", global = true)]
    pub tenant: Option<String>,
    /// Sub-tenant [default: from the profile, else default].
    #[arg(long, env = "LODESTONE_SUB_TENANT", value_name = "SUB_TENANT", global = true)]
    pub sub_tenant: Option<String>,
    /// Print JSON: the unchanged response of the server, or the summary of a run.
    #[arg(long, global = true)]
    pub json: bool,
}

/// Hides the scope flags in the help of operations that ignore them because they concern all
/// tenants or name their own.
pub fn hide_scope(verb: Command) -> Command {
    let operations: &[&str] = match verb.get_name() {
        "tenant" => &["ls", "create", "rm", "limits"],
        "key" => &["ls", "create", "revoke"],
        _ => return verb,
    };
    let is_scope = |flag: &&Arg| ["tenant", "sub_tenant"].contains(&flag.get_id().as_str());
    let scope = verb.get_arguments().filter(is_scope);
    let hidden: Vec<Arg> = scope.map(|flag| flag.clone().hide(true)).collect();
    verb.mut_subcommands(|operation| match operations.contains(&operation.get_name()) {
        true => operation.args(hidden.clone()),
        false => operation,
    })
}
