//! Whether another node on the graph has this node's name: then topics, services and parameters of the two are mixed.

use std::time::{Duration, Instant};

/// While there is another one, the log says so this often.
const REMINDER: Duration = Duration::from_secs(60);

/// What the last looks at the graph have found.
#[derive(Debug, Default)]
pub struct Namesakes {
    others: usize,
    told: Option<Instant>,
}

impl Namesakes {
    /// Nodes of this name beside this one.
    pub fn others(&self) -> usize {
        self.others
    }

    /// Notes how many nodes of this name there are, this one among them. Gives back whether that is to be told now: when
    /// another one has come, and again from time to time.
    pub fn look(&mut self, now: Instant, nodes: usize) -> bool {
        let others = nodes.saturating_sub(1);
        let more = others > self.others;
        self.others = others;
        let lately = self.told.is_some_and(|told| now.duration_since(told) < REMINDER);
        let tell = others > 0 && (more || !lately);
        if tell {
            self.told = Some(now);
        }
        tell
    }
}

/// What is wrong with `others` nodes beside this one.
pub fn sentence(name: &str, others: usize) -> String {
    let more = if others == 1 {
        "another node has".to_owned()
    } else {
        format!("{others} other nodes have")
    };
    format!(
        "{more} the name {name}, so that services and parameters reach either; end it, or give one another name: \
         -r __node:=NAME (one that was killed is gone from the graph within a minute)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_node_is_told_when_it_comes_and_once_a_minute() {
        let (mut namesakes, start) = (Namesakes::default(), Instant::now());
        let mut look = |second, nodes| namesakes.look(start + Duration::from_secs(second), nodes);
        assert!(!look(0, 0) && !look(1, 1), "this node alone, before and after it sees itself");
        assert!(look(2, 2));
        let told: Vec<u64> = (3..130).filter(|second| look(*second, 2)).collect();
        assert_eq!(told, [62, 122]);
        assert!(look(130, 3), "a third one");
        assert!(!look(131, 2) && !look(132, 1));
        assert!(look(133, 2), "it has come again");
    }

    #[test]
    fn the_sentence_names_the_fix() {
        assert!(sentence("/policy", 1).starts_with("another node has the name /policy"));
        assert!(sentence("/policy", 2).starts_with("2 other nodes have the name /policy"));
        assert!(sentence("/policy", 1).contains("-r __node:=NAME"));
    }
}
