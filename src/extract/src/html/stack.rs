//! The open elements of a page, and whether they are visible.

use crate::HTML_DEPTH_MAX;
use crate::html::Scope;
use crate::html::tags::Tag;
use crate::html::tokens::Attributes;

/// The relevant information in a tag's attributes.
#[derive(Debug, Default)]
pub(super) struct Traits {
    is_hidden: bool,
    is_main: bool,
    /// The kind according to role or class, which overrides the kind according to the name.
    chrome: Option<Tag>,
    /// Whether it has a target, as links do.
    pub leads: bool,
    /// The alternative text of an image.
    pub alt: String,
    /// Numbers of columns and rows that a cell spans.
    pub span: (usize, usize),
    /// The number of a list item, or of the first one of a list.
    pub number: Option<u32>,
}

impl Traits {
    /// Evaluates attributes.
    pub(super) fn of(attributes: Attributes<'_>) -> Self {
        let mut traits = Self { span: (1, 1), ..Self::default() };
        let count = |value: &str| value.trim().parse().unwrap_or(1);
        for (name, value) in attributes {
            let is = |word: &str| value.trim().eq_ignore_ascii_case(word);
            match name.len() {
                7 if name.eq_ignore_ascii_case("colspan") => traits.span.0 = count(&value),
                7 if name.eq_ignore_ascii_case("rowspan") => traits.span.1 = count(&value),
                5 if name.eq_ignore_ascii_case("start") || name.eq_ignore_ascii_case("value") => {
                    traits.number = value.trim().parse().ok();
                }
                4 if name.eq_ignore_ascii_case("href") => traits.leads = true,
                3 if name.eq_ignore_ascii_case("alt") => traits.alt = value.into_owned(),
                4 if name.eq_ignore_ascii_case("role") => {
                    traits.is_main |= is("main");
                    traits.chrome = traits.chrome.or(of_role(value.trim()));
                }
                2 if name.eq_ignore_ascii_case("id") => traits.note_words(&value),
                5 if name.eq_ignore_ascii_case("class") => traits.note_words(&value),
                5 if name.eq_ignore_ascii_case("style") => traits.is_hidden |= hides(&value),
                6 if name.eq_ignore_ascii_case("hidden") => {
                    traits.is_hidden |= !is("until-found");
                }
                11 if name.eq_ignore_ascii_case("aria-hidden") => traits.is_hidden |= is("true"),
                _ => {}
            }
        }
        traits
    }

    fn note_words(&mut self, words: &str) {
        if words.split_whitespace().any(is_chrome_word) {
            self.chrome = Some(Tag::Chrome);
        }
    }
}

/// The kind of an element with this role.
fn of_role(role: &str) -> Option<Tag> {
    let roles = [
        ("navigation", Tag::Chrome),
        ("search", Tag::Chrome),
        ("dialog", Tag::Chrome),
        ("alertdialog", Tag::Chrome),
        ("complementary", Tag::Margin),
        ("contentinfo", Tag::Margin),
        ("banner", Tag::Header),
    ];
    let known = roles.iter().find(|(name, _)| role.eq_ignore_ascii_case(name));
    known.map(|(_, tag)| *tag)
}

/// Whether a class or id is one that many sites use for elements which are not part of the text:
/// not printed, for screen readers only, edit links, or cookie notices.
fn is_chrome_word(word: &str) -> bool {
    let shared = [
        "noprint", "no-print", "sr-only", "visually-hidden", "screen-reader-text", "skip-link",
        "mw-editsection",
    ];
    let asks = || {
        let word = word.to_ascii_lowercase();
        let is_notice = |rest: &str| {
            ["banner", "consent", "notice", "popup", "dialog"].iter().any(|end| rest.contains(end))
        };
        word.strip_prefix("cookie").or_else(|| word.strip_prefix("gdpr")).is_some_and(is_notice)
    };
    shared.iter().any(|one| word.eq_ignore_ascii_case(one)) || word.len() <= 60 && asks()
}

/// Whether an inline style makes the element invisible.
fn hides(style: &str) -> bool {
    let plain: String =
        style.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect();
    plain.contains("display:none") || plain.contains("visibility:hidden")
}

/// An open element.
#[derive(Debug)]
pub(super) struct Open {
    name: Box<str>,
    /// Its kind.
    pub tag: Tag,
    is_hidden: bool,
    is_main: bool,
    is_link: bool,
    /// Whether it is a heading, a summary or a term.
    is_label: bool,
    /// Whether it is navigation or a margin of the site.
    is_chrome: bool,
    /// Whether it is the header of a page.
    is_header: bool,
    /// Whether it is a section that has its own header, footer and asides.
    is_text: bool,
}

/// The open elements, outermost first.
#[derive(Debug)]
pub(super) struct Stack {
    scope: Scope,
    open: Vec<Open>,
    hidden: usize,
    main: usize,
    links: usize,
    labels: usize,
    chrome: usize,
    headers: usize,
    texts: usize,
    /// Number of open elements beyond the depth limit.
    beyond: usize,
    /// Whether the innermost of them is a script or a style sheet, which contain no tags.
    is_code: bool,
}

