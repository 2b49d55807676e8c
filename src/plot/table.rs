//! A chunk as text.

use std::fmt::Write;

use super::{ChunkView, GroupView, one_line};

/// Longest instruction that is shown in full.
const MAX_INSTRUCTION: usize = 60;
/// Groups with more columns show this many values of a row.
const MAX_VALUES: usize = 9;

/// The chunk as a few lines of text: what it answers, how long it took, and per group its size, the range of its
/// values and its first and last row. `number` counts chunks for the reader; `start_ns` is what times are relative to.
pub fn table(chunk: &ChunkView, number: usize, start_ns: i64) -> String {
    let mut text = String::new();
    let seed = chunk.seed.map_or("given noise".into(), |seed| format!("seed {seed}"));
    let instruction = one_line(&chunk.instruction, MAX_INSTRUCTION);
    let (version, embodiment) = (&chunk.version, &chunk.embodiment);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "chunk {number}: {version} {embodiment} \"{instruction}\", {seed}");
    let _ = writeln!(text, "  {}", times(chunk, start_ns));
    let names = chunk.groups.iter().map(|group| group.name.chars().count());
    let width = names.max().unwrap_or(0).max("group".len());
    let _ = writeln!(text, "  {:width$}  steps x dims  {:16}  row    values", "group", "range");
    for group in &chunk.groups {
        append_group(&mut text, group, width);
    }
    text
}

fn append_group(text: &mut String, group: &GroupView, width: usize) {
    let size = format!("{} x {}", group.rows(), group.columns.len());
    let unit = group.common_unit();
    let what =
        if unit.is_empty() { group.meaning.clone() } else { format!("{} [{unit}]", group.meaning) };
    let Some(last) = group.rows().checked_sub(1) else {
        let _ = writeln!(text, "  {:width$}  {size:12}  no rows", group.name);
        return;
    };
    let (range, first, last) = (range(&group.values), row(group.row(0)), row(group.row(last)));
    let _ = writeln!(text, "  {:width$}  {size:12}  {range:16}  first {first}", group.name);
    let _ = writeln!(text, "  {:width$}  {what:30}  last  {last}", "");
}

fn times(chunk: &ChunkView, start_ns: i64) -> String {
    let since_start = (chunk.stamp_ns.saturating_sub(start_ns)) as f64 * 1e-9;
    let mut parts = vec![format!("observed at {since_start:+.3} s")];
    if let Some(age) = chunk.age {
        parts.push(format!("here after {:.0} ms", age.as_secs_f64() * 1e3));
    }
    if !chunk.stages.is_empty() {
        let milliseconds = |time: &std::time::Duration| time.as_secs_f64() * 1e3;
        let total: f64 = chunk.stages.iter().map(|(_, time)| milliseconds(time)).sum();
        let stages: Vec<_> = chunk
            .stages
            .iter()
            .map(|(name, time)| format!("{name} {:.1}", milliseconds(time)))
            .collect();
        parts.push(format!("computed in {total:.1} ms ({})", stages.join(", ")));
    }
    parts.join(", ")
}

fn range(values: &[f32]) -> String {
    let low = values.iter().copied().fold(f32::INFINITY, f32::min);
    let high = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    format!("{low:+.3} .. {high:+.3}")
}

fn row(values: &[f32]) -> String {
    let mut shown: Vec<_> =
        values.iter().take(MAX_VALUES).map(|value| format!("{value:+.3}")).collect();
    if values.len() > MAX_VALUES {
        shown.push(format!("... {} more", values.len() - MAX_VALUES));
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::chunk;
    use super::*;

    #[test]
    fn shows_times_sizes_and_rows() {
        let text = table(&chunk(500_000_000, 2), 3, 0);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "chunk 3: n16 gr1 \"pick the pear\", seed 42");
        assert_eq!(
            lines[1],
            "  observed at +0.500 s, here after 181 ms, computed in 72.0 ms (encode 2.0, vision 70.0)"
        );
        assert!(lines[3].contains("2 x 7") && lines[3].contains("-0.950 .. -0.820"), "{text}");
        assert!(
            lines[3].ends_with("first -0.950 -0.940 -0.930 -0.920 -0.910 -0.900 -0.890"),
            "{text}"
        );
        assert!(
            lines[4].ends_with("last  -0.880 -0.870 -0.860 -0.850 -0.840 -0.830 -0.820"),
            "{text}"
        );
        assert!(lines[4].contains("joint positions [rad]"), "{text}");
        let at = |line: &str, word: &str| line.find(word);
        assert_eq!(at(lines[3], "first"), at(lines[4], "last"));
        assert_eq!(at(lines[2], "row"), at(lines[3], "first"));
    }

    #[test]
    fn wide_groups_and_empty_ones_are_shown_too() {
        let mut wide = chunk(0, 1);
        wide.groups[0].columns = [&wide.groups[0].columns[..]; 2].concat();
        wide.groups[0].values.extend([0.25; 7]);
        wide.groups[1].values.clear();
        let text = table(&wide, 0, 0);
        assert!(text.contains("... 5 more") && text.contains("0 x 3         no rows"), "{text}");
    }
}
