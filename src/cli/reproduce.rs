//! `replay` of a recording of observations: every prediction is made again and compared bit for bit.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use super::WrongUsage;
use crate::node::params::{Params, Value};
use crate::node::settings;
use crate::observations::{Difference, Recorded, Recording, Summary, reproduce_all};
use crate::policy::Policy;

const REPORT_FILE: &str = "report.json";

/// Makes all predictions again with the policy of the parameters `overrides`; what is left open is as it was recorded.
///
/// # Errors
/// A chunk that is not the same, a recording or policy that cannot be used.
pub fn run(
    recording: &Recording,
    mut overrides: Vec<(String, Value)>,
    out: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let first = first_prediction(recording)?;
    let given = |name: &str| overrides.iter().any(|(known, _)| known == name);
    if !given("snapshot") && !given("version") {
        overrides.push(("snapshot".to_owned(), Value::Text(first.identity.snapshot.clone())));
    }
    let params = Params::new(overrides).map_err(|error| WrongUsage(error.to_string()))?;
    let mut options = settings::policy_options(&params)
        .ok_or_else(|| WrongUsage("the parameters name no snapshot and no version".to_owned()))?;
    options.embodiment.get_or_insert(first.identity.embodiment.clone());
    options.version.get_or_insert(first.identity.version);
    let mut policy = Policy::load(&options)?;
    first.identity.check(policy.version(), &policy.embodiment().tag)?;

    let progress = super::progress::Bar::of_things("predicting again", recording.count());
    let summary = reproduce_all(recording, &mut policy, |_, _| progress.step())?;
    progress.finish();
    let report = serde_json::to_string_pretty(&summary)?;
    if let Some(folder) = out {
        let path = folder.join(REPORT_FILE);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, report.clone() + "\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let notes = recording.notes().iter().map(|note| format!("The recording: {note}."));
    let sentences = notes.chain(sentences(&summary)).collect::<Vec<_>>().join("\n");
    super::print(&(if json { report } else { sentences } + "\n"))?;
    match summary.different.len() + summary.unreadable.len() {
        0 if summary.same == 0 => bail!("no chunk could be compared"),
        0 => Ok(()),
        faults => bail!("{faults} prediction(s) are not as they were recorded"),
    }
}

fn first_prediction(recording: &Recording) -> anyhow::Result<Recorded> {
    match recording.predictions()?.next() {
        Some(first) => Ok(first?),
        None => bail!("the recording has no predictions"),
    }
}

fn sentences(summary: &Summary) -> Vec<String> {
    let Summary { same, not_comparable, different, unreadable } = summary;
    let mut said = vec![format!("{same} prediction(s) gave the same bytes again.")];
    if *not_comparable > 0 {
        said.push(format!(
            "{not_comparable} had no chunk for a reason outside of the observation and are not compared."
        ));
    }
    said.extend(
        different.iter().map(|(number, found)| {
            format!("Prediction {number} differs: {}.", of_difference(found))
        }),
    );
    said.extend(unreadable.iter().map(|reason| format!("Not made again: {reason}.")));
    said
}

fn of_difference(difference: &Difference) -> String {
    match difference {
        Difference::NoChunk { reason } => format!("there is no chunk now: {reason}"),
        Difference::Shape { recorded, now } => {
            format!("recorded were {}, now there are {}", recorded.join(", "), now.join(", "))
        }
        Difference::Values { group, row, column, recorded, now, different } => format!(
            "{different} value(s), the first in group '{group}', row {row}, column {column}: {recorded:?} was recorded, {now:?} is predicted now"
        ),
    }
}
