//! Web pages that users ask to ingest: their URLs, the results of fetching them, and the fetcher's
//! trait.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use crate::limits::WEB_URL_CHARS_MAX;

/// Fetches web pages. Blocks the calling thread.
pub trait WebClient: fmt::Debug + Send + Sync {
    /// Fetches the page at `url`, following redirects.
    ///
    /// # Errors
    /// [`WebFailure`], worded for the user who asked for the page.
    fn fetch(&self, url: &WebUrl) -> Result<WebPage, WebFailure>;
}

/// An absolute `http` or `https` URL with a host and no credentials. The host is stored in the
/// canonical form defined by the URL standard (numeric and full-width forms included), so the host
/// that is checked is the host that is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl(Url);

/// The host part of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebHost<'a> {
    /// A name in lower-case ASCII, without the root's trailing dot.
    Name(&'a str),
    /// An IP address.
    Address(IpAddr),
}

/// Reasons to reject a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebUrlError {
    /// The URL exceeds the length limit.
    #[error("the address is longer than {max} characters")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// White space, control characters and backslashes, which programs interpret differently.
    #[error("the address contains a space, a control character or a backslash")]
    Characters,
    /// The scheme is missing or not supported.
    #[error("the address is not an absolute http or https address")]
    NotAbsolute,
    /// Credentials, which must not end up in an index or a log.
    #[error("the address contains a user name or a password")]
    UserInfo,
    /// The host is missing or invalid.
    #[error("the address has no valid host")]
    Host,
    /// The port is invalid.
    #[error("the address has no valid port")]
    Port,
}

impl WebUrl {
    /// Parses a URL supplied by a user. The fragment is dropped, as it is never sent.
    ///
    /// # Errors
    /// [`WebUrlError`] names the violated rule.
    pub fn parse(text: &str) -> Result<Self, WebUrlError> {
        if text.chars().count() > WEB_URL_CHARS_MAX {
            return Err(WebUrlError::TooLong { max: WEB_URL_CHARS_MAX });
        }
        // Backslashes after the question mark are unambiguous.
        let has_backslash = text.split('?').next().is_some_and(|head| head.contains('\\'));
        if has_backslash || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(WebUrlError::Characters);
        }
        let (scheme, rest) = text.split_once("://").ok_or(WebUrlError::NotAbsolute)?;
        if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Err(WebUrlError::NotAbsolute);
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
        if authority.is_empty() {
            return Err(WebUrlError::Host);
        }
        // The parser silently drops an empty user name.
        if authority.contains('@') {
            return Err(WebUrlError::UserInfo);
        }
        Self::checked(Url::parse(text))
    }

    /// Resolves `reference` against this URL, as browsers do.
    ///
    /// # Errors
    /// [`WebUrlError`] names the violated rule.
    pub fn join(&self, reference: &str) -> Result<Self, WebUrlError> {
        // Resolving may shorten a reference, but one this long is refused either way.
        if reference.chars().count() > WEB_URL_CHARS_MAX {
            return Err(WebUrlError::TooLong { max: WEB_URL_CHARS_MAX });
        }
        Self::checked(self.0.join(reference))
    }

    fn checked(parsed: Result<Url, url::ParseError>) -> Result<Self, WebUrlError> {
        let mut url = parsed.map_err(|error| match error {
            url::ParseError::InvalidPort => WebUrlError::Port,
            _ => WebUrlError::Host,
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(WebUrlError::NotAbsolute);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(WebUrlError::UserInfo);
        }
        if url.port() == Some(0) {
            return Err(WebUrlError::Port);
        }
        // Once dots are stripped, some resolvers take `127..` for a number and others for a name.
        let is_named = |host: &str| !host.trim_matches('.').is_empty() && !host.contains("..");
        if !url.host_str().is_some_and(is_named) {
            return Err(WebUrlError::Host);
        }
        url.set_fragment(None);
        // A non-ASCII character takes up to twelve bytes once percent-encoded.
        if url.as_str().len() > WEB_URL_CHARS_MAX * 12 {
            return Err(WebUrlError::TooLong { max: WEB_URL_CHARS_MAX });
        }
        Ok(Self(url))
    }

    /// The URL as it is sent.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether the connection is encrypted.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The host.
    pub fn host(&self) -> WebHost<'_> {
        match self.0.host().expect("an address without a host is not made") {
            Host::Domain(name) => WebHost::Name(name.trim_end_matches('.')),
            Host::Ipv4(address) => WebHost::Address(address.into()),
            Host::Ipv6(address) => WebHost::Address(address.into()),
        }
    }

    /// The port; the scheme's default if none is given.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().expect("http and https have ports")
    }

    /// Scheme, host and port: the scope of a `robots.txt`.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// Path and query, against which `robots.txt` rules are matched.
    pub fn target(&self) -> &str {
        &self.0[url::Position::BeforePath..url::Position::AfterQuery]
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for WebUrl {
    type Err = WebUrlError;

    fn from_str(text: &str) -> Result<Self, WebUrlError> {
        Self::parse(text)
    }
}

/// A fetched page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebPage {
    /// The page's URL after all redirects.
    pub final_url: WebUrl,
    /// The canonical URL that the page declares, if it is valid and on the same host; otherwise
    /// [`Self::final_url`].
    pub canonical_url: WebUrl,
    /// The title, if the page is HTML and has one.
    pub title: Option<String>,
    /// The media type from the response header, in lower case and without parameters; `None` if
    /// there is none.
    pub media_type: Option<String>,
    /// The decompressed body. Text whose encoding only the response header named has been converted
    /// to UTF-8.
    pub bytes: Vec<u8>,
}

