//! The arguments of every command that loads a policy.

use std::path::PathBuf;

use clap::{Args, value_parser};

use crate::contract::{Letterbox, Version};
use crate::policy::PolicyOptions;
use crate::prepared::{self, Cache};

#[derive(Clone, Debug, Args)]
pub struct PolicyArgs {
    /// Snapshot directory of the checkpoint; default: the released one of --version in the hub cache.
    #[arg(long, required_unless_present = "version")]
    snapshot: Option<PathBuf>,
    /// Version that the checkpoint has to be of: n15, n16 or n17; any if it is left out.
    #[arg(long)]
    version: Option<Version>,
    /// Directory with the tokenizer files; default: the snapshot's `tokenizer` folder, the snapshot itself, or the hub cache.
    #[arg(long)]
    tokenizer: Option<PathBuf>,
    /// Embodiment tag; may be left out when the checkpoint serves only one.
    #[arg(long)]
    embodiment: Option<String>,
    /// Data config, N1.5 only; default: the tag's own, or the only one that fits the checkpoint's metadata.
    #[arg(long)]
    data_config: Option<String>,
    /// Whether frames are padded to squares, N1.7 only: auto (as the checkpoint declares), on or off.
    #[arg(long, default_value_t)]
    letterbox: Letterbox,
    /// Threads of the CPU backend, 0 to 256; 0 means all cores.
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u16).range(0..=256))]
    threads: u16,
    /// Compute what no input changes at every start, instead of keeping it in the cache (GR00T_CACHE_DIR).
    #[arg(long)]
    no_cache: bool,
}

impl PolicyArgs {
    pub fn options(&self) -> PolicyOptions {
        PolicyOptions {
            snapshot: self.snapshot.clone().unwrap_or_default(),
            tokenizer: self.tokenizer.clone(),
            embodiment: self.embodiment.clone(),
            data_config: self.data_config.clone(),
            letterbox: self.letterbox,
            threads: usize::from(self.threads),
            version: self.version,
            cache: Cache::new(prepared::default_dir().filter(|_| !self.no_cache)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: PolicyArgs,
    }

    #[test]
    fn threads_have_the_range_of_the_node() {
        let parse = |threads: &str| {
            Line::try_parse_from(["x", "--snapshot", "s", "--threads", threads])
                .map(|line| line.args.threads)
        };
        assert_eq!(parse("256").expect("the largest"), 256);
        for wrong in ["257", "-1", "100000"] {
            assert_eq!(parse(wrong).expect_err(wrong).exit_code(), 2);
        }
    }
}
