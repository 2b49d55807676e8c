//! The state of the card, or of its simulator.

use std::time::Instant;

use super::status::{Level, Status, in_ms};
use crate::backend::blackhole::device::{DeviceStatus, Loss, Phase};

const MIB: f64 = (1 << 20) as f64;

/// Adds what is known of a device to the backend's status; the level becomes its, if that is worse.
pub fn add(status: &mut Status, device: &DeviceStatus, now: Instant) {
    if let Some((level, message)) = state(device, now)
        && level > status.level
    {
        (status.level, status.message) = (level, message);
    }
    status.value("device", format!("{} {}", device.kind, device.device_id));
    status.value("device state", phase(device, now));
    status.value("device sessions", device.sessions);
    status.value("device losses", device.losses);
    if let Some(loss) = &device.latest_loss {
        status.value("latest loss", sentence(loss));
        status.value("worker wrote last", or_nothing(&loss.last_words));
    }
    session(status, device);
    for stage in &device.stages {
        let name = stage.name;
        status.value(format!("device {name} [ms]"), in_ms(stage.took));
        status.value(format!("device {name} given up after [ms]"), in_ms(stage.limit));
    }
    telemetry(status, device);
}

/// What is wrong with it, if anything is.
fn state(device: &DeviceStatus, now: Instant) -> Option<(Level, String)> {
    match &device.phase {
        Phase::Lost(loss) => {
            Some((Level::Error, format!("{}; {}", sentence(loss), retry(loss, now))))
        }
        // The first start is none after a loss.
        Phase::Starting { .. } if device.losses > 0 => {
            Some((Level::Warn, format!("the device was lost: {}", phase(device, now))))
        }
        Phase::Closed | Phase::Starting { .. } | Phase::Ready => None,
    }
}

fn sentence(loss: &Loss) -> String {
    format!("the device was lost in stage '{}': {}", loss.stage, loss.reason)
}

fn retry(loss: &Loss, now: Instant) -> String {
    let seconds = loss.retry_at.saturating_duration_since(now).as_secs_f64();
    format!("it is started again in {seconds:.1} s")
}

/// In a few words.
fn phase(device: &DeviceStatus, now: Instant) -> String {
    match &device.phase {
        Phase::Closed => "not opened yet".to_owned(),
        Phase::Starting { part, since } => {
            let seconds = now.saturating_duration_since(*since).as_secs_f64();
            format!("starts, at '{part}', for {seconds:.1} s")
        }
        Phase::Ready => "ready".to_owned(),
        Phase::Lost(loss) => format!("lost; {}", retry(loss, now)),
    }
}

fn session(status: &mut Status, device: &DeviceStatus) {
    let Some(session) = &device.session else { return };
    let [columns, rows] = session.grid;
    status.value("tt-metal", tt_metal_sys::TT_METAL_VERSION);
    status.value("worker process", session.worker_pid);
    status.value("cores", format!("{columns} x {rows}"));
    status.value("DRAM banks", session.dram_banks);
    status.value("L1 of a core [bytes]", session.l1_bytes);
    status.value("arena [MiB]", format!("{:.1}", session.arena_bytes as f64 / MIB));
    let cache = if session.warm_cache { "warm" } else { "cold" };
    status.value("cache of kernels", cache);
}

fn telemetry(status: &mut Status, device: &DeviceStatus) {
    let Some(of) = &device.telemetry else { return };
    let in_mib = |bytes: u64| format!("{:.1}", bytes as f64 / MIB);
    status.value_if("device memory [MiB]", of.allocated_dram.map(in_mib));
    status.value_if("driver", of.driver.as_deref());
    status.value_if("firmware", of.firmware.as_deref());
    status.value_if("temperature [deg C]", of.temperature_c.map(|value| format!("{value:.1}")));
    status.value_if("power [W]", of.power_w.map(|value| format!("{value:.1}")));
    status.value_if("clock [MHz]", of.clock_mhz.map(|value| format!("{value:.0}")));
}

