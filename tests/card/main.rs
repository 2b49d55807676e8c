//! Tiles of the card against those that the `ttnn` wheel makes on the host.

mod properties;
mod wheel;
