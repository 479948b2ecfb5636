//! A seeded random number generator (xorshift64*), identical on every machine.

pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // A state of zero would remain zero.
        Self((seed ^ 0x9e37_79b9_7f4a_7c15).max(1))
    }

    /// Derives an independent generator.
    pub fn split(&mut self) -> Self {
        Self::new(self.next())
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 to 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn chance(&mut self, share: f64) -> bool {
        self.share() < share
    }

    /// 20 to 2,000 ms, mostly short: most steps of a write are over soon after it.
    pub fn kill_delay_ms(&mut self) -> u64 {
        match self.below(10) {
            0..5 => 20 + self.below(180),
            5..8 => 200 + self.below(400),
            _ => 600 + self.below(1400),
        }
    }
}
