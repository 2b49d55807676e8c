//! Every number of a report by its name, for `--expect`.

use super::bounds::Measures;
use super::equality::Equality;
use super::errors::Errors;
use super::report::Report;

/// Names and values. `mae`, `mse` and `max_abs` are over the rows that are executed, over all groups unless one is named;
/// `horizon.` in front means all rows.
pub fn measures(report: &Report) -> Measures {
    let mut measures = Measures::new();
    let mut add = |name: String, value: f64| {
        measures.insert(name, value);
    };
    let moments = &report.moments;
    for (name, value) in [
        ("moments", moments.wanted),
        ("chunks", moments.chunks),
        ("refusals", moments.refused),
        ("unchanged", moments.unchanged),
        ("failures", moments.failed),
        ("limited", moments.limited),
        ("waited_at_start", report.start.waited),
        ("clock_jumps", report.clock_jumps.len() as u64),
        ("instructions", report.instructions.len() as u64),
        ("outages", report.outages.len() as u64),
        ("borders", report.borders.count),
        ("stalls", report.borders.stalls),
        ("refused_messages", report.inputs.iter().map(|input| input.refused).sum()),
        ("lost_messages", report.inputs.iter().map(|input| input.lost).sum()),
    ] {
        add(name.to_owned(), value as f64);
    }
    add("duration_s".to_owned(), report.recording.duration_s);
    add("longest_stall_ms".to_owned(), report.borders.longest_stall_ms);
    // A cause that has not occurred was looked for all the same.
    for cause in crate::history::Cause::ALL {
        let count = report.refusals.by_cause.get(cause.name()).copied().unwrap_or(0);
        add(format!("refusals.{}", cause.name()), count as f64);
    }
    for input in &report.inputs {
        add(format!("refused_messages.{}", input.name), input.refused as f64);
        add(format!("lost_messages.{}", input.name), input.lost as f64);
        if let Some(hz) = input.mean_hz {
            add(format!("hz.{}", input.name), hz);
        }
        if let Some(ages) = &input.age_ms {
            add(format!("age_max_ms.{}", input.name), ages.max);
        }
        if let Some(gap) = &input.longest_gap {
            add(format!("longest_gap_s.{}", input.name), gap.to_s - gap.from_s);
        }
    }
    for (group, borders) in &report.borders.groups {
        add(format!("jump_max.{group}"), borders.jump_max);
        if let Some(acceleration) = borders.acceleration_max {
            add(format!("acceleration_max.{group}"), acceleration);
        }
    }
    if let Some(commands) = &report.commands {
        let mut all = [Whole::default(), Whole::default()];
        for group in &commands.groups {
            all[0].add(&group.executed);
            all[1].add(&group.horizon);
            errors(&mut add, "", &group.group, &group.executed);
            errors(&mut add, "horizon.", &group.group, &group.horizon);
            for dimension in &group.dimensions {
                let name = format!("{}.{}", group.group, dimension.label);
                errors(&mut add, "", &name, &dimension.executed);
                errors(&mut add, "horizon.", &name, &dimension.horizon);
            }
        }
        all[0].tell(&mut add, "");
        all[1].tell(&mut add, "horizon.");
    }
    for (name, equality) in [("recorded", &report.recorded_chunks), ("previous", &report.previous)]
    {
        if let Some(equality) = equality {
            of_equality(&mut add, name, equality);
        }
    }
    if let Some(fidelity) = &report.against {
        add("against.chunks".to_owned(), fidelity.chunks as f64);
        add("against.equal".to_owned(), fidelity.equal as f64);
        add("against.failed".to_owned(), fidelity.failed as f64);
        for (group, fidelity) in &fidelity.groups {
            add(format!("against.max_abs.{group}"), fidelity.max_abs);
            if let Some(pcc) = fidelity.pcc {
                add(format!("against.pcc.{group}"), pcc);
            }
        }
    }
    measures
}

fn errors(add: &mut impl FnMut(String, f64), front: &str, name: &str, errors: &Errors) {
    for (what, value) in [("mae", errors.mae), ("mse", errors.mse), ("max_abs", errors.max_abs)] {
        if let Some(value) = value {
            add(format!("{front}{what}.{name}"), value);
        }
    }
}

fn of_equality(add: &mut impl FnMut(String, f64), name: &str, equality: &Equality) {
    // A chunk that only one of the runs has is another one, too.
    let unlike = equality.compared - equality.equal;
    let different = unlike + equality.only_here + equality.only_there;
    for (what, value) in [
        ("compared", equality.compared),
        ("equal", equality.equal),
        ("different", different),
        ("other_observation", equality.other_observation),
        ("only_here", equality.only_here),
        ("only_there", equality.only_there),
    ] {
        add(format!("{name}.{what}"), value as f64);
    }
}

/// Errors over all groups.
#[derive(Default)]
struct Whole {
    values: f64,
    squares: f64,
    absolutes: f64,
    largest: f64,
}

impl Whole {
    fn add(&mut self, errors: &Errors) {
        let (Some(mse), Some(mae), Some(max)) = (errors.mse, errors.mae, errors.max_abs) else {
            return;
        };
        self.values += errors.values as f64;
        self.squares += mse * errors.values as f64;
        self.absolutes += mae * errors.values as f64;
        // One that is no number stays: it keeps no bound.
        if max.is_nan() || max > self.largest {
            self.largest = max;
        }
    }

    fn tell(&self, add: &mut impl FnMut(String, f64), front: &str) {
        if self.values > 0.0 {
            add(format!("{front}mse"), self.squares / self.values);
            add(format!("{front}mae"), self.absolutes / self.values);
            add(format!("{front}max_abs"), self.largest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_is_no_number_stays_the_largest() {
        let errors = |max: f64| Errors {
            values: 1,
            mse: Some(max * max),
            mae: Some(max),
            max_abs: Some(max),
            ..Errors::default()
        };
        let mut whole = Whole::default();
        for max in [0.5, f64::NAN, 0.25] {
            whole.add(&errors(max));
        }
        assert!(whole.largest.is_nan());
    }
}
