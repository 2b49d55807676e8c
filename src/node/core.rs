//! What lives as long as the process, whether a policy is loaded or not.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

use super::params::Params;
use super::remap::Remaps;
use super::runtime::{NodeClock, Shared, locked};
use crate::backend::blackhole::device::StatusBoard;

/// Name, clock and parameters of the node, and the policy that is configured.
pub struct Core {
    /// With its namespace, such as `/left/policy`.
    pub node_name: String,
    pub remaps: Remaps,
    pub clock: NodeClock,
    pub params: Arc<Mutex<Params>>,
    /// While it does, a new instruction is none of its business.
    pub goal_runs: AtomicBool,
    /// Other nodes on the graph that have the same name.
    pub namesakes: AtomicUsize,
    configured: Mutex<Option<Arc<Shared>>>,
    /// Of the policy that is configured, or is being configured.
    device: Mutex<Option<StatusBoard>>,
}

impl Core {
    pub fn new(node_name: String, namespace: String, clock: NodeClock, params: Params) -> Self {
        let arguments: Vec<String> = std::env::args().collect();
        Self {
            remaps: Remaps::new(&arguments, &namespace, &node_name),
            node_name,
            clock,
            params: Arc::new(Mutex::new(params)),
            goal_runs: AtomicBool::new(false),
            namesakes: AtomicUsize::new(0),
            configured: Mutex::new(None),
            device: Mutex::new(None),
        }
    }

    /// What belongs to the policy; `None` while none is configured.
    pub fn configured(&self) -> Option<Arc<Shared>> {
        locked(&self.configured).clone()
    }

    pub fn set_configured(&self, shared: Option<Arc<Shared>>) {
        *locked(&self.configured) = shared;
    }

    /// Where the state of the device can be read; `None` without a policy, or if it computes on the CPU.
    pub fn device(&self) -> Option<StatusBoard> {
        locked(&self.device).clone()
    }

    pub fn set_device(&self, device: Option<StatusBoard>) {
        *locked(&self.device) = device;
    }
}
