//! Upper estimates of token counts without the model's tokenizer: a generator is known only by its
//! URL.

use crate::generate::{Prompt, Tools, Usage};

/// Tokens that frame one message of a chat.
pub(super) const MESSAGE_TOKENS: usize = 8;

/// Estimates the tokens of a character, in thirds of a token.
///
/// Tokenizers of current models make one token of about four Latin letters, of one or two letters
/// of other alphabets, and up to two tokens of a character of Asian scripts; digits and signs are
/// often single tokens. The shares here are upper bounds of these: a prompt that is too short costs
/// a source, but one that is too long is silently truncated by some servers.
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

/// Estimates the tokens of a text, rather too many than too few.
pub(super) fn estimate(text: &str) -> usize {
    text.chars().map(thirds).sum::<usize>().div_ceil(3)
}

/// Estimates the usage of a call whose generator does not report it.
pub(super) fn usage(prompt: &Prompt, reply: &[&str]) -> Usage {
    let messages = prompt.messages.iter().map(|message| estimate(&message.text) + MESSAGE_TOKENS);
    let input = messages.sum::<usize>() + prompt.tools.as_ref().map_or(0, of_tools);
    let output: usize = reply.iter().map(|text| estimate(text)).sum();
    Usage { input_tokens: input as u64, output_tokens: output as u64 }
}

/// Estimates the tokens of functions and their results.
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
