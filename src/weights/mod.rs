//! Released checkpoints: which files they consist of ([`lock`]), fetching them into the hub cache ([`fetch`]), finding them
//! there ([`locate`]), and telling whether what lies on a disk is what was released ([`verify`]).

pub mod cache;
pub mod fetch;
pub mod fill;
pub mod hash;
pub mod hub;
pub mod licence;
pub mod locate;
pub mod lock;
pub mod verify;
