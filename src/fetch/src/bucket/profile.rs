//! Credentials, region and endpoint of S3, from the sources that AWS's tools use: environment
//! variables, then the profile's files; credentials also from a role.

use std::collections::HashMap;

use super::BucketError;
use super::credentials::{Credentials, Key, Variable, check_pair, missing};
use super::roles::{Role, Source};

const MACHINE_SERVICE: &str = "http://169.254.169.254";
const MACHINE_SERVICE_IPV6: &str = "http://[fd00:ec2::254]";
const CONTAINER_SERVICE: &str = "http://169.254.170.2";

/// Values of the profile, and the variables that override them.
pub(super) struct Profile<'a> {
    variable: Variable<'a>,
    name: String,
    values: HashMap<String, String>,
    /// Whether one of the files has this profile.
    is_there: bool,
}

impl<'a> Profile<'a> {
    /// Reads the profile from the files `config` and `credentials`, if they exist.
    pub(super) fn read(variable: Variable<'a>) -> Result<Self, BucketError> {
        let name = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let (mut values, mut is_there) = (HashMap::new(), false);
        for (named_by, usual) in
            [("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials")]
        {
            let named = variable(named_by);
            let usual = variable("HOME").map(|home| format!("{home}/.aws/{usual}"));
            let Some(path) = named.clone().or(usual) else { continue };
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                // An unreadable file at the default path is treated as absent.
                Err(_) if named.is_none() => continue,
                Err(error) => {
                    let problem = format!("{named_by} names {path}: {error}");
                    return Err(BucketError::Credentials { problem });
                }
            };
            if let Some(found) = section(&text, &name) {
                values.extend(found);
                is_there = true;
            }
        }
        Ok(Self { variable, name, values, is_there })
    }

    /// The first of these variables that is set, else the profile's value.
    pub(super) fn value(&self, variables: &[&str], key: &str) -> Option<String> {
        let set = variables.iter().find_map(|name| (self.variable)(name));
        set.or_else(|| self.values.get(key).cloned())
    }

    /// The source of the credentials. In order of precedence: variables, a web identity, the
    /// profile, the container, the machine.
    ///
    /// # Errors
    /// [`BucketError::Credentials`] names the problem.
    pub(super) fn source(&self, region: &str) -> Result<Source, BucketError> {
        // A key from the environment is never combined with a secret from a file.
        let from = |get: &dyn Fn(&str, &str) -> Option<String>| {
            Some(Credentials::Key(Key {
                id: get("AWS_ACCESS_KEY_ID", "aws_access_key_id")?,
                secret: get("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key")?,
                session_token: get("AWS_SESSION_TOKEN", "aws_session_token"),
            }))
        };
        if let Some(found) = from(&|variable, _| (self.variable)(variable)) {
            return Ok(Source::Fixed(found));
        }
        check_pair(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], self.variable)?;
        if let Some(role) = self.web_identity(region)? {
            return Ok(Source::Role(role));
        }
        if let Some(found) = from(&|_, key| self.values.get(key).cloned()) {
            return Ok(Source::Fixed(found));
        }
        self.check_supported()?;
        if let Some(role) = self.container()? {
            return Ok(Source::Role(role));
        }
        let is_off = (self.variable)("AWS_EC2_METADATA_DISABLED")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if is_off {
            let problem = "AWS_EC2_METADATA_DISABLED forbids using the machine's role";
            return Err(missing(&self.advice(), problem));
        }
        Ok(Source::Role(self.machine()))
    }

    /// Fails if the profile sets an unsupported source of credentials. Otherwise the server would
    /// silently use the machine's role instead.
    fn check_supported(&self) -> Result<(), BucketError> {
        let get = |key: &str| self.values.get(key).cloned();
        check_pair(["aws_access_key_id", "aws_secret_access_key"], &get)?;
        let unsupported = UNSUPPORTED_KEYS.iter().find(|key| self.values.contains_key(**key));
        let problem = match unsupported {
            Some(key) => format!("profile {} has {key}, which is not supported", self.name),
            None if (self.variable)("AWS_PROFILE").is_some() && !self.is_there => {
                format!("AWS_PROFILE names {}, which is in no credentials file", self.name)
            }
            None => return Ok(()),
        };
        Err(BucketError::Credentials { problem })
    }

    fn machine(&self) -> Role {
        let (variable, key) =
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "ec2_metadata_service_endpoint");
        let mode = self.value(&[&format!("{variable}_MODE")], &format!("{key}_mode"));
        let usual = match mode.is_some_and(|mode| mode.eq_ignore_ascii_case("IPv6")) {
            true => MACHINE_SERVICE_IPV6,
            false => MACHINE_SERVICE,
        };
        let service = self.value(&[variable], key).unwrap_or_else(|| usual.to_owned());
        Role::Machine { service: service.trim_end_matches('/').to_owned() }
    }

    fn web_identity(&self, store_region: &str) -> Result<Option<Role>, BucketError> {
        let file = self.value(&["AWS_WEB_IDENTITY_TOKEN_FILE"], "web_identity_token_file");
        let Some(token_file) = file else { return Ok(None) };
        let Some(arn) = self.value(&["AWS_ROLE_ARN"], "role_arn") else {
            let problem = "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not".to_owned();
            return Err(BucketError::Credentials { problem });
        };
        // The region of this process; the store may be in another one.
        let region = self.value(&["AWS_REGION", "AWS_DEFAULT_REGION"], "region");
        let region = region.unwrap_or_else(|| store_region.to_owned());
        let service = self.value(&["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"], "endpoint_url");
        let service = service.unwrap_or_else(|| aws_endpoint("sts", &region));
        let session = self.value(&["AWS_ROLE_SESSION_NAME"], "role_session_name");
        let session = session.unwrap_or_else(|| "lodestone".to_owned());
        Ok(Some(Role::WebIdentity { token_file, arn, session, service }))
    }

    fn container(&self) -> Result<Option<Role>, BucketError> {
        let path = (self.variable)("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let path = path.map(|path| format!("{CONTAINER_SERVICE}{path}"));
        let address = path.or_else(|| (self.variable)("AWS_CONTAINER_CREDENTIALS_FULL_URI"));
        let Some(address) = address else { return Ok(None) };
        let token = (self.variable)("AWS_CONTAINER_AUTHORIZATION_TOKEN");
        let file = (self.variable)("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        let role = Role::of_container(address, token, file);
        role.map(Some).map_err(|problem| BucketError::Credentials { problem })
    }

    /// Instructions for setting credentials.
    pub(super) fn advice(&self) -> String {
        format!(
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or put aws_access_key_id and \
             aws_secret_access_key of profile {} into ~/.aws/credentials, or give this machine or \
             container a role",
            self.name
        )
    }
}

/// The values of section `[name]` or `[profile name]`; `None` if there is none.
fn section(text: &str, name: &str) -> Option<HashMap<String, String>> {
    let (mut values, mut is_inside, mut is_there) = (HashMap::new(), false, false);
    for line in text.lines() {
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let title = title.trim();
            is_inside = title.strip_prefix("profile").map_or(title, str::trim) == name;
            is_there |= is_inside;
        } else if is_inside
            && !is_nested
            && !line.starts_with(['#', ';'])
            && let Some((key, value)) = line.split_once('=')
        {
            values.insert(key.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    is_there.then_some(values)
}

/// Keys of a profile that select sources of credentials which this client does not support.
const UNSUPPORTED_KEYS: [&str; 6] = [
    "role_arn", "source_profile", "credential_source", "credential_process", "sso_session",
    "sso_start_url",
];

/// URL of an AWS service in a region; China has a domain of its own.
pub(super) fn aws_endpoint(service: &str, region: &str) -> String {
    let end = if region.starts_with("cn-") { ".cn" } else { "" };
    format!("https://{service}.{region}.amazonaws.com{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_go_before_the_profile_and_are_not_mixed_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let aws = dir.path().join(".aws");
        std::fs::create_dir(&aws).unwrap();
        let config = "[default]\nregion = eu-west-1\n[profile ops]\n# x = y\nregion=eu-north-1\n\
            s3 =\n  region = nested\nendpoint_url = https://store.example\n";
        std::fs::write(aws.join("config"), config).unwrap();
        let keys = "[default]\naws_access_key_id = A\naws_secret_access_key = a=b\n\
            [ops]\naws_access_key_id = O\naws_secret_access_key = o\naws_session_token = t\n";
        std::fs::write(aws.join("credentials"), keys).unwrap();
        let home = dir.path().to_str().unwrap().to_owned();
        let with = |set: &[(&str, &str)]| {
            let variable = |name: &str| match name {
                "HOME" => Some(home.clone()),
                _ => set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()),
            };
            let profile = Profile::read(&variable).unwrap();
            let Source::Fixed(Credentials::Key(found)) = profile.source("r").unwrap() else {
                panic!("a role")
            };
            let region = profile.value(&["AWS_REGION"], "region").unwrap();
            (found.id, found.secret, found.session_token.unwrap_or_default(), region)
        };
        let of = |key: &str, secret: &str, token: &str, region: &str| {
            (key.to_owned(), secret.to_owned(), token.to_owned(), region.to_owned())
        };
        assert_eq!(with(&[]), of("A", "a=b", "", "eu-west-1"));
        assert_eq!(with(&[("AWS_PROFILE", "ops")]), of("O", "o", "t", "eu-north-1"));
        assert_eq!(with(&[("AWS_REGION", "r")]), of("A", "a=b", "", "r"));
        let both = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "e")];
        assert_eq!(with(&both), of("E", "e", "", "eu-west-1"));
    }

    #[test]
    fn what_is_half_there_or_not_understood_does_not_end_at_the_machines_role() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        let config = "[profile a]\nrole_arn = r\nsource_profile = b\n[profile b]\n\
            aws_access_key_id = k\n[profile c]\ncredential_process = x\n\
            [profile d]\nsso_session = s\n[default]\nregion = r\n";
        std::fs::write(&file, config).unwrap();
        let file = file.to_str().unwrap();
        let refused = |set: &[(&str, &str)]| {
            let variable = |name: &str| match name {
                "AWS_CONFIG_FILE" => Some(file.to_owned()),
                _ => set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()),
            };
            Profile::read(&variable).unwrap().source("r").map(drop).unwrap_err().to_string()
        };
        for (variable, value, told) in [
            ("AWS_ACCESS_KEY_ID", "E", "AWS_SECRET_ACCESS_KEY is not"),
            ("AWS_SECRET_ACCESS_KEY", "e", "AWS_ACCESS_KEY_ID is not"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "f", "AWS_ROLE_ARN is not"),
            ("AWS_PROFILE", "a", "profile a has role_arn"),
            ("AWS_PROFILE", "b", "aws_secret_access_key is not"),
            ("AWS_PROFILE", "c", "profile c has credential_process"),
            ("AWS_PROFILE", "d", "profile d has sso_session"),
            ("AWS_PROFILE", "e", "AWS_PROFILE names e, which is in no"),
        ] {
            let error = refused(&[(variable, value)]);
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn what_is_missing_is_named_and_secrets_are_not_printed() {
        let off = |name: &str| (name == "AWS_EC2_METADATA_DISABLED").then(|| "true".to_owned());
        let error = Profile::read(&off).unwrap().source("r").unwrap_err().to_string();
        assert!(
            error.contains("AWS_ACCESS_KEY_ID") && error.contains("profile default"),
            "{error}"
        );
        let missing = |name: &str| (name == "AWS_CONFIG_FILE").then(|| "/nowhere/c".to_owned());
        let error = Profile::read(&missing).err().unwrap().to_string();
        assert!(error.contains("/nowhere/c"), "{error}");
        let (id, secret) = ("id".into(), "hidden".into());
        let key = Key { id, secret, session_token: Some("hidden".into()) };
        let sent = [Credentials::Bearer, Credentials::SharedAccess].map(|of| of("hidden".into()));
        for secret in sent.into_iter().chain([Credentials::Key(key)]) {
            assert!(!format!("{secret:?}").contains("hidden"));
        }
    }
}