impl Stack {
    /// Creates an empty stack.
    pub(super) fn new(scope: Scope) -> Self {
        Self {
            scope,
            open: Vec::new(),
            hidden: 0,
            main: 0,
            links: 0,
            labels: 0,
            chrome: 0,
            headers: 0,
            texts: 0,
            beyond: 0,
            is_code: false,
        }
    }

    /// Whether text at this point belongs to the page's text.
    pub(super) fn is_visible(&self) -> bool {
        let is_outside = self.scope.is_part() && self.main == 0;
        self.is_title_visible() && self.chrome == 0 && !is_outside
    }

    /// Whether text at this point is in the header of a page.
    pub(super) fn is_in_header(&self) -> bool {
        self.headers > 0
    }

    /// Whether no element hides the text at this point, inside the main part or not.
    pub(super) fn is_title_visible(&self) -> bool {
        self.hidden == 0 && !self.is_code
    }

    /// Whether text at this point is part of a link.
    pub(super) fn is_in_link(&self) -> bool {
        self.links > 0
    }

    /// Whether text at this point is in a heading, a summary or a term.
    pub(super) fn is_in_label(&self) -> bool {
        self.labels > 0
    }

    /// The innermost open element.
    pub(super) fn last(&self) -> Option<&Open> {
        self.open.last()
    }

    /// Opens an element. Beyond the depth limit it is only counted, and `false` is returned.
    pub(super) fn push(&mut self, name: &str, tag: Tag, traits: &Traits) -> bool {
        if self.open.len() == HTML_DEPTH_MAX {
            self.beyond += 1;
            self.is_code = matches!(name, "script" | "style");
            return false;
        }
        let is_hidden = traits.is_hidden || tag == Tag::Unread;
        // Some sites mark the whole page with the class of their cookie notice.
        let is_page = matches!(name, "html" | "body" | "main" | "article");
        let role = traits.chrome.filter(|_| !is_page).unwrap_or(tag);
        let is_outside = self.texts == 0;
        let is_site = self.scope != Scope::Whole;
        let is_chrome = is_site && (role == Tag::Chrome || role == Tag::Margin && is_outside);
        let is_header = is_site && role == Tag::Header && is_outside;
        let is_text = tag == Tag::Main || traits.is_main || name == "article";
        let is_main = match self.scope {
            Scope::Article => name == "article",
            _ => tag == Tag::Main || traits.is_main,
        };
        let is_link = tag == Tag::Link && traits.leads;
        let is_label = matches!(tag, Tag::Heading(_)) || matches!(name, "summary" | "dt");
        self.links += usize::from(is_link);
        self.labels += usize::from(is_label);
        self.hidden += usize::from(is_hidden);
        self.main += usize::from(is_main);
        self.chrome += usize::from(is_chrome);
        self.headers += usize::from(is_header);
        self.texts += usize::from(is_text);
        let name = name.into();
        self.open.push(Open {
            name,
            tag,
            is_hidden,
            is_main,
            is_link,
            is_label,
            is_chrome,
            is_header,
            is_text,
        });
        true
    }

    /// Closes the innermost element.
    pub(super) fn pop(&mut self) -> Option<Open> {
        let closed = self.open.pop()?;
        self.hidden -= usize::from(closed.is_hidden);
        self.main -= usize::from(closed.is_main);
        self.links -= usize::from(closed.is_link);
        self.labels -= usize::from(closed.is_label);
        self.chrome -= usize::from(closed.is_chrome);
        self.headers -= usize::from(closed.is_header);
        self.texts -= usize::from(closed.is_text);
        Some(closed)
    }

    /// Number of elements that a start tag of kind `tag` ends, innermost first.
    pub(super) fn ended_by(&self, tag: Tag) -> usize {
        for (depth, open) in self.open.iter().rev().enumerate() {
            if tag.ends(open.tag) {
                return depth + 1;
            }
            if tag.stops_at(open.tag) {
                return 0;
            }
        }
        0
    }

    /// Number of elements that an end tag closes, innermost first. The end tag of an inline element
    /// does not reach beyond its block; one without a start tag closes nothing.
    pub(super) fn closed_by(&mut self, name: &str) -> usize {
        if self.beyond > 0 {
            self.beyond -= 1;
            self.is_code = false;
            return 0;
        }
        // Elements that are not read may contain blocks that are never closed, such as the options
        // of a list.
        let tag = Tag::of(name);
        let is_inline = !tag.is_block() && tag != Tag::Unread;
        for (depth, open) in self.open.iter().rev().enumerate() {
            if *open.name == *name {
                return depth + 1;
            }
            if is_inline && open.tag.is_block() {
                return 0;
            }
        }
        0
    }
}
