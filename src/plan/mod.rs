//! The plan of the card: what a request would cost, as tables, JSON and a page.

mod error;
mod layout;
mod network;

pub use error::PlanError;
pub use layout::Wanted;
pub use network::Planned;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::blackhole::cost::*;
    use crate::backend::blackhole::numerics::*;
    use crate::contract::Version;
    use crate::program::StageKind;

    #[test]
    fn try_it() {
        for version in Version::ALL {
            let planned = Planned::released(version).unwrap();
            let (_, layout) = planned.layout(Wanted::default()).unwrap();
            let program = planned.request(layout).unwrap();
            for policy in DtypePolicy::ALL {
                let assumptions = Assumptions { policy, ..Assumptions::default() };
                let plan = Plan::new(&program, &assumptions, false);
                println!("{version} {} {layout:?}", policy.name());
                for stage in &plan.stages {
                    println!("  {:8} kept {} ops {} programs {} MB {:.1} mem {:.2} noc {:.2} arith {:.2} alone {:.2} whole {:.2} ops {:.2} total {:.2} {:?}",
                      stage.kind.name(), stage.kept, stage.ops.len(), stage.programs, stage.weight_bytes() as f64/1e6,
                      stage.memory_s()*1e3, stage.noc_s()*1e3, stage.arithmetic_s()*1e3, stage.rates_alone_s()*1e3, stage.whole_tiles_s()*1e3,
                      stage.operations_s()*1e3, stage.total_s()*1e3, stage.bound());
                }
                println!("  total alone {:.2} whole {:.2} ops {:.2} total {:.2}", plan.sum(StageCost::rates_alone_s)*1e3, plan.sum(StageCost::whole_tiles_s)*1e3, plan.sum(StageCost::operations_s)*1e3, plan.sum(StageCost::total_s)*1e3);
                if policy == DtypePolicy::Mixed {
                    for g in plan.groups().iter().take(30) { println!("     {:8} {:32} x{:4} {:.3} ms alone {:.3} {:?}", g.stage, g.label, g.count, g.total_s*1e3, g.rates_alone_s*1e3, g.bound); }
                }
                let _ = plan.sum_of(StageKind::Llm, StageCost::total_s);
            }
        }
    }
}
