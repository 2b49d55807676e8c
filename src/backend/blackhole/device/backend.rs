//! Requests on a device.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tracing::{info, warn};
use tt_metal_sys::{BackOff, Error, NotReady, Supervisor};

use super::assets::Assets;
use super::checks::check_indices;
use super::session::Session;
use super::status::{StageFacts, StatusBoard};
use super::target::Target;
use super::{DeviceError, DeviceOptions};
use crate::backend::blackhole::numerics::Accumulation;
use crate::backend::blackhole::trace::of_request;
use crate::backend::cpu::card::CardNumerics;
use crate::backend::cpu::{CpuBackend, Numerics};
use crate::backend::leading::LeadingTokens;
use crate::backend::{Backend, BackendError, ModelOutput};
use crate::checkpoint::Checkpoint;
use crate::contract::{PredictOptions, TapSink};
use crate::encode::ModelInput;
use crate::locked::locked;
use crate::prepared::Values;
use crate::program::{ACTIONS, Layout, ModelPrograms, Op, Program, StageKind};

/// Starts a session for the target of the slot.
type Start = Box<dyn FnMut() -> Result<Session, Error> + Send>;
type Slot = Arc<Mutex<Option<Arc<Target>>>>;

/// A model on a card or a simulator.
pub struct DeviceBackend {
    checkpoint: Arc<Checkpoint>,
    model: Box<dyn ModelPrograms>,
    constants: Arc<Values>,
    numerics: CardNumerics,
    options: DeviceOptions,
    /// What the next session is started for.
    slot: Slot,
    supervisor: Supervisor<Session, Start>,
    /// Of the session.
    current: Option<(Layout, Arc<Target>)>,
    /// Number of the session, and what has run in it.
    leading: (u64, LeadingTokens),
    board: StatusBoard,
}

impl DeviceBackend {
    /// A model that was loaded for the CPU, whose constants the card takes over. The device is opened by the first request.
    ///
    /// # Errors
    /// There is no such device, as far as can be seen without opening it; kernels that cannot be unpacked.
    pub fn new(
        cpu: CpuBackend,
        numerics: CardNumerics,
        options: DeviceOptions,
    ) -> Result<Self, DeviceError> {
        options.check()?;
        check_numerics(numerics)?;
        let assets = Assets::unpack(options.cache_dir.as_deref())?;
        let slot = Slot::default();
        let board = StatusBoard::new(&options);
        let start: Start = {
            let (slot, options, board) = (Arc::clone(&slot), options.clone(), board.clone());
            Box::new(move || {
                let target = locked(&slot).clone();
                let Some(target) = target else {
                    let problem = "no layout has been chosen".to_owned();
                    return Err(Error::Argument { request: "start", problem });
                };
                Session::open(&target, &options, &assets, &board)
            })
        };
        let supervisor = Supervisor::new(start, BackOff::default(), options.watchdog());
        let (checkpoint, model, constants) = cpu.into_parts();
        let constants = Arc::new(constants);
        Ok(Self {
            checkpoint,
            model,
            constants,
            numerics,
            options,
            slot,
            supervisor,
            current: None,
            leading: (0, LeadingTokens::default()),
            board,
        })
    }

    /// Makes the session one for a layout.
    fn target(&mut self, layout: Layout) -> Result<Arc<Target>, BackendError> {
        if let Some((_, target)) = self.current.as_ref().filter(|(current, _)| *current == layout) {
            return Ok(Arc::clone(target));
        }
        // They may have been set since.
        check_numerics(self.numerics)?;
        let program = self.model.request(&self.checkpoint, layout)?;
        // What cannot be lowered is the request's fault and costs no session.
        let (checkpoint, constants) = (Arc::clone(&self.checkpoint), Arc::clone(&self.constants));
        let target = Arc::new(Target::new(program, checkpoint, constants, self.numerics)?);
        self.supervisor.stop();
        *locked(&self.slot) = Some(Arc::clone(&target));
        self.current = Some((layout, Arc::clone(&target)));
        Ok(target)
    }

    /// Runs a named part of a request on the session, which is started if there is none.
    fn on_device<R>(
        &mut self,
        stage: &str,
        work: impl FnOnce(&mut Session, Duration) -> Result<R, Error>,
    ) -> Result<R, DeviceError> {
        let source = match self.supervisor.run(stage, work) {
            Ok(done) => return Ok(done),
            Err(source) => source,
        };
        let mut stage = stage.to_owned();
        if let (NotReady::Failed(error), Some(retry_in)) = (&source, self.supervisor.retry_in()) {
            stage = self.board.start_stage().unwrap_or(stage);
            self.board.lost(&stage, error, retry_in);
        }
        Err(DeviceError::Device { stage, source })
    }

