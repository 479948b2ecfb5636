//! Destinations: the purpose of the text in a group.

/// The destination of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Destination {
    /// Document text.
    #[default]
    Body,
    /// Not read.
    Skipped,
    /// The font table, with character sets.
    Fonts,
    /// Style names.
    Styles,
    /// Document metadata; only the title is read.
    Metadata,
    /// The title.
    Title,
    /// The marker of a list item.
    Mark,
    /// A note.
    Note,
    /// A text box.
    Box,
    /// A header or footer.
    Margin,
}

impl Destination {
    /// The destination opened by a control word. Unknown starred words open a skipped destination;
    /// other unknown words open none.
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
            // Read although they are starred.
            "shpinst" | "ud" | "shppict" | "shpgrp" => return None,
            _ if is_starred => Self::Skipped,
            _ => return None,
        })
    }
}
