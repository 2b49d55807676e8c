//! What the cameras of the recorded robots see: a table with a plate, a pear and the robot's hand or gripper.
//!
//! Solids are signed distance functions, in metres: x to the right, y away from the robot, z up from the table top.

use nalgebra::{Vector2, Vector3};

use super::motion::Track;

pub type Point = Vector3<f32>;
pub type Colour = Vector3<f32>;

/// Where the plate stands.
const PLATE: Point = Point::new(-0.125, 0.11, 0.0);
const PLATE_RADIUS: f32 = 0.115;
/// Half the thickness of the plate's sheet.
const PLATE_SHEET: f32 = 0.003;
/// Profile of the plate, distance from its axis and height: foot, well, rim.
const PLATE_PROFILE: [Vector2<f32>; 3] = [
    Vector2::new(0.0, PLATE_SHEET),
    Vector2::new(0.07, PLATE_SHEET),
    Vector2::new(PLATE_RADIUS, 0.021),
];

/// Where the pear stands at first; its own origin is the middle of its foot.
const PEAR_START: Point = Point::new(0.15, 0.06, 0.0);
const PEAR_BOUND: (Point, f32) = (Point::new(0.0, 0.0, 0.06), 0.075);
const STEM: (Point, Point) = (Point::new(0.0, 0.0, 0.104), Point::new(0.007, 0.002, 0.121));

/// Solids of the hand lie this close to the point between its fingertips, the forearm apart.
const HAND_BOUND: f32 = 0.15;
/// From the point between the fingertips to the wrist, and on to the elbow, which is out of the picture.
const WRIST: Point = Point::new(0.115, -0.045, 0.065);
const ELBOW: Point = Point::new(0.52, -0.61, 0.31);
/// Heights of the four fingers above the point between the fingertips.
const FINGER_HEIGHTS: [f32; 4] = [0.034, 0.016, -0.002, -0.019];

/// The point between the fingertips, relative to the middle of the foot of the pear in hand.
const GRASP: Point = Point::new(0.0, 0.0, 0.045);

/// The point between the fingertips at the knots of the motion.
const HAND_PATH: Track<3> = Track([
    [0.27, -0.10, 0.15],
    [0.24, 0.03, 0.09],
    [0.15, 0.06, 0.045],
    [0.15, 0.06, 0.045],
    [0.12, 0.07, 0.15],
    [-0.11, 0.11, 0.14],
    [-0.125, 0.11, 0.051],
    [-0.125, 0.11, 0.051],
    [0.27, -0.10, 0.15],
]);
/// How far the hand is closed at the knots of the motion, 0 to 1.
const CLOSED: Track<1> = Track([[0.35], [0.0], [0.0], [1.0], [1.0], [1.0], [1.0], [0.0], [0.35]]);
/// Knots between which the hand holds the pear.
const HELD_FROM: usize = 3;
const HELD_UNTIL: usize = 6;

/// What picks the pear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effector {
    /// A right hand with five fingers, from the right.
    Hand,
    /// Two fingers that close along x, from above.
    Gripper,
}

/// The point between the fingertips at `seconds` from the start of the motion, metres.
pub fn hand_at(seconds: f64) -> [f64; 3] {
    HAND_PATH.at(seconds).0
}

/// How far the fingers are closed at `seconds` from the start of the motion, 0 to 1.
pub fn closed_at(seconds: f64) -> f64 {
    CLOSED.at(seconds).0[0]
}

/// What a ray has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Material {
    Table,
    Plate,
    Pear,
    Stem,
    Finger,
    Shell,
}

/// All solids at one moment.
pub struct Scene {
    pear: Point,
    hand: Point,
    closed: f32,
    effector: Effector,
}

impl Scene {
    /// The scene at `seconds` from the start of the motion.
    pub fn at(seconds: f64, effector: Effector) -> Self {
        let hand = |seconds| Point::from(hand_at(seconds).map(|axis| axis as f32));
        let knots = super::motion::KNOTS_S;
        let held = seconds.min(knots[HELD_UNTIL]);
        let pear = if seconds < knots[HELD_FROM] { PEAR_START } else { hand(held) - GRASP };
        Self { pear, hand: hand(seconds), closed: closed_at(seconds) as f32, effector }
    }

