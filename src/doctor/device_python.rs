//! The Python that the device worker runs on.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tt_metal_sys::TT_METAL_VERSION;

use super::finding::Finding;
use super::system::System;
use crate::backend::blackhole::device::{DeviceOptions, PYTHON};

const SUBJECT: &str = "device Python";
/// Two lines: the version of Python, and that of ttnn, which is empty where it is not installed. Does not load it.
const QUESTION: &str = "import platform, importlib.metadata as m\n\
                        print(platform.python_version())\n\
                        print(next((d.version for d in m.distributions(name='ttnn')), ''))";
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// `wanted` is the device of the node's parameters.
pub fn check(system: &System, wanted: Option<&DeviceOptions>) -> Option<Finding> {
    let named = system.variable(PYTHON).map(Path::new);
    let python = wanted.map(|device| device.python.as_path()).or(named)?;
    let finding = finding(python, ask(python));
    // What no parameter asks for keeps nothing from working.
    Some(match wanted {
        Some(_) => finding,
        None => finding.at_most_warn(),
    })
}

fn finding(python: &Path, answer: Result<String, String>) -> Finding {
    let name = python.display();
    let install = format!("{name} -m pip install -r device/requirements.txt");
    let answer = match answer {
        Ok(answer) => answer,
        Err(problem) => {
            let fix = format!(
                "set {PYTHON}, or the parameter device_python, to a Python with the packages of device/requirements.txt"
            );
            return Finding::fail(SUBJECT, format!("{name} cannot be used: {problem}"), fix);
        }
    };
    let mut lines = answer.lines();
    let version = lines.next().unwrap_or_default();
    match lines.next().unwrap_or_default() {
        TT_METAL_VERSION => {
            Finding::ok(SUBJECT, format!("{name} is {version}, with ttnn {TT_METAL_VERSION}"))
        }
        "" => Finding::fail(SUBJECT, format!("{name} is {version}, without ttnn"), install),
        other => {
            let found = format!(
                "{name} is {version}, with ttnn {other}; {TT_METAL_VERSION} is needed exactly"
            );
            Finding::fail(SUBJECT, found, install)
        }
    }
}

/// What a Python answers.
fn ask(python: &Path) -> Result<String, String> {
    let mut command = Command::new(python);
    command.args(["-c", QUESTION]).stdin(Stdio::null()).stdout(Stdio::piped());
    // The node's own packages are none of the worker's.
    command.stderr(Stdio::null()).env_remove("PYTHONPATH");
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let ended = wait(&mut child);
    let mut answer = String::new();
    if let (Ok(()), Some(mut output)) = (&ended, child.stdout.take()) {
        output.read_to_string(&mut answer).map_err(|error| error.to_string())?;
    }
    ended.map(|()| answer)
}

/// Until it has ended well, or has had its time.
fn wait(child: &mut Child) -> Result<(), String> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) if start.elapsed() < ANSWER_LIMIT => std::thread::sleep(POLL),
            Ok(None) => {
                // Whether it could be killed changes nothing of the finding.
                let _ = child.kill().and_then(|()| child.wait());
                return Err(format!("it has not answered within {} s", ANSWER_LIMIT.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::system::testing::Fake;
    use super::*;
    use crate::backend::blackhole::device::DeviceKind;

    #[test]
    fn versions_are_compared() {
        let said = |answer: &str| finding(Path::new("/v/python"), Ok(answer.to_owned()));
        let fine = said(&format!("3.12.3\n{TT_METAL_VERSION}\n"));
        assert_eq!(fine.level, Level::Ok, "{fine}");
        for (answer, text) in [
            ("3.12.3\n\n", "is 3.12.3, without ttnn — /v/python -m pip install"),
            ("3.10.1\n0.80.0\n", "with ttnn 0.80.0; 0.81.1 is needed exactly"),
        ] {
            let found = said(answer);
            assert_eq!(found.level, Level::Fail);
            assert!(found.to_string().contains(text), "{found}");
        }
    }

    #[test]
    fn a_python_that_is_not_there_fails_only_where_the_node_needs_it() {
        let fake = Fake::new(&[], &[(PYTHON, "/nowhere/python")]);
        let found = check(&fake.system, None).expect("a finding");
        assert_eq!(found.level, Level::Warn);
        assert!(found.to_string().contains("/nowhere/python cannot be used"), "{found}");
        let python = "/elsewhere/python".into();
        let wanted = DeviceOptions { python, ..DeviceOptions::new(DeviceKind::Card) };
        let found = check(&fake.system, Some(&wanted)).expect("a finding");
        assert_eq!(found.level, Level::Fail);
        assert!(found.to_string().contains("/elsewhere/python cannot"), "{found}");
        assert_eq!(check(&Fake::new(&[], &[]).system, None), None);
    }

    #[test]
    fn a_program_that_is_no_python_is_told_so() {
        assert!(ask(Path::new("/bin/false")).expect_err("a status").contains("exit status"));
    }
}
