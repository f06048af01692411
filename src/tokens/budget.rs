//! How much work counting may do.
//!
//! Invariant: a budget only ever shrinks, and an empty one stays empty. Steps, not time: the same
//! text costs the same everywhere, so a limit can be tested and a refusal can be repeated.

/// A number of steps that counting may take, shared by all the texts it is handed to.
///
/// A step is one elementary act of the counter: a pair of parts tried or merged, a piece found, four
/// bytes of a piece read. A byte of English or code takes about half a step, of Chinese two and a
/// half, and of the worst text known six and a half; compiled to wasm, a step takes between
/// 15 and 35 ns. A window of a piece is only begun if one step per byte is left, and then
/// finished at up to four; a budget is thus overdrawn by no more than three times its last rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkBudget {
    left: u64,
}

impl WorkBudget {
    /// A budget of so many steps.
    #[must_use]
    pub const fn new(steps: u64) -> Self {
        Self { left: steps }
    }

    /// A budget that no text in memory can spend.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// The steps that are left.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Takes `steps` off, down to nothing.
    #[cfg(any(feature = "o200k", feature = "cl100k"))]
    pub(super) const fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
    }
}
