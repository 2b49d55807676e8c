//! The parameter `instruction`, checked against what the policy's prompt can hold.

use super::params::ParamError;
use crate::encode::InstructionCheck;

/// Name of the parameter.
pub const INSTRUCTION: &str = "instruction";

/// Checks a value that is about to be set; empty stands for no instruction yet.
///
/// # Errors
/// The policy would refuse every observation with this instruction.
pub fn check_given(check: &InstructionCheck, instruction: &str) -> Result<(), ParamError> {
    if instruction.is_empty() {
        return Ok(());
    }
    check(instruction).map_err(|error| ParamError::Unusable {
        name: INSTRUCTION.to_owned(),
        reason: format!("cannot be used: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::encode::prompt::PromptError;

    #[test]
    fn what_the_prompt_refuses_is_refused_by_name() {
        let check: InstructionCheck = Arc::new(|text| match text {
            "wave" => Ok(()),
            _ => Err(PromptError::TooLong { chars: text.chars().count() }),
        });
        assert_eq!(check_given(&check, ""), Ok(()));
        assert_eq!(check_given(&check, "wave"), Ok(()));
        let refused = check_given(&check, "xxx").expect_err("refused").to_string();
        assert!(refused.starts_with("parameter 'instruction' cannot be used: "), "{refused}");
    }
}