/// The request that failed within a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebStep {
    /// The initial request.
    Page,
    /// A request that followed a redirect.
    Redirect,
    /// A request for the site's `robots.txt`, or one that followed a redirect from it.
    Robots,
}

impl fmt::Display for WebStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Page => "the page",
            Self::Redirect => "the page behind a redirect",
            Self::Robots => "the robots.txt of the site",
        })
    }
}

/// Reasons why a page was not fetched, worded for the user. They never reveal an IP address that a
/// name resolved to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebFailure {
    /// This server's rules forbid the request: `URL_BLOCKED`.
    #[error("{step} cannot be fetched: {reason}")]
    Blocked {
        /// The request that failed.
        step: WebStep,
        /// The rule that forbids it.
        reason: BlockedReason,
    },
    /// The fetch failed: `FETCH_FAILED`.
    #[error("{step} could not be fetched: {problem}")]
    Failed {
        /// The request that failed.
        step: WebStep,
        /// The reason.
        problem: FetchProblem,
    },
}

impl WebFailure {
    /// Whether this server's own rules are the cause, rather than the remote server.
    pub fn is_blocked(&self) -> bool {
        matches!(self, Self::Blocked { .. })
    }

    /// Whether a retry may succeed.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Blocked { .. } => false,
            Self::Failed { problem, .. } => problem.is_temporary(),
        }
    }
}

/// Reasons why this server refuses a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockedReason {
    /// The host is not on the public internet, or its address is reserved.
    #[error("its host is on a private or reserved network, which this server does not fetch from")]
    Address,
    /// The port is not a web port.
    #[error("port {port} is neither 80 nor 443")]
    Port {
        /// The port.
        port: u16,
    },
    /// A redirect leads from https to http.
    #[error("it leads from https to http")]
    Downgrade,
    /// The target of a redirect is not a valid web URL.
    #[error("it leads to something that is not a web page: {problem}")]
    Redirect {
        /// The reason why the target is invalid.
        problem: WebUrlError,
    },
}

/// Reasons why a fetch failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchProblem {
    /// The name does not resolve to any address.
    #[error("its host name does not exist")]
    UnknownHost,
    /// Name resolution failed for now.
    #[error("its host name could not be resolved")]
    NameLookup,
    /// Too many name look-ups are pending.
    #[error("too many host names are being resolved; try again")]
    Busy,
    /// The host refuses connections or cannot be reached.
    #[error("its host does not accept connections")]
    Refused,
    /// The remote server closed the connection.
    #[error("the connection was lost")]
    Lost,
    /// The whole fetch exceeded its time limit.
    #[error("it took longer than {seconds} seconds")]
    TimedOut {
        /// The limit, rounded up.
        seconds: u64,
    },
    /// The certificate is not valid for the host, or there is no common TLS version.
    #[error("no secure connection could be made: the certificate or the protocol is not valid")]
    Insecure,
    /// The response is not valid HTTP.
    #[error("the response is not valid HTTP")]
    Malformed,
    /// The remote server returned an error status.
    #[error("the server answered {status}")]
    Status {
        /// The status.
        status: u16,
    },
    /// The page, or the data transferred for it, exceeds a limit.
    #[error("it is larger than {bytes_max} bytes")]
    TooLarge {
        /// The limit.
        bytes_max: u64,
    },
    /// The response head exceeds a limit.
    #[error("the response headers are too large")]
    HeadTooLarge,
    /// The redirect limit was exceeded.
    #[error("it redirects more than {max} times")]
    TooManyRedirects {
        /// The limit.
        max: usize,
    },
    /// A redirect without a target.
    #[error("it redirects without a valid target")]
    RedirectToNowhere,
    /// A type with nothing to index: images, programs, videos, archives.
    #[error("unsupported media type {media_type}")]
    UnsupportedType {
        /// The media type from the response header.
        media_type: String,
    },
    /// A compression that was not requested, or damaged compressed data.
    #[error("its compression is unsupported or damaged")]
    Encoding,
    /// The site's `robots.txt` disallows the page.
    #[error("the robots.txt of the site disallows it")]
    Disallowed,
}

