//! Pooling: computes the vector of a passage from the states of its tokens.

use crate::EmbedError;
use crate::config::Pooling;
use crate::elementwise;

impl Pooling {
    /// Pools the states of a passage, (tokens, hidden): the state of the first token, or the sum
    /// over tokens, which has the direction of the mean.
    pub fn sum(self, states: &[f32], hidden: usize) -> Vec<f32> {
        match self {
            Self::First => states[..hidden].to_vec(),
            Self::Mean => {
                let mut sum = vec![0.0; hidden];
                elementwise::add_rows(&mut sum, states);
                sum
            }
        }
    }

    /// Pools the states of a text exactly: for [`Self::Mean`], the sum divided by the number of
    /// tokens.
    pub fn state(self, states: &[f32], hidden: usize) -> Vec<f32> {
        let mut state = self.sum(states, hidden);
        if self == Self::Mean {
            let inverse = 1.0 / (states.len() / hidden) as f32;
            state.iter_mut().for_each(|x| *x *= inverse);
        }
        state
    }
}

/// Scales `sum` to length 1. A sum over tokens therefore need not be divided by their number first.
pub(super) fn unit(mut sum: Vec<f32>) -> Result<Vec<f32>, EmbedError> {
    let square: f64 = sum.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    if !(square.is_finite() && square > 0.0) {
        let problem = format!("a vector of squared length {square}");
        return Err(EmbedError::Compute { problem });
    }
    let inverse = (1.0 / square.sqrt()) as f32;
    for x in &mut sum {
        *x *= inverse;
    }
    Ok(sum)
}
