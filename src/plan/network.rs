//! The network that is planned: a released one, of which only names and shapes are needed, or that of a snapshot.

use std::path::Path;
use std::sync::Arc;

use super::documents::Documents;
use super::error::PlanError;
use super::layout::{MOST_PATCHES, Prompt, Wanted};
use crate::checkpoint::{Checkpoint, Network, Snapshot, TensorSpec, n15, n16, n17};
use crate::contract::Version;
use crate::program::{self, Layout, ModelPrograms, Program};

/// Every embodiment's programs have the same shapes.
const SLOT: usize = 0;

/// Grid of patches of N1.7's served layout, which depends on the frames.
const N17_GRID: [usize; 2] = [16, 28];

/// See the module.
pub struct Planned {
    pub version: Version,
    /// Such as `released network` or `snapshot out/tiny`.
    pub name: String,
    checkpoint: Arc<Checkpoint>,
    programs: Box<dyn ModelPrograms>,
    grid: Grid,
    /// Whether its shapes are those of the released network.
    is_released: bool,
}

/// Patches of a picture.
#[derive(Clone, Copy)]
enum Grid {
    /// Of every picture, and along each side how many of them are a token.
    Fixed([usize; 2], usize),
    /// As the frames have it.
    Free(usize),
}

impl Planned {
    /// The network of the released checkpoint of a version.
    ///
    /// # Errors
    /// No address space for its largest tensor.
    pub fn released(version: Version) -> Result<Self, PlanError> {
        let (tensors, programs, grid): (Vec<TensorSpec>, _, _) = match version {
            Version::N15 => {
                let config = n15::Config::released();
                (n15::tensors(&config), of_n15(&config), n15_grid(&config))
            }
            Version::N16 => {
                let config = n16::Config::released();
                (n16::tensors(&config), of_n16(&config), n16_grid(&config))
            }
            Version::N17 => {
                let config = n17::Config::released();
                (n17::tensors(&config), of_n17(&config), n17_grid(&config))
            }
        };
        let name = "released network".to_owned();
        let checkpoint = Arc::new(Checkpoint::of_shapes(&format!("{version}, {name}"), &tensors)?);
        Ok(Self { version, name, checkpoint, programs, grid, is_released: true })
    }

    /// The network of a snapshot directory.
    ///
    /// # Errors
    /// A snapshot that is damaged or not served.
    pub fn of_snapshot(dir: &Path) -> Result<Self, PlanError> {
        let snapshot = Snapshot::open(dir)?;
        let (programs, grid, is_released) = match snapshot.network() {
            Network::N15(config) => {
                (of_n15(config), n15_grid(config), *config == n15::Config::released())
            }
            Network::N16(config, _) => {
                (of_n16(config), n16_grid(config), *config == n16::Config::released())
            }
            Network::N17(config, _) => {
                (of_n17(config), n17_grid(config), *config == n17::Config::released())
            }
        };
        Ok(Self {
            version: snapshot.version(),
            name: format!("snapshot {}", snapshot.dir().display()),
            checkpoint: snapshot.tensors().clone(),
            programs,
            grid,
            is_released,
        })
    }

    /// Tensors of the network; those of a released one hold zeros.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Tokens of the instruction, and the layout that is asked for.
    ///
    /// # Errors
    /// A layout that no request has.
    pub fn layout(&self, wanted: Wanted) -> Result<(usize, Layout), PlanError> {
        let (grid, merge) = match (self.grid, wanted.grid) {
            (Grid::Fixed(grid, merge), None) => (grid, merge),
            (Grid::Fixed(served, _), Some(_)) => {
                return Err(PlanError::GridIsFixed { version: self.version, served });
            }
            (Grid::Free(merge), grid) => (grid.unwrap_or(N17_GRID), merge),
        };
        let is_planned =
            |side: usize| side > 0 && side.is_multiple_of(merge) && side <= MOST_PATCHES;
        if !grid.into_iter().all(is_planned) {
            return Err(PlanError::Grid { grid, merge });
        }
        let picture_tokens = grid[0] / merge * (grid[1] / merge);
        Prompt::of(self.version).layout(wanted, grid, picture_tokens)
    }

    /// What the documents measured, if they served this network and layout.
    pub fn documents(&self, layout: Layout, text_tokens: usize) -> Option<Documents> {
        let is_served = Prompt::of(self.version).is_served(layout.images, text_tokens)
            && (self.version != Version::N17 || layout.grid == N17_GRID);
        (self.is_released && is_served).then(|| Documents::of(self.version))
    }

    /// What the documents served of this version, in words.
    pub fn served(&self) -> String {
        let prompt = Prompt::of(self.version);
        let pictures = match prompt.images() {
            1 => "1 picture".to_owned(),
            images => format!("{images} pictures"),
        };
        let grid = match self.grid {
            Grid::Fixed(..) => String::new(),
            Grid::Free(_) => format!(" of {} x {} patches", N17_GRID[0], N17_GRID[1]),
        };
        let longest = prompt.longest_text();
        format!(
            "the released network with {pictures}{grid} and instructions of 1 to {longest} tokens"
        )
    }

    /// The program of a request.
    ///
    /// # Errors
    /// A tensor that is missing or of another shape.
    pub fn request(&self, layout: Layout) -> Result<Program, PlanError> {
        Ok(self.programs.request(&self.checkpoint, layout)?)
    }

    /// What runs once at load.
    ///
    /// # Errors
    /// A tensor that is missing or of another shape.
    pub fn prepare(&self) -> Result<Program, PlanError> {
        Ok(self.programs.prepare(&self.checkpoint)?)
    }
}

fn of_n15(config: &n15::Config) -> Box<dyn ModelPrograms> {
    Box::new(program::n15::Model { config: config.clone(), slot: SLOT })
}

fn of_n16(config: &n16::Config) -> Box<dyn ModelPrograms> {
    Box::new(program::n16::Model { config: config.clone(), slot: SLOT })
}

fn of_n17(config: &n17::Config) -> Box<dyn ModelPrograms> {
    let prefix_tokens = Prompt::of(Version::N17).prefix();
    Box::new(program::n17::Model { config: config.clone(), slot: SLOT, prefix_tokens })
}

fn n15_grid(config: &n15::Config) -> Grid {
    Grid::Fixed([config.vision.grid(); 2], 1)
}

fn n16_grid(config: &n16::Config) -> Grid {
    Grid::Fixed([config.vision.grid(); 2], n16::PATCHES_PER_TOKEN_SIDE)
}

fn n17_grid(config: &n17::Config) -> Grid {
    Grid::Free(config.vision.merge)
}
