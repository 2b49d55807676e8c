//! Multicasts to the wrong cores.

use super::build::Built;
use super::fault;
use super::relay::{self, BYSTANDER_AT, HUB, HUB_AT, RECEIVERS, RECEIVERS_AT};
use crate::backend::blackhole::grid::{COLUMNS, Core, Noc, Rectangle};
use crate::backend::blackhole::interpreter::Fault;
use crate::backend::blackhole::lowered::{Engine, Instruction};

/// The relay with another rectangle in its multicast, its signal, or both.
fn changed(data: Option<Rectangle>, signal: Option<Rectangle>) -> Built {
    let mut built = relay::built();
    for (name, new) in [("Multicast", data), ("SignalAll", signal)] {
        match built.find(HUB, Engine::Mover, name) {
            Instruction::Multicast { rectangle, .. } | Instruction::SignalAll { rectangle, .. } => {
                *rectangle = new.unwrap_or(*rectangle);
            }
            _ => panic!("a multicast"),
        }
    }
    built
}

fn rectangle(a: Core, b: Core) -> Option<Rectangle> {
    Some(Rectangle::on(Noc::Noc1, a, b))
}

#[test]
fn a_rectangle_with_a_core_too_many_is_told() {
    let wide = rectangle(RECEIVERS_AT[0], BYSTANDER_AT);
    for (data, signal) in [(wide, None), (None, wide)] {
        let found = fault(&changed(data, signal));
        assert!(matches!(&found, Fault::MulticastReceiver { core: BYSTANDER_AT, .. }), "{found}");
    }
    let beyond = rectangle(RECEIVERS_AT[0], Core::new(3, 3));
    let found = fault(&changed(beyond, None));
    assert!(found.to_string().contains("no core of the program"), "{found}");
    let back = rectangle(HUB_AT, HUB_AT);
    let found = fault(&changed(back, None));
    assert!(found.to_string().contains("it sends it"), "{found}");
}

#[test]
fn a_receiver_without_room_is_told() {
    let mut built = relay::built();
    let map = &mut built.program.cores[RECEIVERS[1]].map;
    map.regions.iter_mut().find(|region| region.name == "x").unwrap().bytes -= 16;
    let found = fault(&built);
    assert!(found.to_string().contains("no place"), "{found}");
}

#[test]
fn who_is_left_out_starves() {
    let [one, other] = RECEIVERS_AT;
    for (data, signal) in [(None, rectangle(one, one)), (rectangle(one, one), rectangle(one, one))]
    {
        let Fault::Deadlock { blocked } = fault(&changed(data, signal)) else {
            panic!("a deadlock");
        };
        let starving = blocked.iter().find(|blocked| blocked.place.core == other).unwrap();
        assert_eq!(
            (starving.semaphore.as_str(), starving.value, starving.found),
            ("x ready", 1, 0)
        );
    }
    let found = fault(&changed(rectangle(other, other), None));
    assert!(matches!(found, Fault::ReadBeforeWrite { .. }), "{found}");
}

#[test]
fn corners_in_the_order_of_the_other_network_are_told() {
    let [a, b] = RECEIVERS_AT;
    let turned = Some(Rectangle { start: a, end: b });
    for (data, signal) in [(turned, None), (None, turned)] {
        let found = fault(&changed(data, signal));
        assert!(matches!(found, Fault::IllegalRectangle { noc: Noc::Noc1, .. }), "{found}");
    }
    let beyond = Rectangle { start: Core::new(COLUMNS, 2), end: a };
    assert!(matches!(fault(&changed(Some(beyond), None)), Fault::IllegalRectangle { .. }));
}