fn or_nothing(text: &str) -> &str {
    if text.is_empty() { "nothing" } else { text }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tt_metal_sys::protocol::Telemetry;

    use super::*;
    use crate::backend::blackhole::device::{DeviceKind, SessionFacts, StageFacts};

    fn device(phase: Phase) -> DeviceStatus {
        DeviceStatus {
            kind: DeviceKind::Card,
            device_id: 2,
            phase,
            sessions: 1,
            losses: 0,
            session: None,
            stages: Vec::new(),
            telemetry: None,
            latest_loss: None,
        }
    }

    fn status(device: &DeviceStatus, now: Instant) -> Status {
        let mut status = Status::new("policy: backend".to_owned(), Level::Ok, "blackhole");
        add(&mut status, device, now);
        status
    }

    #[test]
    fn a_device_that_is_well() {
        let mut ready = device(Phase::Ready);
        ready.session = Some(SessionFacts {
            worker_pid: 4711,
            grid: [11, 10],
            dram_banks: 8,
            l1_bytes: 1_395_712,
            arena_bytes: 3 << 19,
            warm_cache: true,
        });
        ready.stages = vec![StageFacts {
            name: "llm",
            took: Duration::from_micros(9250),
            limit: Duration::from_secs(30),
        }];
        ready.telemetry = Some(Telemetry {
            allocated_dram: Some(5 << 20),
            allocated_l1_per_core: None,
            buffers: 3,
            programs: 2,
            traces: 1,
            driver: Some("2.3.0".to_owned()),
            firmware: None,
            temperature_c: Some(41.26),
            power_w: None,
            clock_mhz: Some(1350.0),
        });
        let made = status(&ready, Instant::now());
        assert_eq!((made.level, made.message.as_str()), (Level::Ok, "blackhole"));
        for (key, value) in [
            ("device", "blackhole 2"),
            ("device state", "ready"),
            ("tt-metal", "0.81.1"),
            ("worker process", "4711"),
            ("cores", "11 x 10"),
            ("DRAM banks", "8"),
            ("L1 of a core [bytes]", "1395712"),
            ("arena [MiB]", "1.5"),
            ("cache of kernels", "warm"),
            ("device llm [ms]", "9.250"),
            ("device llm given up after [ms]", "30000.000"),
            ("device memory [MiB]", "5.0"),
            ("driver", "2.3.0"),
            ("firmware", "unknown"),
            ("temperature [deg C]", "41.3"),
            ("power [W]", "unknown"),
            ("clock [MHz]", "1350"),
        ] {
            assert_eq!(made.get(key), Some(value), "{key}");
        }
        assert_eq!(made.get("latest loss"), None);
    }

    #[test]
    fn a_loss_is_an_error_until_the_device_is_back() {
        let now = Instant::now();
        let loss = Loss {
            stage: "llm".to_owned(),
            reason: "the device worker is gone (signal 9)".to_owned(),
            last_words: "TT_FATAL".to_owned(),
            retry_at: now + Duration::from_millis(3200),
        };
        let mut lost = device(Phase::Lost(loss.clone()));
        (lost.losses, lost.latest_loss) = (1, Some(loss));
        let made = status(&lost, now);
        let sentence = "the device was lost in stage 'llm': the device worker is gone (signal 9)";
        assert_eq!(made.level, Level::Error);
        assert_eq!(made.message, format!("{sentence}; it is started again in 3.2 s"));
        assert_eq!(made.get("latest loss"), Some(sentence));
        assert_eq!(made.get("worker wrote last"), Some("TT_FATAL"));

        lost.phase = Phase::Starting { part: "weights", since: now };
        let made = status(&lost, now + Duration::from_secs(2));
        let starts = "the device was lost: starts, at 'weights', for 2.0 s";
        assert_eq!((made.level, made.message.as_str()), (Level::Warn, starts));
        lost.phase = Phase::Ready;
        assert_eq!(status(&lost, now).level, Level::Ok);
        assert_eq!(status(&device(Phase::Closed), now).level, Level::Ok);
    }
}
