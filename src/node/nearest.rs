//! "Did you mean": the known name that is closest to one that is not known.

/// The candidate that is most likely meant by `name`.
///
/// A candidate that is `name` with something in front or behind (`robot1/left_elbow` for `left_elbow`) wins over any
/// other; then fewest edits, at most half of the longer name. Upper and lower case count as equal.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(&wanted, &candidate.to_lowercase())?, candidate)))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// The candidate as the end of a sentence; nothing if there is none.
pub fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

/// 0 for equal names, 1 where one contains the other's end or start, else 1 plus the number of edits; `None` if the
/// names have too little in common.
fn distance(wanted: &str, candidate: &str) -> Option<usize> {
    if wanted == candidate {
        return Some(0);
    }
    let affixed = |long: &str, short: &str| {
        !short.is_empty() && (long.ends_with(short) || long.starts_with(short))
    };
    if affixed(candidate, wanted) || affixed(wanted, candidate) {
        return Some(1);
    }
    let edits = edit_distance(wanted, candidate);
    let longer = wanted.chars().count().max(candidate.chars().count());
    (2 * edits <= longer).then_some(1 + edits)
}

/// Levenshtein distance in characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typos_and_prefixes() {
        let known = ["camera_max_age_ms", "rate_hz", "left_wrist_roll", "left_wrist_yaw"];
        assert_eq!(nearest("rate_Hz", known), Some("rate_hz"));
        assert_eq!(nearest("camera_maxage_ms", known), Some("camera_max_age_ms"));
        assert_eq!(nearest("left_wrist_rol", known), Some("left_wrist_roll"));
        assert_eq!(nearest("quite_another_thing", known), None);
        assert_eq!(
            nearest("left_elbow", ["left_elbw", "robot1/left_elbow"]),
            Some("robot1/left_elbow")
        );
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn edit_distance_counts_edits() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", "abc"), 0);
    }
}
