//! What lies between the steps of a frame chain.

use super::view::View;

/// The 8-bit pictures between the steps, of the frame that was encoded last (black before the first).
#[derive(Clone, Copy)]
pub struct Stages<'a> {
    /// The frame, letterboxed where the chain does that, with its shorter side at `shortest_edge`.
    pub resize1: View<'a>,
    /// Its middle.
    pub crop: View<'a>,
    /// The crop, its shorter side back at `shortest_edge`.
    pub resize2: View<'a>,
    /// What the vision tower sees, before normalisation.
    pub u8: View<'a>,
}
