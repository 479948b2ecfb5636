//! Destinations: the purpose of a group's text.

/// A destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Destination {
    /// Text of the document.
    #[default]
    Body,
    /// Nothing that is read.
    Skipped,
    /// Fonts and their character sets.
    Fonts,
    /// Names of styles.
    Styles,
    /// Metadata of the document, of which the title is read.
    Metadata,
    /// The title.
    Title,
    /// The mark of an item.
    Mark,
    /// A note.
    Note,
    /// A text box.
    Box,
    /// A header or a footer.
    Margin,
}

impl Destination {
    /// The destination that a word opens. Words behind a star that are not known open one that is
    /// passed over; others open none.
    pub(super) fn of(word: &str, is_starred: bool) -> Option<Self> {
        Some(match word {
            "fonttbl" => Self::Fonts,
            "stylesheet" => Self::Styles,
            "info" => Self::Metadata,
            "title" => Self::Title,
            "listtext" | "pntext" => Self::Mark,
            "footnote" => Self::Note,
            "shptxt" => Self::Box,
            "header" | "headerl" | "headerr" | "headerf" | "footer" | "footerl" | "footerr"
            | "footerf" => Self::Margin,
            "colortbl" | "pict" | "fldinst" | "xe" | "tc" | "tcn" | "nonshppict" | "shprslt"
            | "private" | "filetbl" | "ftnsep" | "ftnsepc" | "ftncn" | "aftnsep" | "aftnsepc"
            | "aftncn" | "template" | "sp" | "nonesttables" | "objdata" | "datafield"
            | "listtable" | "revtbl" | "rsidtbl" | "themedata" => Self::Skipped,
            // Known and read although they stand behind a star.
            "shpinst" | "ud" | "shppict" | "shpgrp" => return None,
            _ if is_starred => Self::Skipped,
            _ => return None,
        })
    }
}
