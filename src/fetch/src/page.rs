//! Fetches a page. Redirects are followed here: each target is checked from the start, and the
//! `robots.txt` of every site on the way is obeyed.

use std::net::SocketAddr;
use std::sync::Arc;

use ureq::http::header;

use crate::Fetcher;
use crate::body::Overflow;
use crate::connection::Meter;
use crate::error::RequestError;
use crate::media::Media;
use crate::request::Answer;
use crate::robots::{ROBOTS_BYTES_MAX, Robots};
use lodestone_extract::Format;
use lodestone_types::limits::WEB_REDIRECTS_MAX;
use lodestone_types::{
    BlockedReason, FetchProblem, WebFailure, WebHost, WebPage, WebStep, WebUrl, WebUrlError,
};

/// A page fetch in progress.
pub(super) struct PageFetch<'a> {
    fetcher: &'a Fetcher,
    meter: Arc<Meter>,
    /// The rules of the sites visited, by origin; at most one more than the maximum of redirects.
    robots: Vec<(String, Robots)>,
}

impl<'a> PageFetch<'a> {
    /// Starts a fetch now.
    pub(super) fn new(fetcher: &'a Fetcher) -> Self {
        let meter = Arc::new(Meter::new(fetcher.time_max, fetcher.wire_bytes_max));
        Self { fetcher, meter, robots: Vec::new() }
    }

    /// Fetches the page at `start`.
    pub(super) fn page(mut self, start: &WebUrl) -> Result<WebPage, WebFailure> {
        let mut url = start.clone();
        let mut step = WebStep::Page;
        for _ in 0..=WEB_REDIRECTS_MAX {
            self.ask_robots(&url, step)?;
            let answer = self.get(&url).map_err(|error| error.at(step))?;
            match next(&url, &answer).map_err(|error| error.at(WebStep::Redirect))? {
                Some(target) => url = target,
                None => return self.arrive(url, answer).map_err(|error| error.at(step)),
            }
            step = WebStep::Redirect;
        }
        let problem = FetchProblem::TooManyRedirects { max: WEB_REDIRECTS_MAX };
        Err(RequestError::from(problem).at(WebStep::Page))
    }

    /// Sends one GET through the gate.
    fn get(&self, url: &WebUrl) -> Result<Answer, RequestError> {
        let addresses = self.addresses(url)?;
        self.ask(url, addresses)
    }

    fn addresses(&self, url: &WebUrl) -> Result<Vec<SocketAddr>, RequestError> {
        let addresses = self.fetcher.gate.addresses(url, self.meter.deadline);
        addresses.map_err(|error| self.in_time(error))
    }

    fn ask(&self, url: &WebUrl, addresses: Vec<SocketAddr>) -> Result<Answer, RequestError> {
        let answer = self.fetcher.client.get(url, addresses, &self.meter);
        answer.map_err(|error| self.in_time(error))
    }

    /// Turns every problem after the deadline into a timeout.
    fn in_time(&self, error: RequestError) -> RequestError {
        match (error, self.meter.left()) {
            (RequestError::Problem(_), Err(timed_out)) => timed_out.into(),
            (error, _) => error,
        }
    }

    /// Fails if the site of `url` excludes it for robots. Rules are fetched once per origin.
    fn ask_robots(&mut self, url: &WebUrl, step: WebStep) -> Result<(), WebFailure> {
        let origin = url.origin();
        let known = self.robots.iter().position(|(asked, _)| *asked == origin);
        let at = match known {
            Some(at) => at,
            None => {
                // A request that must not be made is refused as itself, not as its robots.txt.
                self.fetcher
                    .gate
                    .permits(url)
                    .map_err(|reason| RequestError::from(reason).at(step))?;
                let robots = self.robots_of(url, step)?;
                self.robots.push((origin, robots));
                self.robots.len() - 1
            }
        };
        match self.robots[at].1.allows(url.target()) {
            true => Ok(()),
            false => Err(RequestError::from(FetchProblem::Disallowed).at(step)),
        }
    }