    /// Distance from `p` to the nearest solid other than the table, and what that solid is. Far from a solid it is a
    /// lower bound.
    pub fn distance(&self, p: &Point) -> (f32, Material) {
        let plate = (plate(&(p - PLATE)), Material::Plate);
        let robot = match self.effector {
            Effector::Hand => [self.hand(p), self.forearm(p)],
            Effector::Gripper => [self.gripper(p), self.wrist(p)],
        };
        robot.into_iter().fold(nearer(plate, self.pear(p)), nearer)
    }

    fn pear(&self, p: &Point) -> (f32, Material) {
        let local = p - self.pear;
        let outside = (local - PEAR_BOUND.0).norm() - PEAR_BOUND.1;
        if outside > BOUND_MARGIN {
            return (outside, Material::Pear);
        }
        let belly = (local - Point::new(0.0, 0.0, 0.0365)).norm() - 0.0365;
        let neck = (local - Point::new(0.002, 0.0, 0.085)).norm() - 0.0185;
        let body = (smooth_min(belly, neck, 0.045), Material::Pear);
        nearer(body, (capsule(&local, &STEM.0, &STEM.1, 0.0025, 0.002), Material::Stem))
    }

    /// Fingers on the far side of the grasp, the thumb on the near side, and the back of the hand at the right.
    fn hand(&self, p: &Point) -> (f32, Material) {
        let local = p - self.hand;
        let outside = local.norm() - HAND_BOUND;
        if outside > BOUND_MARGIN {
            return (outside, Material::Shell);
        }
        let gap = 0.043 + 0.03 * (1.0 - self.closed);
        let mut finger = f32::MAX;
        for height in FINGER_HEIGHTS {
            let knuckle = Point::new(0.068, 0.026, height + 0.012);
            let middle = Point::new(0.024, gap + 0.004, height);
            let tip = Point::new(-0.016, gap - 0.012 * self.closed, height - 0.004);
            finger = finger.min(capsule(&local, &knuckle, &middle, 0.0105, 0.0095));
            finger = finger.min(capsule(&local, &middle, &tip, 0.0095, 0.0075));
        }
        let thumb_root = Point::new(0.078, -0.034, 0.004);
        let thumb_middle = Point::new(0.036, -gap - 0.008, 0.006);
        let thumb_tip = Point::new(-0.002, -gap, 0.004);
        let thumb = capsule(&local, &thumb_root, &thumb_middle, 0.012, 0.0105).min(capsule(
            &local,
            &thumb_middle,
            &thumb_tip,
            0.0105,
            0.0085,
        ));
        let back = capsule(
            &local,
            &Point::new(0.082, 0.014, 0.034),
            &Point::new(0.085, 0.008, 0.000),
            0.026,
            0.022,
        );
        let heel = capsule(&local, &Point::new(0.085, 0.0, 0.02), &WRIST, 0.027, 0.023);
        nearer(
            (finger.min(thumb), Material::Finger),
            (smooth_min(back, heel, 0.015), Material::Shell),
        )
    }

    fn forearm(&self, p: &Point) -> (f32, Material) {
        let local = p - self.hand;
        let sleeve = capsule(&local, &WRIST, &ELBOW, 0.026, 0.062);
        // A dark ring where hand and forearm meet.
        let axis = (ELBOW - WRIST).normalize();
        let cuff =
            capsule(&local, &(WRIST + axis * 0.012), &(WRIST + axis * 0.024), 0.0295, 0.0305);
        nearer((sleeve, Material::Shell), (cuff, Material::Finger))
    }

    /// Two fingers beside the grasp, and what they slide in.
    fn gripper(&self, p: &Point) -> (f32, Material) {
        let local = p - self.hand;
        let outside = local.norm() - HAND_BOUND;
        if outside > BOUND_MARGIN {
            return (outside, Material::Shell);
        }
        // Both fingers at once: the gripper is the same on either side of x = 0.
        let side = Point::new(local.x.abs(), local.y, local.z);
        let gap = 0.044 + 0.012 * (1.0 - self.closed);
        let tip = Point::new(gap, 0.0, -0.012);
        let root = Point::new(gap + 0.012, 0.0, 0.075);
        let finger = capsule(&side, &tip, &root, 0.0075, 0.011);
        let rail = Point::new(0.062, 0.0, 0.088);
        let palm = capsule(&side, &Point::new(0.0, 0.0, 0.095), &rail, 0.026, 0.02);
        nearer((finger, Material::Finger), (palm, Material::Shell))
    }

