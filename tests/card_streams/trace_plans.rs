//! Programs for each instruction, without running them.
