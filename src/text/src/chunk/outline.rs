//! Outline above a chunk: the headings of its sections, and the header row of the table, or the
//! first line of the record, that it is in. A piece of a table does not say what it counts without
//! its header, nor a piece of a record whose record it is.

use lodestone_types::{Block, BlockKind, ChunkDraft};

/// Maximum characters of headings and header row above one chunk: some forty tokens, which fit into
/// the model's window along with a chunk of maximum size and a title.
const CONTEXT_CHARS_MAX: usize = 160;
/// Maximum characters of one heading or header row.
const LINE_CHARS_MAX: usize = 100;

/// Returns, for each chunk of `text`, the lines above it that are not part of it: headings from
/// outermost to innermost, then the header row or the first line of the record; empty if there are
/// none. `title` is omitted, as it is known for every chunk. If the limit is exceeded, outer
/// headings are dropped first.
pub fn contexts(text: &str, blocks: &[Block], title: &str, chunks: &[ChunkDraft]) -> Vec<String> {
    let mut outline = Outline::default();
    let mut blocks = blocks.iter().peekable();
    let (mut byte, mut char) = (0, 0);
    let mut contexts = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let start = chunk.place.document_start as usize;
        byte += text[byte..].chars().take(start - char).map(char::len_utf8).sum::<usize>();
        char = start;
        while let Some(block) = blocks.next_if(|block| block.range.start < byte) {
            outline.pass(text, block);
        }
        contexts.push(outline.over(text, byte, title));
    }
    contexts
}

/// The open headings and the last table or record at a position of the text.
#[derive(Debug, Default)]
struct Outline<'a> {
    /// Level and text, ascending by level.
    headings: Vec<(u8, &'a str)>,
    table: Option<&'a Block>,
}

impl<'a> Outline<'a> {
    fn pass(&mut self, text: &'a str, block: &'a Block) {
        match block.kind {
            BlockKind::Heading { level } => {
                self.headings.retain(|(open, _)| *open < level);
                self.headings.push((level, line(&text[block.range.clone()])));
                self.table = None;
            }
            BlockKind::Table | BlockKind::Record => self.table = Some(block),
            _ => self.table = None,
        }
    }

    /// The lines above the chunk that starts at `byte`.
    fn over(&self, text: &str, byte: usize, title: &str) -> String {
        let inside = self.table.filter(|table| byte < table.range.end);
        let header = inside.map(|table| line(&text[table.range.clone()]));
        // Metadata starts with a line of punctuation.
        let header = header.filter(|line| line.contains(char::is_alphanumeric));
        let headings = self.headings.iter().map(|(_, heading)| *heading);
        let mut chars_left = CONTEXT_CHARS_MAX;
        let mut lines: Vec<&str> = Vec::new();
        for line in header.into_iter().chain(headings.rev()) {
            let Some(left) = chars_left.checked_sub(line.chars().count() + 1) else { break };
            if !line.is_empty() && line != title && !lines.contains(&line) {
                chars_left = left;
                lines.push(line);
            }
        }
        // The header row was picked first but comes last.
        let headers = usize::from(header.is_some() && header == lines.first().copied());
        lines.rotate_left(headers);
        let headings = lines.len() - headers;
        lines[..headings].reverse();
        lines.join("\n")
    }
}

/// The first line of a block without heading markers, truncated at a word.
fn line(block: &str) -> &str {
    let line = block.trim_start_matches(['#', ' ']).lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(LINE_CHARS_MAX) {
        None => line,
        Some((end, _)) => {
            let cut = line[..end].rfind(char::is_whitespace).unwrap_or(end);
            line[..cut].trim_end()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_types::ChunkPlace;

    const TEXT: &str = "# Report\n\nintro\n\n## Sales\n\nprose\n\n\
                        | region | units |\n| --- | --- |\n| north | 4 |\n| south | 5 |\n\n\
                        after\n\n### Détail\n\nmore\n\n## Costs\n\nend";

    fn blocks() -> Vec<Block> {
        let kinds = [
            ("# Report", BlockKind::Heading { level: 1 }),
            ("intro", BlockKind::Paragraph),
            ("## Sales", BlockKind::Heading { level: 2 }),
            ("prose", BlockKind::Paragraph),
            (&TEXT[TEXT.find('|').unwrap()..TEXT.find("\n\nafter").unwrap()], BlockKind::Table),
            ("after", BlockKind::Paragraph),
            ("### Détail", BlockKind::Heading { level: 3 }),
            ("more", BlockKind::Paragraph),
            ("## Costs", BlockKind::Heading { level: 2 }),
            ("end", BlockKind::Paragraph),
        ];
        let at = |part: &str| TEXT.find(part).unwrap();
        let block =
            |(part, kind): (&str, _)| Block { kind, range: at(part)..at(part) + part.len() };
        kinds.into_iter().map(block).collect()
    }

    fn over(starts: &[&str], title: &str) -> Vec<String> {
        let draft = |part: &&str| {
            let document_start = TEXT[..TEXT.find(*part).unwrap()].chars().count() as u32;
            let place = ChunkPlace { document_start, ..ChunkPlace::default() };
            ChunkDraft { text: String::new(), place }
        };
        let drafts: Vec<ChunkDraft> = starts.iter().map(draft).collect();
        contexts(TEXT, &blocks(), title, &drafts)
    }

    #[test]
    fn headings_and_header_row_stand_over_what_is_cut_from_them() {
        let found = over(&["# Report", "intro", "## Sales", "| region", "| south", "after"], "");
        let expected =
            ["", "Report", "Report", "Report\nSales", "Report\nSales\n| region | units |"];
        assert_eq!(found[..5], expected);
        assert_eq!(found[5], "Report\nSales");
        assert_eq!(over(&["more", "end"], "Report"), ["Sales\nDétail", "Costs"]);
        assert_eq!(over(&["intro"], "Report"), [""]);
    }

    #[test]
    fn the_rest_of_a_record_says_whose_it_is() {
        let text = "## Staff\n\nname: Ada\nrole: lead\nroom: 5\n\nname: Bo\nrole: cook";
        let at = |part: &str| text.find(part).unwrap();
        let kinds = [
            (BlockKind::Heading { level: 2 }, 0..8),
            (BlockKind::Record, at("name: Ada")..at("\n\nname: Bo")),
            (BlockKind::Record, at("name: Bo")..text.len()),
        ];
        let blocks = kinds.map(|(kind, range)| Block { kind, range });
        let draft = |part: &str| {
            let place = ChunkPlace { document_start: at(part) as u32, ..ChunkPlace::default() };
            ChunkDraft { text: String::new(), place }
        };
        let found = contexts(text, &blocks, "", &["room", "name: Bo"].map(draft));
        assert_eq!(found, ["Staff\nname: Ada", "Staff"]);
    }

    #[test]
    fn long_lines_are_cut_and_outer_ones_left_out() {
        let long = "word ".repeat(60);
        assert_eq!(line(&long).chars().count(), 99);
        let heading = |level| (level, line(&long));
        let outline = Outline { headings: vec![(1, "a"), heading(2), heading(3)], table: None };
        assert_eq!(outline.over("", 0, ""), line(&long), "equal lines stand once");
        let other = "other ".repeat(16);
        let headings = vec![(1, "top"), (2, line(&other)), heading(3)];
        let found = Outline { headings, table: None }.over("", 0, "");
        assert_eq!(found, line(&long), "the innermost stays");
    }
}
