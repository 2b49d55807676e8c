//! The cameras of the recorded robots: sphere tracing of the [`Scene`], light, shadow and anti-aliasing.

use rayon::prelude::*;

use super::scene::{Colour, Material, Point, Scene, mix, smooth_step};

/// A camera.
#[derive(Clone, Copy, Debug)]
pub struct Camera {
    /// Size of its frames, pixels.
    pub width: u32,
    pub height: u32,
    pub eye: Point,
    /// Not straight above or below the eye.
    pub looks_at: Point,
    /// Half the width of the picture at one metre, metres.
    pub half_width: f32,
}

/// Towards the window that lights the table; normalised where it is used.
const TO_LIGHT: Point = Point::new(-0.45, 0.35, 0.95);
const LIGHT: Colour = Colour::new(1.00, 0.95, 0.86);
const AMBIENT: Colour = Colour::new(0.30, 0.33, 0.38);
/// Larger is a smaller lamp and a harder shadow.
const SHADOW_HARDNESS: f32 = 9.0;

/// Steps after which a ray counts as having missed, or as having met what it is close to.
const MAX_STEPS: usize = 80;
/// A ray this close to a solid has met it, metres.
const SURFACE: f32 = 0.0004;
/// Rays begin here, in front of what holds the camera, metres.
const NEAR: f32 = 0.2;
/// Rays end here, metres.
const FAR: f32 = 3.0;
/// Neighbouring pixels that differ more than this in a channel, of 255, are sampled again.
const EDGE: f32 = 10.0;
/// Samples per side of a pixel on an edge.
const SUBSAMPLES: usize = 3;

/// What a camera sees: `[height, width, 3]`, 8-bit RGB. The same on every machine.
pub fn render(camera: &Camera, scene: Scene) -> Vec<u8> {
    let view = View::new(camera, scene);
    let (width, height) = (camera.width as usize, camera.height as usize);
    let row_of =
        |y: usize| (0..width).map(|x| view.colour(x as f32 + 0.5, y as f32 + 0.5)).collect();
    let once: Vec<Vec<Colour>> = (0..height).into_par_iter().map(row_of).collect();
    let refined =
        |x: usize, y: usize| if on_edge(&once, x, y) { view.pixel(x, y) } else { once[y][x] };
    (0..height)
        .into_par_iter()
        .flat_map_iter(|y| (0..width).flat_map(move |x| rgb8(refined(x, y))))
        .collect()
}

/// Whether a neighbour of pixel (`x`, `y`) looks clearly different.
fn on_edge(rows: &[Vec<Colour>], x: usize, y: usize) -> bool {
    let (last_row, last_column) = (rows.len() - 1, rows[y].len() - 1);
    let neighbours = [
        (x.saturating_sub(1), y),
        ((x + 1).min(last_column), y),
        (x, y.saturating_sub(1)),
        (x, (y + 1).min(last_row)),
    ];
    neighbours.iter().any(|&(nx, ny)| (rows[ny][nx] - rows[y][x]).amax() > EDGE)
}

fn rgb8(colour: Colour) -> [u8; 3] {
    [colour.x, colour.y, colour.z].map(|channel| (channel + 0.5).clamp(0.0, 255.0) as u8)
}

struct View {
    camera: Camera,
    scene: Scene,
    forward: Point,
    right: Point,
    down: Point,
    to_light: Point,
}

impl View {
    fn new(camera: &Camera, scene: Scene) -> Self {
        let forward = (camera.looks_at - camera.eye).normalize();
        let right = forward.cross(&Point::z()).normalize();
        let down = forward.cross(&right);
        Self { camera: *camera, scene, forward, right, down, to_light: TO_LIGHT.normalize() }
    }

    /// Mean colour over the pixel whose upper left corner is (`x`, `y`), 0 to 255.
    fn pixel(&self, x: usize, y: usize) -> Colour {
        let place = |i: usize| (i as f32 + 0.5) / SUBSAMPLES as f32;
        let mut sum = Colour::zeros();
        for (i, j) in (0..SUBSAMPLES).flat_map(|i| (0..SUBSAMPLES).map(move |j| (i, j))) {
            sum += self.colour(x as f32 + place(i), y as f32 + place(j));
        }
        sum / (SUBSAMPLES * SUBSAMPLES) as f32
    }

