//! Number of tokens of a text at most, as far as that can be said without the model's own
//! tokenizer: a generator is known by its URL alone.

use crate::generate::{Prompt, Tools, Usage};

/// Tokens that frame one message of a chat.
pub(super) const MESSAGE_TOKENS: usize = 8;

/// Thirds of a token for one character.
///
/// Tokenizers of current models make one token of some four Latin letters, of one to two letters
/// of other alphabets, and up to two tokens of a character of the scripts of Asia; digits and
/// signs are often tokens of their own. Each share here is the upper end of that: a prompt that is
/// too short costs a source, one that is too long is cut in silence by some servers.
fn thirds(c: char) -> usize {
    match c {
        'a'..='z' | 'A'..='Z' | ' ' | '\n' => 1,
        _ if c.is_ascii() => 2,
        _ => match c.len_utf8() {
            2 => 3,
            3 => 5,
            _ => 9,
        },
    }
}

/// Tokens of the text, rather too many than too few.
pub(super) fn estimate(text: &str) -> usize {
    text.chars().map(thirds).sum::<usize>().div_ceil(3)
}

/// Usage of a call whose generator does not report it.
pub(super) fn usage(prompt: &Prompt, reply: &[&str]) -> Usage {
    let messages = prompt.messages.iter().map(|message| estimate(&message.text) + MESSAGE_TOKENS);
    let input = messages.sum::<usize>() + prompt.tools.as_ref().map_or(0, of_tools);
    let output: usize = reply.iter().map(|text| estimate(text)).sum();
    Usage { input_tokens: input as u64, output_tokens: output as u64 }
}

/// Tokens of functions and their results.
pub(super) fn of_tools(tools: &Tools) -> usize {
    tools.texts().map(|text| estimate(&text) + MESSAGE_TOKENS).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_dear() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("The quick brown fox"), 7);
        assert_eq!(estimate("12.5"), 3);
        assert_eq!(estimate("塔塔塔"), 5);
    }
}
