//! What is known of ROS 2 distributions: `ros/distributions.txt`.

const TABLE: &str = include_str!("../../ros/distributions.txt");

/// Major version of a distribution's Fast DDS; `None` for one that is not known.
pub fn fast_dds(name: &str) -> Option<u32> {
    let mut row = rows().find_map(|mut row| (row.next() == Some(name)).then_some(row))?;
    row.nth(1)?.parse().ok()
}

/// The cells of every distribution: name, r2r, fast_dds, tried.
fn rows() -> impl Iterator<Item = std::str::SplitWhitespace<'static>> {
    TABLE.lines().filter(|line| !line.starts_with('#')).map(str::split_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        for row in rows() {
            let cells: Vec<&str> = row.collect();
            let [name, r2r, _, tried] = cells[..] else { panic!("{cells:?}") };
            assert!(["yes", "no"].contains(&r2r), "{name}: {r2r}");
            assert!(["wheels", "no"].contains(&tried), "{name}: {tried}");
            assert!(fast_dds(name).is_some(), "{name}");
        }
        assert_eq!(fast_dds("jazzy"), Some(2));
        assert_eq!(fast_dds("kilted"), Some(3));
        assert_eq!(fast_dds("melodic"), None);
    }
}
