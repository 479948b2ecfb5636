//! Token counts between two positions of a text.

use std::ops::Range;

use crate::chunk::TokenOffsets;
use lodestone_types::script::{is_east_asian, is_unspaced};

/// Bytes tokenised at a time. A tokenizer uses some hundred bytes per token while it works, so a
/// whole book at once would take gigabytes.
const WINDOW_BYTES: usize = 64 << 10;

/// Maximum letters of one word, for scripts without spaces (Thai, Lao, Khmer, Burmese: four to five
/// letters) and for others.
const WORD_LETTERS_MAX: [usize; 2] = [4, 16];
/// Of this many words spelt out by the tokenizer, one counts as two tokens and the others as one:
/// 4/3 tokens per word, as in English (200 tokens are some 150 words).
const SPELT_WORDS: usize = 3;

/// Start offsets of the tokens of a text, ascending. Four bytes each, because a text of 32 MiB may
/// have as many tokens as characters. A word that the tokenizer spells out letter by letter counts
/// as much as a word that it knows: its letters carry no more meaning, and 200 of them are just 40
/// words of Hindi.
#[derive(Debug)]
pub(super) struct Ruler {
    starts: Vec<u32>,
}

impl Ruler {
    /// Tokenises `text` window by window.
    pub(super) fn new(text: &str, tokens: &dyn TokenOffsets) -> Self {
        assert!(u32::try_from(text.len()).is_ok(), "a text is smaller than 4 GiB");
        let mut starts: Vec<u32> = Vec::with_capacity(text.len() / 4);
        let mut from = 0;
        while from < text.len() {
            let window = &text[from..window_end(text, from)];
            let mut spelling = Spelling::default();
            for token in tokens.token_offsets(window) {
                // Byte-level tokenizers may start inside a character, or start two tokens at the
                // same position.
                let start = from + window.floor_char_boundary(token.start);
                let is_after_last = starts.last().is_none_or(|&last| (last as usize) < start);
                if is_after_last && !token.is_empty() && spelling.counts(window, token) {
                    starts.push(start as u32);
                }
            }
            from += window.len();
        }
        Self { starts }
    }

    /// Number of tokens that start before `place`.
    pub(super) fn before(&self, place: usize) -> usize {
        self.starts.partition_point(|&start| (start as usize) < place)
    }

    /// Start of token `index`; `None` past the last one.
    pub(super) fn start(&self, index: usize) -> Option<usize> {
        self.starts.get(index).map(|&start| start as usize)
    }
}

/// Detects words of a window that its tokenizer spells out.
#[derive(Debug, Default)]
struct Spelling {
    /// End of the previous token.
    end: usize,
    /// Letters of the current word so far; 0 if the previous token is not part of one.
    letters: usize,
    words: usize,
}

impl Spelling {
    /// Whether the next token counts: all do except most letters of a spelt-out word.
    fn counts(&mut self, text: &str, token: Range<usize>) -> bool {
        let between = text.get(std::mem::replace(&mut self.end, token.end)..token.start);
        let Some(letter) = spelt_letter(text.get(token).unwrap_or_default()) else {
            self.letters = 0;
            return true;
        };
        let letters_max = WORD_LETTERS_MAX[usize::from(!is_unspaced(letter))];
        let is_same_word = between.is_some_and(|text| !text.contains(char::is_whitespace));
        if is_same_word && (1..letters_max).contains(&self.letters) {
            self.letters += 1;
            return self.letters == 2 && self.words.is_multiple_of(SPELT_WORDS);
        }
        self.letters = 1;
        self.words += 1;
        true
    }
}

/// The single letter that a token consists of, unless it is ASCII, where models know the words, or
/// East Asian, where a letter means as much as half a word.
fn spelt_letter(token: &str) -> Option<char> {
    let mut letters = token.chars().filter(|c| c.is_alphabetic());
    let letter = letters.next().filter(|c| !c.is_ascii() && !is_east_asian(*c));
    letter.filter(|_| letters.next().is_none())
}

/// The last line end in the window that starts at `from`, or else its last white space, or else a
/// character boundary. Tokens do not span white space.
fn window_end(text: &str, from: usize) -> usize {
    if text.len() - from <= WINDOW_BYTES {
        return text.len();
    }
    let full = &text[from..text.floor_char_boundary(from + WINDOW_BYTES)];
    let after_line = full.rfind('\n').map(|at| at + 1);
    // Before the white space, not after it: a tokenizer may attach a space to the word that
    // follows.
    let before_space = || full.rfind(char::is_whitespace).filter(|&at| at > 0);
    from + after_line.or_else(before_space).unwrap_or(full.len())
}
