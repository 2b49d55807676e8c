//! Sentences about chunks: against each other, against commands, and against other runs.

use super::equality::Equality;
use super::findings::time;
use super::report::Report;
use crate::words::counted;

/// From chunk to chunk.
pub fn borders(report: &Report, said: &mut Vec<String>) {
    let borders = &report.borders;
    if borders.count == 0 {
        return;
    }
    for (group, of) in &borders.groups {
        let turn = of
            .rotation_max
            .map_or(String::new(), |rotation| format!(", turning by {rotation:.4} rad at most"));
        let acceleration = of
            .acceleration_max
            .map_or(String::new(), |value| format!("; acceleration {value:.3} at most"));
        said.push(format!(
            "{group}: from chunk to chunk the command jumps by {:.4} (median), {:.4} at most, at {}{turn}{acceleration}.",
            of.jump_median, of.jump_max, time(of.jump_max_at_s)
        ));
    }
    if let Some(at_s) = borders.longest_stall_at_s {
        said.push(format!(
            "{} of {} chunks came when the one before had run out; the longest stall was {:.0} ms, until {}.",
            borders.stalls,
            borders.count,
            borders.longest_stall_ms,
            time(at_s)
        ));
    }
}

/// Predicted against recorded.
pub fn commands(report: &Report, said: &mut Vec<String>) {
    let Some(commands) = &report.commands else {
        said.push(
            "The recording has no commands to compare with: neither one JointTrajectory nor recorded chunks; \
             --commands names a topic of JointState targets."
                .to_owned(),
        );
        return;
    };
    let mut silent = Vec::new();
    for group in &commands.groups {
        let (executed, horizon) = (&group.executed, &group.horizon);
        let (Some(mae), Some(mse), Some(max)) = (executed.mae, executed.mse, executed.max_abs)
        else {
            silent.push(group.group.as_str());
            continue;
        };
        let worst = group
            .dimensions
            .iter()
            .filter_map(|dimension| Some((dimension.executed.mae?, dimension.label.as_str())));
        let worst = worst.max_by(|(a, _), (b, _)| a.total_cmp(b));
        let worst = worst.map_or(String::new(), |(mae, label)| format!(", worst {label} {mae:.4}"));
        let whole = horizon.mae.map_or(String::new(), |mae| format!(" ({mae:.4} over all rows)"));
        said.push(format!(
            "{} against {}: MAE {mae:.4}{whole}, MSE {mse:.6}, at most {max:.4}{worst}.",
            group.group, commands.topic
        ));
    }
    if !silent.is_empty() {
        said.push(format!(
            "{}: nothing was commanded on {} at the times of their rows.",
            silent.join(", "),
            commands.topic
        ));
    }
    for group in &commands.not_compared {
        said.push(format!("{} is not compared: {}.", group.group, group.why));
    }
}

/// Bit for bit.
pub fn equal(with: &str, equality: &Equality) -> String {
    let Equality { compared, equal, other_observation, .. } = equality;
    let mut text = format!("{equal} of {compared} chunks are those of {with} bit for bit");
    for (count, what) in [
        (equality.only_here, "have none to be compared with"),
        (equality.only_there, "are there and not here"),
        (*other_observation, "were made from another observation"),
    ] {
        if count > 0 {
            text += &format!("; {count} {what}");
        }
    }
    if let Some(first) = &equality.first_difference {
        text += &format!(
            "; the first difference is in chunk {} at {}: {}{}",
            first.chunk,
            time(first.at_s),
            first.text,
            if first.same_observation { "" } else { " (from another observation)" }
        );
    }
    text + "."
}

/// Against another policy.
pub fn against(report: &Report, said: &mut Vec<String>) {
    let Some(fidelity) = &report.against else { return };
    let groups: Vec<String> = fidelity
        .groups
        .iter()
        .map(|(group, of)| {
            let pcc = of.pcc.map_or("no correlation, since it never changes".to_owned(), |pcc| {
                format!("PCC {pcc:.9}")
            });
            let apart =
                if of.max_abs == 0.0 { "0".to_owned() } else { format!("{:.3e}", of.max_abs) };
            format!("{group} max|d| {apart}, {pcc}")
        })
        .collect();
    let (here, there) = (&report.policy.numerics, &fidelity.numerics);
    let (numerics, why) = match here == there {
        true => (String::new(), ""),
        false => (format!(" ({there}; here {here})"), ", since other numbers round otherwise"),
    };
    if fidelity.chunks > 0 {
        said.push(format!(
            "Against {}{numerics}: {} of {} chunks are equal bit for bit{why}; {}.",
            fidelity.against,
            fidelity.equal,
            fidelity.chunks,
            groups.join("; ")
        ));
    }
    if let Some(reason) = &fidelity.first_failure {
        let count = counted(fidelity.failed as u64, "observation");
        let against = &fidelity.against;
        said.push(format!("Against {against}{numerics}: no chunk for {count}: {reason}."));
    }
}
