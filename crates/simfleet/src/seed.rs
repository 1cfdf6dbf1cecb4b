//! Repeatable randomness: everything is drawn from the fleet's seed.

/// The odd constant of splitmix64: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A number that depends on all parts and looks random.
pub fn mix(parts: &[u64]) -> u64 {
    parts
        .iter()
        .fold(STEP, |sum, part| scramble(sum ^ part.wrapping_mul(STEP)))
}

/// A number in 0..1 that depends on all parts.
pub fn share(parts: &[u64]) -> f64 {
    unit(mix(parts))
}

/// The finaliser of splitmix64.
fn scramble(seed: u64) -> u64 {
    let a = seed.wrapping_add(STEP);
    let b = (a ^ (a >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let c = (b ^ (b >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    c ^ (c >> 31)
}

fn unit(bits: u64) -> f64 {
    // 53 bits fill a float's mantissa exactly.
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// A stream of draws in eight bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        scramble(self.0)
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.draw() % (high.saturating_sub(low) + 1)
    }

    /// True in about `share` of all draws.
    pub fn chance(&mut self, share: f64) -> bool {
        unit(self.draw()) < share
    }
}
