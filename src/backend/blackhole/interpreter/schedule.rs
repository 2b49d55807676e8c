//! Who runs next.

use std::collections::VecDeque;

use rand_mt::Mt;

/// The order in which engines take turns. A sound program gives the same bytes under each.
pub struct Schedule(Order);

enum Order {
    RoundRobin,
    Random(Box<Random>),
}

/// Engines of different speeds, so that some are far ahead of others.
struct Random {
    numbers: Mt,
    /// By engine: it takes one of 2^this many turns that it is offered.
    slowness: Vec<u32>,
    turns: u32,
}

/// Turns after which other engines are the slow ones.
const TURNS: u32 = 2048;
/// The slowest engine takes one of 64 turns.
const SLOWEST: u32 = 6;
/// Most instructions in a row, as a power of two.
const LONGEST: u32 = 5;

impl Schedule {
    /// One engine after the other, each as far as it gets.
    pub fn round_robin() -> Self {
        Self(Order::RoundRobin)
    }

    /// Any order, the same one for the same seed.
    pub fn seeded(seed: u32) -> Self {
        let numbers = Mt::new(seed);
        let random = Random { numbers, slowness: Vec::new(), turns: 0 };
        Self(Order::Random(Box::new(random)))
    }

    /// The place of the next engine in the queue of those that can go on, and the number of instructions that it gets.
    pub(super) fn choose(&mut self, queue: &VecDeque<usize>, engines: usize) -> (usize, u32) {
        match &mut self.0 {
            Order::RoundRobin => (0, u32::MAX),
            Order::Random(random) => random.choose(queue, engines),
        }
    }
}

impl Random {
    fn choose(&mut self, queue: &VecDeque<usize>, engines: usize) -> (usize, u32) {
        if self.turns == 0 {
            self.slowness = (0..engines).map(|_| self.below(SLOWEST + 1)).collect();
            self.turns = TURNS;
        }
        self.turns -= 1;
        let budget = 1 << self.below(LONGEST + 1);
        loop {
            let place = self.below(queue.len() as u32) as usize;
            let slowness = self.slowness.get(queue[place]).copied().unwrap_or(0);
            if self.below(1 << slowness) == 0 {
                return (place, budget);
            }
        }
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.numbers.next_u32() % limit
    }
}

/// The engines that can go on, as far as is known.
pub(super) struct Ready {
    queue: VecDeque<usize>,
    is_ready: Vec<bool>,
}

impl Ready {
    pub fn new(engines: usize) -> Self {
        Self { queue: (0..engines).collect(), is_ready: vec![true; engines] }
    }

    pub fn add(&mut self, engine: usize) {
        if !std::mem::replace(&mut self.is_ready[engine], true) {
            self.queue.push_back(engine);
        }
    }

    /// Takes out the next one, with the number of instructions that it gets.
    pub fn next(&mut self, schedule: &mut Schedule) -> Option<(usize, u32)> {
        if self.queue.is_empty() {
            return None;
        }
        let (place, budget) = schedule.choose(&self.queue, self.is_ready.len());
        let engine = self.queue.swap_remove_front(place)?;
        self.is_ready[engine] = false;
        Some((engine, budget))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_come_in_turn() {
        let mut ready = Ready::new(3);
        let mut schedule = Schedule::round_robin();
        let mut order = Vec::new();
        for _ in 0..6 {
            let (engine, _) = ready.next(&mut schedule).unwrap();
            order.push(engine);
            ready.add(engine);
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn seeds_give_orders_in_which_everyone_comes() {
        let order = |seed| {
            let (mut ready, mut schedule) = (Ready::new(5), Schedule::seeded(seed));
            let mut order = Vec::new();
            for _ in 0..20_000 {
                let (engine, budget) = ready.next(&mut schedule).unwrap();
                assert!(budget >= 1);
                order.push(engine);
                ready.add(engine);
            }
            order
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert!((0..5).all(|engine| order(1).contains(&engine)));
    }

    #[test]
    fn nobody_comes_who_is_not_ready() {
        let mut ready = Ready::new(1);
        let mut schedule = Schedule::round_robin();
        assert_eq!(ready.next(&mut schedule).map(|(engine, _)| engine), Some(0));
        assert_eq!(ready.next(&mut schedule), None);
        ready.add(0);
        ready.add(0);
        assert!(ready.next(&mut schedule).is_some() && ready.next(&mut schedule).is_none());
    }
}
