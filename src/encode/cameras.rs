//! The cameras of an N1.7 policy: their frames become pictures as they arrive, or at the latest when a request needs
//! them.

use std::sync::{Arc, Mutex, MutexGuard};

use super::image::n17::{FrameChain, FrameChainError, FrameChainParams, Picture};
use super::kept::Kept;
use super::{EncodeError, FrameIntake, FrameShapes};
use crate::contract::{Embodiment, Frame};
use crate::locked::locked;

/// One frame chain per camera, each behind a lock of its own.
#[derive(Debug)]
pub struct Cameras {
    names: Vec<String>,
    shapes: FrameShapes,
    cameras: Vec<Mutex<Camera>>,
}

/// One camera.
#[derive(Debug)]
pub struct Camera {
    name: String,
    chain: FrameChain,
    letterbox: bool,
    shapes: FrameShapes,
    kept: Kept<Picture>,
    /// Width and height of the frame that was checked last.
    checked: Option<[u32; 2]>,
}

impl Cameras {
    /// # Errors
    /// `params` that no chain can be built for.
    pub fn new(
        embodiment: &Embodiment,
        params: FrameChainParams,
        letterbox: bool,
    ) -> Result<Self, FrameChainError> {
        let chain = FrameChain::new(params, letterbox)?;
        let shapes = FrameShapes::n17(embodiment, params, letterbox)?;
        let camera = |name: &String| Camera {
            name: name.clone(),
            chain: chain.clone(),
            letterbox,
            shapes: shapes.clone(),
            kept: Kept::default(),
            checked: None,
        };
        let names = embodiment.cameras.clone();
        let cameras = names.iter().map(|name| Mutex::new(camera(name))).collect();
        Ok(Self { names, shapes, cameras })
    }

    /// The shapes of frames that all of them accept.
    pub fn shapes(&self) -> &FrameShapes {
        &self.shapes
    }

    /// The camera of this number in the embodiment's list.
    pub fn camera(&self, number: usize) -> MutexGuard<'_, Camera> {
        // A thread that panicked can only have left a picture half written, of a frame that is not yet kept.
        locked(&self.cameras[number])
    }
}

impl FrameIntake for Cameras {
    fn arrived(&self, camera: &str, frame: &Arc<Frame>) -> Result<(), EncodeError> {
        let number = self.names.iter().position(|name| name == camera).ok_or_else(|| {
            EncodeError::UnknownCamera { camera: camera.to_owned(), expected: self.names.clone() }
        })?;
        self.camera(number).picture(frame).map(|_| ())
    }
}

impl Camera {
    /// The picture that `frame` becomes; made once for every frame.
    ///
    /// # Errors
    /// A frame whose picture is of a shape that is not served.
    pub fn picture(&mut self, frame: &Arc<Frame>) -> Result<&Picture, EncodeError> {
        self.check(frame)?;
        let Self { chain, kept, .. } = self;
        Ok(kept.get_or_make(frame, |picture| chain.encode(frame, picture)))
    }

    /// Says once per frame size what becomes of it.
    fn check(&mut self, frame: &Frame) -> Result<(), EncodeError> {
        let size = [frame.width(), frame.height()];
        if self.checked == Some(size) {
            return Ok(());
        }
        self.shapes.check(&self.name, frame)?;
        let [width, height] = size;
        let grid = self.chain.grid(width, height);
        tracing::info!(
            "camera '{}': frames of {width}x{height} become {}x{} patches, letterbox {}",
            self.name,
            grid[0],
            grid[1],
            if self.letterbox { "on" } else { "off" },
        );
        self.checked = Some(size);
        Ok(())
    }
}