    /// Fetches the rules of a site. A site without any, or one that refuses to show them, permits
    /// everything; one that fails to answer now may have some (RFC 9309, section 2.3.1).
    fn robots_of(&self, url: &WebUrl, step: WebStep) -> Result<Robots, WebFailure> {
        let mut place = url
            .join("/robots.txt")
            .map_err(|problem| RequestError::from(BlockedReason::Redirect { problem }).at(step))?;
        let fail = |error: RequestError| error.at(WebStep::Robots);
        for hop in 0..=WEB_REDIRECTS_MAX {
            // The first request goes to the page's own host: that the host is unreachable or
            // forbidden is an error of the page, while a bad response is an error of the rules.
            let of = if hop == 0 { step } else { WebStep::Robots };
            let addresses = self.addresses(&place).map_err(|error| error.at(of))?;
            let answer = self.ask(&place, addresses).map_err(|error| match error {
                RequestError::Rule(_)
                | RequestError::Problem(FetchProblem::Refused | FetchProblem::Insecure) => {
                    error.at(of)
                }
                RequestError::Problem(_) => fail(error),
            })?;
            match (next(&place, &answer).map_err(fail)?, answer.status) {
                (Some(target), _) => place = target,
                (None, 200..=299) => {
                    let bytes = answer.read(ROBOTS_BYTES_MAX, Overflow::Cut).map_err(fail)?;
                    return Ok(Robots::parse(&bytes));
                }
                (None, status @ 500..) => return Err(fail(FetchProblem::Status { status }.into())),
                (None, _) => return Ok(Robots::default()),
            }
        }
        Ok(Robots::default())
    }

    /// Builds the page from its response.
    fn arrive(&self, final_url: WebUrl, answer: Answer) -> Result<WebPage, RequestError> {
        if !matches!(answer.status, 200 | 203) {
            return Err(FetchProblem::Status { status: answer.status }.into());
        }
        let media = answer.header(header::CONTENT_TYPE).map(Media::parse).transpose()?;
        let bytes = answer.read(self.fetcher.page_bytes_max, Overflow::Refuse)?;
        let bytes = match &media {
            Some(media) => media.to_known_encoding(bytes),
            None => bytes,
        };
        let is_html = match &media {
            Some(media) => media.is_html(),
            None => lodestone_extract::detect("", None, &bytes) == Ok(Format::Html),
        };
        let head = if is_html { lodestone_extract::html_head(&bytes) } else { Default::default() };
        let canonical_url = head
            .canonical
            .and_then(|reference| canonical(&final_url, &reference))
            .unwrap_or_else(|| final_url.clone());
        let media_type = media.map(|media| media.essence);
        Ok(WebPage { final_url, canonical_url, title: head.title, media_type, bytes })
    }
}

/// The target of a redirect; `None` for other responses.
fn next(url: &WebUrl, answer: &Answer) -> Result<Option<WebUrl>, RequestError> {
    if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = answer.header(header::LOCATION).filter(|location| !location.is_empty());
    let location = location.ok_or(FetchProblem::RedirectToNowhere)?;
    let target = url.join(location);
    let target = target.map_err(|problem: WebUrlError| BlockedReason::Redirect { problem })?;
    if url.is_https() && !target.is_https() {
        return Err(BlockedReason::Downgrade.into());
    }
    Ok(Some(target))
}

/// The canonical URL that a page declares, if it is on the same host. A page may declare any URL,
/// and sources are identified by it.
fn canonical(url: &WebUrl, reference: &str) -> Option<WebUrl> {
    let named = url.join(reference).ok()?;
    let (WebHost::Name(theirs), WebHost::Name(ours)) = (named.host(), url.host()) else {
        return (named.origin() == url.origin()).then_some(named);
    };
    let bare = |name: &str| name.strip_prefix("www.").unwrap_or(name).to_owned();
    let is_same = bare(theirs) == bare(ours) && (named.is_https() || !url.is_https());
    is_same.then_some(named)
}
