//! Which buffers of a program the card keeps in which precision.

use crate::program::{BufferSource, Input, Op, Program};

/// How the values of a buffer are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Rounded to nearest even whenever they are written.
    Bf16,
    F32,
}

/// The storage of every buffer of a program.
///
/// What is added up in place stays f32, since each addition would round away most of a small term: the buffers that
/// [`Op::Add`], [`Op::AddWeight`], [`Op::AddScaled`] and [`Op::ScatterAddRows`] write, the velocities that
/// [`Op::AddScaled`] reads, and the noise that the first of them starts from. All others are bf16.
pub fn storage(program: &Program) -> Vec<Storage> {
    let kept = |source: &BufferSource| match source {
        BufferSource::Input(Input::Noise) => Storage::F32,
        _ => Storage::Bf16,
    };
    let mut storage: Vec<Storage> =
        program.buffers.iter().map(|buffer| kept(&buffer.source)).collect();
    for op in program.stages.iter().flat_map(|stage| &stage.ops) {
        match op {
            Op::Add { out, .. } | Op::AddWeight { out, .. } | Op::ScatterAddRows { out, .. } => {
                storage[out.buffer.0] = Storage::F32;
            }
            Op::AddScaled { x, out, .. } => {
                storage[x.buffer.0] = Storage::F32;
                storage[out.buffer.0] = Storage::F32;
            }
            _ => {}
        }
    }
    storage
}

#[cfg(test)]
mod tests {
    use super::super::testing::request;
    use super::*;
    use crate::contract::Version;

    #[test]
    fn only_what_is_added_up_is_kept_in_f32() {
        for version in Version::ALL {
            let program = request(version);
            let storage = storage(&program);
            assert_eq!(storage.len(), program.buffers.len());
            let buffers = program.buffers.iter().zip(&storage);
            let mut kept: Vec<&str> = buffers
                .filter(|(_, storage)| **storage == Storage::F32)
                .map(|(buffer, _)| buffer.name.as_str())
                .collect();
            kept.sort_unstable();
            let mut expected = vec![
                "action_decoder.out",
                "actions",
                "dit.hidden",
                "llm.hidden",
                "noise",
                "vit.hidden",
            ];
            // N1.6 has no self-attention between language model and action head.
            if version != Version::N16 {
                expected.push("vl");
            }
            assert_eq!(kept, expected, "{version}");
        }
    }
}
