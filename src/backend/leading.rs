//! Stages that depend on the leading tokens of a request alone, and need not run again while those stay the same.

use crate::program::Stage;

/// For which leading tokens the stages of a program have run.
#[derive(Clone, Debug, Default)]
pub struct LeadingTokens {
    /// By stage.
    done_for: Vec<Option<Vec<u32>>>,
}

impl LeadingTokens {
    /// No stage has run.
    pub fn new(stages: usize) -> Self {
        Self { done_for: vec![None; stages] }
    }

    /// Whether a stage has to run for these tokens. If so, it counts as not run until [`Self::finish`]: a run that does not
    /// come to its end leaves nothing to rely on.
    pub fn begin(&mut self, number: usize, stage: &Stage, tokens: &[u32]) -> bool {
        let leading = leading(stage, tokens);
        if leading.is_some() && self.done_for[number].as_deref() == leading {
            return false;
        }
        self.done_for[number] = None;
        true
    }

    /// A stage has run to its end.
    pub fn finish(&mut self, number: usize, stage: &Stage, tokens: &[u32]) {
        self.done_for[number] = leading(stage, tokens).map(<[u32]>::to_vec);
    }
}

fn leading<'a>(stage: &Stage, tokens: &'a [u32]) -> Option<&'a [u32]> {
    stage.leading_tokens.map(|count| &tokens[..count])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::StageKind;

    #[test]
    fn a_stage_runs_again_for_other_tokens_or_after_a_run_that_did_not_end() {
        let stage = |leading_tokens| Stage { kind: StageKind::Llm, leading_tokens, ops: vec![] };
        let (kept, always) = (stage(Some(2)), stage(None));
        let mut leading = LeadingTokens::new(2);
        assert!(leading.begin(0, &kept, &[1, 2, 3]));
        assert!(leading.begin(0, &kept, &[1, 2, 3]), "the run did not end");
        leading.finish(0, &kept, &[1, 2, 3]);
        assert!(!leading.begin(0, &kept, &[1, 2, 9]));
        assert!(leading.begin(0, &kept, &[1, 7, 3]));
        assert!(leading.begin(0, &kept, &[1, 2, 3]));
        assert!(leading.begin(1, &always, &[1]));
        leading.finish(1, &always, &[1]);
        assert!(leading.begin(1, &always, &[1]));
    }
}
