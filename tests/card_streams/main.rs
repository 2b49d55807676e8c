//! The lowered form of tiny networks, and what its interpreter computes.

mod equality;
mod lowering;
mod tiny;
