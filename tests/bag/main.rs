//! Bags of all kinds, from our writer, from small generators and from a stranger's writer, whole and damaged.

mod damaged;
mod directory;
mod info;
mod mcap_kinds;
mod sqlite_kinds;
mod stranger;
mod support;
