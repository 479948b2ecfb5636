//! Tokens counted between two places of a text.

use std::ops::Range;

use crate::chunk::TokenOffsets;
use lodestone_types::script::{is_east_asian, is_unspaced};

/// Bytes that are tokenised at once. A tokenizer keeps some hundred bytes for each token while it
/// works, so that a whole book at once would cost gigabytes.
const WINDOW_BYTES: usize = 64 << 10;

/// Letters of one word at most where words stand without spaces (Thai, Lao, Khmer, Burmese: four
/// to five), and where they do not.
const WORD_LETTERS_MAX: [usize; 2] = [4, 16];
/// Of so many words that the tokenizer spells, one counts as two tokens and the others as one:
/// 4/3 tokens a word, as in English (200 tokens are some 150 words).
const SPELT_WORDS: usize = 3;

/// Starts of the tokens of a text, in bytes, ascending. Four bytes each: a text of 32 MiB may
/// have as many tokens as characters. A word that the tokenizer spells letter by letter counts as
/// much as a word that it knows: its letters say no more, and 200 of them are 40 words of Hindi.
#[derive(Debug)]
pub(super) struct Ruler {
    starts: Vec<u32>,
}

impl Ruler {
    /// Tokenises `text`, window by window.
    pub(super) fn new(text: &str, tokens: &dyn TokenOffsets) -> Self {
        assert!(u32::try_from(text.len()).is_ok(), "a text is smaller than 4 GiB");
        let mut starts: Vec<u32> = Vec::with_capacity(text.len() / 4);
        let mut from = 0;
        while from < text.len() {
            let window = &text[from..window_end(text, from)];
            let mut spelling = Spelling::default();
            for token in tokens.token_offsets(window) {
                // Byte-level tokenizers may begin inside a character, or two tokens in one place.
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

    /// Tokens that begin before `place`.
    pub(super) fn before(&self, place: usize) -> usize {
        self.starts.partition_point(|&start| (start as usize) < place)
    }

    /// Start of token `index`; `None` past the last.
    pub(super) fn start(&self, index: usize) -> Option<usize> {
        self.starts.get(index).map(|&start| start as usize)
    }
}

/// The words of a window that its tokenizer spells.
#[derive(Debug, Default)]
struct Spelling {
    /// End of the last token.
    end: usize,
    /// Letters of the word so far; 0 where the last token is none of them.
    letters: usize,
    words: usize,
}

impl Spelling {
    /// Whether the next token counts: all do but most letters of a word that is spelt.
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

/// The letter that a token consists of, outside ASCII, where models know words, and outside East
/// Asian scripts, where a letter says as much as half a word.
fn spelt_letter(token: &str) -> Option<char> {
    let mut letters = token.chars().filter(|c| c.is_alphabetic());
    let letter = letters.next().filter(|c| !c.is_ascii() && !is_east_asian(*c));
    letter.filter(|_| letters.next().is_none())
}

/// The last line end of the window that begins at `from`, else its last white space, else a
/// character boundary. Tokens do not span white space.
fn window_end(text: &str, from: usize) -> usize {
    if text.len() - from <= WINDOW_BYTES {
        return text.len();
    }
    let full = &text[from..text.floor_char_boundary(from + WINDOW_BYTES)];
    let after_line = full.rfind('\n').map(|at| at + 1);
    // Before the white space, not after it: a tokenizer may glue a space to the word it precedes.
    let before_space = || full.rfind(char::is_whitespace).filter(|&at| at > 0);
    from + after_line.or_else(before_space).unwrap_or(full.len())
}
