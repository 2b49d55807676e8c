//! Whether camera frames are padded to squares.

use std::fmt;
use std::str::FromStr;

/// Whether an N1.7 policy pads camera frames to squares before it resizes them. N1.5 never does, N1.6 always.
///
/// Revisions of the reference disagree on whether they obey the checkpoint's own flag, so checkpoints exist that were
/// trained on padded frames and declare the opposite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Letterbox {
    /// As the checkpoint declares it.
    #[default]
    Auto,
    On,
    Off,
}

impl Letterbox {
    pub const ALL: [Letterbox; 3] = [Letterbox::Auto, Letterbox::On, Letterbox::Off];

    /// Whether to pad, given what the checkpoint declares, if anything.
    pub fn applies(self, declared: Option<bool>) -> Option<bool> {
        match self {
            Letterbox::Auto => declared,
            Letterbox::On => Some(true),
            Letterbox::Off => Some(false),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Letterbox::Auto => "auto",
            Letterbox::On => "on",
            Letterbox::Off => "off",
        }
    }
}

impl fmt::Display for Letterbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Letterbox {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Letterbox::ALL.into_iter().find(|letterbox| letterbox.name() == text);
        known.ok_or_else(|| format!("letterbox '{text}' is not one of auto, on, off"))
    }
}