impl FetchProblem {
    /// Whether a retry may succeed.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::NameLookup | Self::Busy | Self::Refused | Self::Lost => true,
            Self::TimedOut { .. } => true,
            Self::Status { status } => matches!(status, 408 | 425 | 429 | 500..=599),
            Self::UnknownHost
            | Self::Insecure
            | Self::Malformed
            | Self::TooLarge { .. }
            | Self::HeadTooLarge
            | Self::TooManyRedirects { .. }
            | Self::RedirectToNowhere
            | Self::UnsupportedType { .. }
            | Self::Encoding
            | Self::Disallowed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_spelling() {
        let spelt = |text: &str| WebUrl::parse(text).map(|url| url.as_str().to_owned());
        for (text, expected) in [
            ("http://example.com", "http://example.com/"),
            ("HTTPS://EXAMPLE.com:443/a?b#c", "https://example.com/a?b"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://017700000001/", "http://127.0.0.1/"),
            ("http://2130706433/", "http://127.0.0.1/"),
            ("http://\u{ff11}\u{ff12}\u{ff17}。0.0.1/", "http://127.0.0.1/"),
            ("http://bücher.example/", "http://xn--bcher-kva.example/"),
            ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
            ("http://a/?b\\c", "http://a/?b\\c"),
        ] {
            assert_eq!(spelt(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_named() {
        let wrong = |text: &str| WebUrl::parse(text).unwrap_err();
        for text in ["", "example.com", "/a", "ftp://a/", "file:///etc", "http:a", "http:/a"] {
            assert_eq!(wrong(text), WebUrlError::NotAbsolute, "{text}");
        }
        for text in ["http://a b/", "http://a\t/", "http:\\\\a/", " http://a/", "http://a\\@b/"] {
            assert_eq!(wrong(text), WebUrlError::Characters, "{text}");
        }
        for text in ["http://u@a/", "http://u:p@a/", "http://@a/", "http://:@a/"] {
            assert_eq!(wrong(text), WebUrlError::UserInfo, "{text}");
        }
        for text in [
            "http://", "http:///a", "http://?a", "http://[::1%25lo]/", "http://256.1.1.1/",
            "http://127../", "http://a..b/",
        ] {
            assert_eq!(wrong(text), WebUrlError::Host, "{text}");
        }
        for text in ["http://a:0/", "http://a:65536/", "http://a:x/"] {
            assert_eq!(wrong(text), WebUrlError::Port, "{text}");
        }
        let long = format!("http://a/{}", "x".repeat(WEB_URL_CHARS_MAX));
        assert!(matches!(wrong(&long), WebUrlError::TooLong { .. }));
        let longest = &long[..WEB_URL_CHARS_MAX];
        assert_eq!(WebUrl::parse(longest).unwrap().as_str(), longest);
    }

    #[test]
    fn hosts_and_targets_are_told_apart() {
        let url = WebUrl::parse("http://a.example.:8080/p;q?r=%20").unwrap();
        assert_eq!(url.host(), WebHost::Name("a.example"));
        assert_eq!((url.port(), url.target()), (8080, "/p;q?r=%20"));
        let joined = url.join("//[::1]/x").unwrap();
        assert_eq!(joined.host(), WebHost::Address("::1".parse().unwrap()));
        assert_eq!(url.join("gopher://a/"), Err(WebUrlError::NotAbsolute));
        assert_eq!(url.join("//u@b/"), Err(WebUrlError::UserInfo));
        assert_eq!(
            (joined.to_string().as_str(), joined.origin().as_str()),
            ("http://[::1]/x", "http://[::1]")
        );
        assert!(!joined.is_https() && joined.join("https://[::1]/").unwrap().is_https());
    }

    #[test]
    fn references_are_bounded_as_they_are_written_and_as_they_are_sent() {
        let too_long = Err(WebUrlError::TooLong { max: WEB_URL_CHARS_MAX });
        let base = WebUrl::parse("http://a/").unwrap();
        let longest = "x".repeat(WEB_URL_CHARS_MAX);
        assert!(base.join(&longest).is_ok());
        assert_eq!(base.join(&format!("{longest}x")), too_long);
        // 12 bytes for each of these, and 96 for the part before them.
        let base = base.join(&format!("{}/", "x".repeat(86))).unwrap();
        let widest = "\u{1f600}".repeat(WEB_URL_CHARS_MAX - 8);
        assert_eq!(base.join(&widest).unwrap().as_str().len(), WEB_URL_CHARS_MAX * 12);
        assert_eq!(base.join(&format!("{widest}x")), too_long);
    }

    #[test]
    fn failures_say_at_which_step_and_whether_another_try_may_help() {
        let blocked = WebFailure::Blocked { step: WebStep::Page, reason: BlockedReason::Address };
        let failed = |step, problem| WebFailure::Failed { step, problem };
        let busy = failed(WebStep::Robots, FetchProblem::Busy);
        let gone = failed(WebStep::Redirect, FetchProblem::Status { status: 404 });
        let all = [&blocked, &busy, &gone];
        assert_eq!(all.map(WebFailure::is_blocked), [true, false, false]);
        assert_eq!(all.map(WebFailure::is_temporary), [false, true, false]);
        let words = "the page behind a redirect could not be fetched: the server answered 404";
        assert_eq!(gone.to_string(), words);
    }
}
