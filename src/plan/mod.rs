//! The plan of the card: what a request would cost, as tables, JSON and a page.
//!
//! [`crate::backend::blackhole::cost`] counts; here stands what is planned, and how it is shown beside what the serving
//! documents measured.

mod bars;
mod core_maps;
mod cores;
mod documents;
mod error;
mod findings;
mod held;
mod hoisted;
mod host;
mod layout;
mod network;
mod output;
mod page;
mod persistent;
mod report;
mod request;
mod stage_table;
mod table;

pub use documents::{Documents, NOMINAL_DRAM};
pub use error::PlanError;
pub use layout::{Prompt, Wanted};
pub use network::Planned;
pub use output::{PAGE, REPORT, write};
pub use report::Report;
pub use request::{Request, report};
pub use table::text;