    /// The arm's last link, above the gripper and towards the robot.
    fn wrist(&self, p: &Point) -> (f32, Material) {
        let local = p - self.hand;
        let flange = Point::new(0.0, 0.0, 0.115);
        let link = Point::new(0.0, -0.07, 0.30);
        (capsule(&local, &flange, &link, 0.034, 0.046), Material::Shell)
    }

    /// Colour of the surface at `p` before light falls on it, and how much it shines, 0 to 1.
    pub fn surface(&self, material: Material, p: &Point) -> (Colour, f32) {
        match material {
            Material::Table => (wood(p), 0.06),
            Material::Plate => {
                let radius = (p - PLATE).xy().norm();
                let ring = 1.0 - smooth_step(0.0015, 0.003, (radius - 0.099).abs());
                (mix(Colour::new(0.86, 0.87, 0.88), Colour::new(0.16, 0.31, 0.55), ring), 0.35)
            }
            Material::Pear => {
                let local = p - self.pear;
                let ripe = smooth_step(-0.03, 0.035, local.x - 0.6 * local.y);
                let green = Colour::new(0.50, 0.60, 0.09);
                let yellow = Colour::new(0.82, 0.66, 0.10);
                let freckle = 0.93 + 0.07 * noise(&(local * 260.0));
                let towards_stem = smooth_step(0.05, 0.10, local.z);
                (mix(mix(yellow, green, ripe), green, 0.6 * towards_stem) * freckle, 0.30)
            }
            Material::Stem => (Colour::new(0.22, 0.13, 0.06), 0.05),
            Material::Finger => (Colour::new(0.10, 0.105, 0.115), 0.40),
            Material::Shell => (Colour::new(0.63, 0.65, 0.68), 0.45),
        }
    }
}

/// Within this distance of a solid's bounding sphere the solid itself is measured, metres.
const BOUND_MARGIN: f32 = 0.02;

fn nearer(a: (f32, Material), b: (f32, Material)) -> (f32, Material) {
    if b.0 < a.0 { b } else { a }
}

/// Distance to the plate whose axis is z.
fn plate(p: &Point) -> f32 {
    let profile = Vector2::new(p.xy().norm(), p.z);
    let segment = |a: &Vector2<f32>, b: &Vector2<f32>| {
        let (along, to) = (b - a, profile - a);
        (to - along * (to.dot(&along) / along.norm_squared()).clamp(0.0, 1.0)).norm()
    };
    let [axis, well, rim] = &PLATE_PROFILE;
    segment(axis, well).min(segment(well, rim)) - PLATE_SHEET
}

/// Distance to a rod from `a` to `b` with radii `radius_a` and `radius_b`.
fn capsule(p: &Point, a: &Point, b: &Point, radius_a: f32, radius_b: f32) -> f32 {
    let (along, to) = (b - a, p - a);
    let s = (to.dot(&along) / along.norm_squared()).clamp(0.0, 1.0);
    (to - along * s).norm() - (radius_a + (radius_b - radius_a) * s)
}

/// The smaller of two distances, with the edge between them rounded over `width`.
fn smooth_min(a: f32, b: f32, width: f32) -> f32 {
    let h = (0.5 + 0.5 * (b - a) / width).clamp(0.0, 1.0);
    b + (a - b) * h - width * h * (1.0 - h)
}

pub fn smooth_step(from: f32, to: f32, value: f32) -> f32 {
    let s = ((value - from) / (to - from)).clamp(0.0, 1.0);
    s * s * (3.0 - 2.0 * s)
}

pub fn mix(a: Colour, b: Colour, share: f32) -> Colour {
    a + (b - a) * share
}

