//! What a check has found, and all of it as text or JSON.

use std::fmt;
use std::fmt::Write as _;

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// The node runs, but slower, less safely or not in every case.
    Warn,
    /// The node will not predict, or not start.
    Fail,
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    /// What was looked at, such as "memory" or "camera 'ego_view'".
    pub subject: String,
    /// What was found.
    pub found: String,
    /// What to do about it; `None` for what is fine.
    pub fix: Option<String>,
}

impl Finding {
    pub fn ok(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self { level: Level::Ok, subject: subject.into(), found: found.into(), fix: None }
    }

    pub fn warn(
        subject: impl Into<String>,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        let fix = Some(fix.into());
        Self { level: Level::Warn, subject: subject.into(), found: found.into(), fix }
    }

    pub fn fail(
        subject: impl Into<String>,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { level: Level::Fail, ..Self::warn(subject, found, fix) }
    }

    /// As a warning, if it is a failure.
    pub fn at_most_warn(self) -> Self {
        match self.level {
            Level::Fail => Self { level: Level::Warn, ..self },
            Level::Ok | Level::Warn => self,
        }
    }

    /// A failure whose sentence may end with what to do, after its last semicolon, as the node's own errors do; `fix` is
    /// for those that do not.
    pub fn fail_as_told(subject: impl Into<String>, sentence: &str, fix: &str) -> Self {
        match sentence.rsplit_once("; ") {
            Some((found, told)) => Self::fail(subject, found, told),
            None => Self::fail(subject, sentence, fix),
        }
    }
}

/// `FAIL  camera 'ego_view': nobody publishes /camera — start its driver`
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Ok => "ok  ",
            Level::Warn => "warn",
            Level::Fail => "FAIL",
        };
        // One line each, whatever an error from elsewhere looks like.
        let line = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        write!(f, "{level}  {}: {}", self.subject, line(&self.found))?;
        if let Some(fix) = &self.fix {
            write!(f, " — {}", line(fix))?;
        }
        Ok(())
    }
}

/// Everything that was found, in the order of the checks.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn failures(&self) -> usize {
        self.findings.iter().filter(|finding| finding.level == Level::Fail).count()
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{finding}");
        }
        text
    }

    /// `{"findings": [{"level": "ok", "subject": ..., "found": ..., "fix": null}, ...]}`
    ///
    /// # Errors
    /// None that a report can cause.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_level_finding_and_fix() {
        let fine = Finding::ok("memory", "8 GB");
        assert_eq!(fine.to_string(), "ok    memory: 8 GB");
        let bad = Finding::fail("memory", "two\n  lines", "buy\nmore");
        assert_eq!(bad.to_string(), "FAIL  memory: two lines — buy more");
    }

    #[test]
    fn what_to_do_stands_behind_the_last_semicolon_of_an_error() {
        let told = Finding::fail_as_told("topic", "stamp is 0; one; set it", "?");
        assert_eq!(told.to_string(), "FAIL  topic: stamp is 0; one — set it");
        let untold = Finding::fail_as_told("topic", "stamp is 0", "set it");
        assert_eq!(untold.to_string(), "FAIL  topic: stamp is 0 — set it");
    }

    #[test]
    fn only_failures_count() {
        let findings =
            vec![Finding::ok("a", "b"), Finding::warn("a", "b", "c"), Finding::fail("a", "b", "c")];
        let report = Report { findings };
        assert_eq!(report.failures(), 1);
        assert_eq!(report.text().lines().count(), 3);
        let json: serde_json::Value =
            serde_json::from_str(&report.json().expect("JSON")).expect("JSON");
        assert_eq!(json["findings"][2]["level"], "fail");
        assert_eq!(json["findings"][0]["fix"], serde_json::Value::Null);
    }
}
