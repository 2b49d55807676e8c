//! The lowered form of tiny networks, and what its interpreter computes.

#[path = "../common/mod.rs"]
mod common;
mod device;
mod equality;
mod lowering;
mod mutations;
mod small;
mod tiny;
mod trace_faults;
mod trace_plans;
mod traces;
