//! Where in the streams something happens.

use std::fmt;

use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::lowered::Engine;

/// An instruction of an engine, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub core: Core,
    pub engine: Engine,
    pub segment: String,
    /// Number of the pass, counted like vectors in L1: from the segment's first pass on.
    pub pass: u32,
    /// Number of the instruction in its stream.
    pub number: usize,
    pub instruction: &'static str,
    /// The program's instruction that it is part of.
    pub op: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "core {}, {}: instruction {} of segment '{}', pass {} ({} of op {})",
            self.core,
            self.engine.name(),
            self.number,
            self.segment,
            self.pass,
            self.instruction,
            self.op
        )
    }
}

/// A [`Place`] that costs nothing as long as nothing is wrong there.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub core: Core,
    pub engine: Engine,
    pub segment: &'a str,
    pub pass: u32,
    pub number: usize,
    pub instruction: &'static str,
    pub op: u32,
}

impl At<'_> {
    pub fn place(self) -> Box<Place> {
        Box::new(Place {
            core: self.core,
            engine: self.engine,
            segment: self.segment.to_owned(),
            pass: self.pass,
            number: self.number,
            instruction: self.instruction,
            op: self.op,
        })
    }
}
