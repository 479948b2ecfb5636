//! Kinds of elements, by their effect on the surrounding text.

/// The kind of an element, as relevant to extracting text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// Inline content: emphasis, links, and anything unknown.
    Inline,
    /// Block content: divisions, sections, quotes.
    Block,
    /// A paragraph, which any block ends.
    Paragraph,
    /// A heading of this level.
    Heading(u8),
    /// A list; numbered or not.
    List {
        /// Whether its items are numbered.
        is_numbered: bool,
    },
    /// An item of a list.
    Item,
    /// A term or description in a description list.
    Term,
    /// Preformatted text.
    Listing,
    /// A table.
    Table,
    /// The head, body or foot of a table.
    RowGroup,
    /// A row of a table.
    Row,
    /// A table cell, which may be a header.
    Cell {
        /// Whether it is `th`.
        is_header: bool,
    },
    /// The main part of a page.
    Main,
    /// Navigation; never part of the text.
    Chrome,
    /// Content next to or below a text, which belongs to the site unless it is inside the text.
    Margin,
    /// Content above a text: its heading and the site's links.
    Header,
    /// The title of the document.
    Title,
    /// Never read: scripts, styles, controls, embedded objects.
    Unread,
    /// A link, or the target of one.
    Link,
    /// A line break.
    LineBreak,
    /// An image.
    Image,
    /// An element without content or text; some of these separate blocks.
    Void {
        /// Whether it separates blocks.
        is_block: bool,
    },
}

impl Tag {
    /// The kind of the element called `name`, in lower case.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "p" => Self::Paragraph,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => Self::Heading(name.as_bytes()[1] - b'0'),
            "ul" | "menu" | "dir" => Self::List { is_numbered: false },
            "ol" => Self::List { is_numbered: true },
            "li" => Self::Item,
            "dt" | "dd" => Self::Term,
            "pre" | "listing" | "xmp" | "plaintext" => Self::Listing,
            "table" => Self::Table,
            "thead" | "tbody" | "tfoot" => Self::RowGroup,
            "tr" => Self::Row,
            "td" => Self::Cell { is_header: false },
            "th" => Self::Cell { is_header: true },
            "main" => Self::Main,
            "nav" | "search" => Self::Chrome,
            "footer" | "aside" => Self::Margin,
            "header" => Self::Header,
            "title" => Self::Title,
            "a" => Self::Link,
            "br" => Self::LineBreak,
            "img" => Self::Image,
            "hr" => Self::Void { is_block: true },
            "area" | "base" | "basefont" | "bgsound" | "col" | "embed" | "frame" | "input"
            | "keygen" | "link" | "meta" | "param" | "source" | "track" | "wbr" => {
                Self::Void { is_block: false }
            }
            "script" | "style" | "template" | "noscript" | "noframes" | "noembed" | "iframe"
            | "object" | "applet" | "audio" | "video" | "canvas" | "svg" | "select"
            | "datalist" | "button" | "textarea" | "annotation" | "annotation-xml" | "dialog" => {
                Self::Unread
            }
            "html" | "head" | "body" | "div" | "section" | "article" | "hgroup" | "address"
            | "blockquote" | "center" | "details" | "summary" | "dl" | "fieldset" | "figure"
            | "figcaption" | "form" | "legend" | "caption" | "frameset" | "optgroup" | "option" => {
                Self::Block
            }
            _ => Self::Inline,
        }
    }

    /// Whether the element is separate from the text before and after it.
    pub(super) fn is_block(self) -> bool {
        !matches!(
            self,
            Self::Inline
                | Self::Link
                | Self::LineBreak
                | Self::Image
                | Self::Title
                | Self::Unread
                | Self::Void { is_block: false }
        )
    }

    /// Whether the element has no end tag.
    pub(super) fn is_void(self) -> bool {
        matches!(self, Self::LineBreak | Self::Image | Self::Void { .. })
    }

    /// Whether a start tag of this kind ends an open element of kind `open`, provided that no
    /// element for which [`Self::stops_at`] holds is in between.
    pub(super) fn ends(self, open: Self) -> bool {
        match self {
            Self::Item => open == Self::Item,
            Self::Term => open == Self::Term,
            Self::RowGroup => open == Self::RowGroup,
            Self::Row => open == Self::Row,
            Self::Cell { .. } => matches!(open, Self::Cell { .. }),
            Self::Link => open == Self::Link,
            _ => self.is_block() && open == Self::Paragraph,
        }
    }

    /// Whether the search for elements that a start tag of this kind ends stops at `open`.
    pub(super) fn stops_at(self, open: Self) -> bool {
        match self {
            Self::Item => matches!(open, Self::List { .. } | Self::Cell { .. } | Self::Table),
            Self::Term => matches!(open, Self::Block | Self::Cell { .. } | Self::Table),
            Self::RowGroup | Self::Row => open == Self::Table,
            Self::Cell { .. } => matches!(open, Self::Row | Self::Table),
            _ => open.is_block(),
        }
    }
}
