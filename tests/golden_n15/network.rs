//! The network on generated weights against a case in the repository's own test data.

use gr00t_blackhole::backend::Backend;
use gr00t_blackhole::contract::{PredictOptions, Version};

use super::common::golden::{Taps, check};
use super::common::stored_network::StoredNetwork;

#[test]
fn the_network_reproduces_the_stored_case() {
    let network = StoredNetwork::of(Version::N15);
    let mut taps = Taps::default();
    let mut backend = network.load(0, Some(&mut taps));
    let options = PredictOptions::default();
    let output = backend.run(&network.input, &options, Some(&mut taps)).unwrap();
    let case = network.case;
    assert!(case.taps().len() > 20);
    for name in case.taps() {
        case.check_tap(&format!("tap.{name}"), &taps.0[&name]);
    }
    check("action_pred", &case.f32("action_pred").values, &output.actions, 1e-5);
}