/// Planks along x, with grain.
fn wood(p: &Point) -> Colour {
    const PLANK: f32 = 0.115;
    let plank = ((p.y + 0.02) / PLANK).floor();
    let across = (p.y + 0.02) / PLANK - plank;
    let offset = Point::new(plank * 7.3, plank * 3.1, 0.0);
    let bend = noise(&(Point::new(p.x * 5.0, p.y * 9.0, 0.0) + offset));
    let grain = noise(&(Point::new(p.x * 4.0, p.y * 130.0 + 5.0 * bend, 0.0) + offset));
    let tone = 0.5 + 0.25 * noise(&(offset * 1.7));
    let base = mix(Colour::new(0.42, 0.26, 0.14), Colour::new(0.56, 0.37, 0.21), tone);
    let seam = smooth_step(0.0, 0.022, across.min(1.0 - across));
    base * (0.91 + 0.09 * grain) * (0.55 + 0.45 * seam)
}

/// Smooth noise of one cycle per unit, -1 to 1.
fn noise(p: &Point) -> f32 {
    let cell = p.map(f32::floor);
    let inside = (p - cell).map(|s| s * s * (3.0 - 2.0 * s));
    let corner = |dx: i32, dy: i32, dz: i32| {
        lattice(cell.x as i32 + dx, cell.y as i32 + dy, cell.z as i32 + dz)
    };
    let along_x = |dy, dz| lerp(corner(0, dy, dz), corner(1, dy, dz), inside.x);
    let along_xy = |dz| lerp(along_x(0, dz), along_x(1, dz), inside.y);
    lerp(along_xy(0), along_xy(1), inside.z)
}

fn lerp(a: f32, b: f32, share: f32) -> f32 {
    a + (b - a) * share
}

/// A fixed pseudo-random value per lattice point, -1 to 1.
fn lattice(x: i32, y: i32, z: i32) -> f32 {
    let mut hash = (x as u32).wrapping_mul(0x9E37_79B1)
        ^ (y as u32).wrapping_mul(0x85EB_CA77)
        ^ (z as u32).wrapping_mul(0xC2B2_AE3D);
    hash = (hash ^ (hash >> 15)).wrapping_mul(0x2C1B_3C6D);
    hash = (hash ^ (hash >> 12)).wrapping_mul(0x297A_2D39);
    ((hash >> 8) as f32) * (2.0 / 16_777_215.0) - 1.0
}

#[cfg(test)]
mod tests {
    use super::super::motion::KNOTS_S;
    use super::*;

    #[test]
    fn the_pear_goes_from_the_table_onto_the_plate() {
        let (start, end) = (Scene::at(0.0, Effector::Hand), Scene::at(5.0, Effector::Hand));
        assert_eq!(start.pear, PEAR_START);
        assert!((end.pear - PLATE).norm() < 0.01, "the pear ends at {}", end.pear);
        assert!(end.pear.z >= 2.0 * PLATE_SHEET - 1e-6, "the pear sinks into the plate");
    }

    #[test]
    fn a_held_pear_moves_without_a_jump() {
        for knot in [KNOTS_S[HELD_FROM], KNOTS_S[HELD_UNTIL]] {
            let at = |seconds| Scene::at(seconds, Effector::Gripper);
            let (before, after) = (at(knot - 1e-3), at(knot + 1e-3));
            assert!((before.pear - after.pear).norm() < 1e-4);
        }
    }

    #[test]
    fn distances_change_no_faster_than_the_point_moves() {
        for (step, effector) in (0..4000).zip([Effector::Hand, Effector::Gripper].iter().cycle()) {
            let scene = Scene::at(1.6, *effector);
            let along = |s: i32| 0.4 * lattice(step, s, 7);
            let p = Point::new(along(1), along(2), along(3).abs());
            let q = p + Point::new(along(4), along(5), along(6)) * 0.02;
            let change = (scene.distance(&p).0 - scene.distance(&q).0).abs();
            // Where a bounding sphere gives way to its solid, the distance grows by up to the sphere's slack.
            let outside = scene.distance(&p).0.min(scene.distance(&q).0) > BOUND_MARGIN;
            assert!(outside || change <= 1.05 * (p - q).norm() + 1e-5, "{change} at {p}");
        }
    }
}