    /// Runs the programs of a stage one by one, up to each tap.
    fn run_tapped(
        &mut self,
        program: &Program,
        stage: usize,
        taps: &mut dyn TapSink,
    ) -> Result<(), BackendError> {
        // Programs one by one take other times than a trace.
        let name = &format!("{}, one by one", program.stages[stage].kind.name());
        let mut first = 0;
        for (op, content) in (0..).zip(&program.stages[stage].ops) {
            let Op::Tap { x, name: tap } = content else { continue };
            let view = *x;
            let values = self.on_device(name, |session, _| {
                session.run(stage, first, op)?;
                session.read(view)
            })?;
            taps.tap(tap, view.rows, view.cols, &values);
            first = op;
        }
        Ok(self.on_device(name, |session, _| session.run(stage, first, u32::MAX).map(|_| ()))?)
    }
}

/// That the card's kernels compute with these numbers.
fn check_numerics(numerics: CardNumerics) -> Result<(), DeviceError> {
    match numerics.accumulation {
        Accumulation::F32 => Ok(()),
        Accumulation::Bf16 => Err(DeviceError::Accumulation),
    }
}

impl Backend for DeviceBackend {
    fn describe(&self) -> String {
        format!("{} ({})", self.options.kind, self.numerics)
    }

    /// The card computes with its own numbers: of others, it takes those that it has kernels for.
    fn set_numerics(&mut self, numerics: Numerics) {
        if let Numerics::Card(numerics) = numerics {
            self.numerics = numerics;
            self.current = None;
        }
    }

    fn is_reference(&self) -> bool {
        false
    }

    fn device(&self) -> Option<StatusBoard> {
        Some(self.board.clone())
    }

    fn look(&mut self) -> bool {
        if self.supervisor.is_running() {
            match self.on_device("idle", |session, _| session.telemetry()) {
                Ok(telemetry) => self.board.measured(telemetry),
                Err(error) => warn!("the device was lost: {error}"),
            }
        }
        !self.supervisor.is_running() && self.current.is_some()
    }

    fn recover(&mut self) {
        match self.on_device("start", |_, _| Ok(())) {
            Ok(()) => info!("the device is back, session {}", self.supervisor.starts()),
            // It is not due yet.
            Err(DeviceError::Device { source: NotReady::Waiting { .. }, .. }) => {}
            Err(error) => warn!("the device is not back: {error}"),
        }
    }

    fn run(
        &mut self,
        input: &ModelInput,
        options: &PredictOptions,
        mut taps: Option<&mut dyn TapSink>,
    ) -> Result<ModelOutput, BackendError> {
        let target = self.target(input.layout())?;
        let program = &target.program;
        check_indices(program, input)?;
        let inputs = of_request(program, &target.dram, input).map_err(DeviceError::from)?;
        let event = self.on_device("inputs", |session, _| session.write_inputs(&inputs))?;
        let session = self.supervisor.starts();
        if self.leading.0 != session {
            // What another session has computed is gone.
            self.leading = (session, LeadingTokens::new(program.stages.len()));
        }
        let mut after = Some(event);
        let mut timings: Vec<(StageKind, Duration)> = Vec::with_capacity(program.stages.len());
        for (stage, content) in program.stages.iter().enumerate() {
            let kind = content.kind;
            if options.cancel.is_cancelled() {
                return Err(BackendError::Cancelled { stage: kind });
            }
            // A stage may run in two parts.
            if timings.last().is_none_or(|(last, _)| *last != kind) {
                options.progress.begin(kind.name());
            }
            let start = Instant::now();
            if self.leading.1.begin(stage, content, &input.token_ids) {
                match taps.as_deref_mut() {
                    Some(taps) => self.run_tapped(program, stage, taps)?,
                    None => {
                        let event = after.take();
                        let name = kind.name();
                        let replay = |session: &mut Session, limit| {
                            let took = session.replay(stage, event, limit)?;
                            Ok(StageFacts { name, took, limit })
                        };
                        let ran = self.on_device(name, replay)?;
                        self.board.ran(ran);
                    }
                }
                self.leading.1.finish(stage, content, &input.token_ids);
            }
            timings.push((kind, start.elapsed()));
        }
        let exported = program.exports.iter().find(|(name, _)| name == ACTIONS);
        let Some((_, actions)) = exported else {
            return Ok(ModelOutput { actions: Vec::new(), timings });
        };
        let view = program.view(*actions);
        let actions = self.on_device("actions", |session, _| session.read(view))?;
        Ok(ModelOutput { actions, timings })
    }
}
