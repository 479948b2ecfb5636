//! Sources as resources: `lodestone://{tenant_id}/{sub_tenant_id}/{file_id}`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The URI template of a source.
pub(super) const TEMPLATE: &str = "lodestone://{tenant_id}/{sub_tenant_id}/{file_id}";
const SCHEME: &str = "lodestone://";
const DEFAULT: &str = "default";
/// Every byte except letters, digits and `-._~`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// The tenant.
    pub tenant: String,
    /// The sub-tenant.
    pub sub_tenant: String,
    /// The source.
    pub file: String,
}

impl Address {
    /// Formats the address as a URI.
    pub fn uri(&self) -> String {
        let sub_tenant = if self.sub_tenant.is_empty() { DEFAULT } else { &self.sub_tenant };
        let parts = [self.tenant.as_str(), sub_tenant, self.file.as_str()];
        let parts = parts.map(|part| utf8_percent_encode(part, RESERVED).to_string());
        format!("{SCHEME}{}", parts.join("/"))
    }

    /// Parses a URI; returns `None` if it does not have this form.
    pub fn read(uri: &str) -> Option<Self> {
        let parts: Vec<String> = uri
            .strip_prefix(SCHEME)?
            .split('/')
            .map(|part| percent_decode_str(part).decode_utf8().ok().map(|part| part.into_owned()))
            .collect::<Option<_>>()?;
        let [tenant, sub_tenant, file] = <[String; 3]>::try_from(parts).ok()?;
        let is_whole = ![&tenant, &sub_tenant, &file].into_iter().any(String::is_empty);
        is_whole.then_some(Self { tenant, sub_tenant, file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_its_uri() {
        let address = Address {
            tenant: "acme".to_owned(),
            sub_tenant: "eu-west".to_owned(),
            file: "a/b c%2F?ü".to_owned(),
        };
        assert_eq!(Address::read(&address.uri()), Some(address));
        let whole =
            Address { tenant: "acme".to_owned(), sub_tenant: String::new(), file: "f".to_owned() };
        assert_eq!(whole.uri(), "lodestone://acme/default/f");
        for wrong in
            ["", "file:///etc/passwd", "lodestone://a/b", "lodestone://a//b", "lodestone://a/b/c/d"]
        {
            assert_eq!(Address::read(wrong), None, "{wrong}");
        }
    }
}