    /// Colour at a point of the picture, in pixels from its upper left corner; 0 to 255.
    fn colour(&self, x: f32, y: f32) -> Colour {
        let Camera { width, height, half_width, .. } = self.camera;
        let (half, tall) = (width as f32 / 2.0, height as f32 / width as f32);
        let (u, v) = ((x / half - 1.0) * half_width, (y / half - tall) * half_width);
        let ray = (self.forward + self.right * u + self.down * v).normalize();
        let (p, material) = self.trace(&ray);
        let normal = if material == Material::Table { Point::z() } else { self.normal(&p) };
        let (albedo, shine) = self.scene.surface(material, &p);
        let facing = normal.dot(&self.to_light).max(0.0);
        let lit =
            if facing > 0.0 { facing * self.light_reaching(&(p + normal * 0.002)) } else { 0.0 };
        let sky = 0.6 + 0.4 * normal.z;
        let diffuse =
            albedo.component_mul(&(LIGHT * lit + AMBIENT * (sky * self.openness(&p, &normal))));
        let half_way = (self.to_light - ray).normalize();
        let highlight = power_32(normal.dot(&half_way).max(0.0)) * shine * lit;
        let linear = diffuse + LIGHT * highlight;
        // Square root for gamma: display values as cameras deliver them.
        let vignette = 1.0 - 0.10 * (u * u + v * v) / (half_width * half_width);
        linear.map(|channel| channel.clamp(0.0, 1.0).sqrt()) * (255.0 * vignette)
    }

    /// Where the ray from the eye ends, and on what.
    fn trace(&self, ray: &Point) -> (Point, Material) {
        let eye = self.camera.eye;
        let table = if ray.z < 0.0 { -eye.z / ray.z } else { FAR };
        let mut along = NEAR;
        for _ in 0..MAX_STEPS {
            let p = eye + ray * along;
            let (distance, material) = self.scene.distance(&p);
            if distance < SURFACE {
                return (p, material);
            }
            along += distance;
            if along >= table {
                break;
            }
        }
        (eye + ray * table, Material::Table)
    }

    fn normal(&self, p: &Point) -> Point {
        const STEP: f32 = 0.0005;
        let slope = |axis: Point| {
            self.scene.distance(&(p + axis * STEP)).0 - self.scene.distance(&(p - axis * STEP)).0
        };
        let gradient = Point::new(slope(Point::x()), slope(Point::y()), slope(Point::z()));
        gradient.try_normalize(f32::MIN_POSITIVE).unwrap_or_else(Point::z)
    }

    /// Share of the lamp that is seen from `p`, 0 to 1: solids that pass close by cast the penumbra.
    fn light_reaching(&self, p: &Point) -> f32 {
        // Above this height there is nothing.
        const CEILING: f32 = 0.50;
        let end = (CEILING - p.z) / self.to_light.z;
        let (mut along, mut share) = (0.002, 1.0f32);
        for _ in 0..MAX_STEPS {
            if along >= end {
                break;
            }
            let distance = self.scene.distance(&(p + self.to_light * along)).0;
            share = share.min(0.5 + 0.5 * SHADOW_HARDNESS * distance / along);
            if share <= 0.0 {
                return 0.0;
            }
            along += distance.max(0.004);
        }
        smooth_step(0.0, 1.0, share)
    }

    /// How much of the sky is seen from `p`, 0 to 1: less in corners.
    fn openness(&self, p: &Point, normal: &Point) -> f32 {
        let mut closed = 0.0;
        for (step, weight) in [(0.008, 26.0), (0.022, 12.0), (0.045, 5.0)] {
            let q = p + normal * step;
            let free = self.scene.distance(&q).0.min(q.z).min(step);
            closed += (step - free).max(0.0) * weight;
        }
        mix(Colour::repeat(1.0), Colour::repeat(0.35), closed.min(1.0)).x
    }
}

/// `x^32` by squaring.
fn power_32(x: f32) -> f32 {
    let x4 = (x * x) * (x * x);
    let x16 = (x4 * x4) * (x4 * x4);
    x16 * x16
}

#[cfg(test)]
mod tests {
    use super::super::scene::Effector;
    use super::*;

    #[test]
    fn frames_repeat_exactly_and_change_with_time() {
        let camera = Camera {
            width: 96,
            height: 54,
            eye: Point::new(0.02, -0.46, 0.58),
            looks_at: Point::new(0.015, 0.055, 0.02),
            half_width: 0.4,
        };
        for effector in [Effector::Hand, Effector::Gripper] {
            let frame = |seconds| render(&camera, Scene::at(seconds, effector));
            assert_eq!(frame(0.0).len(), 3 * 96 * 54);
            assert_eq!(frame(0.0), frame(0.0));
            assert_ne!(frame(0.0), frame(2.0));
        }
    }
}
