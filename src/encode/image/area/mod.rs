//! OpenCV's `resize` with `INTER_AREA` on 8-bit RGB (spec n16 sections 4.1 to 4.3, n17 section 4.1).
//!
//! Three methods hide behind that name: sums of whole blocks where both ratios are integers, weighted averages
//! where the picture shrinks, and a fixed-point bilinear where it grows.

mod blocks;
mod enlarge;
mod fraction;

use super::CHANNELS;
use super::view::{Size, View, Window};
use blocks::BlockReducer;
use enlarge::Enlarger;
use fraction::FractionReducer;

/// Resizes pictures of one size to another. The picture may be the visible part of a larger black canvas, which
/// is what gets resized then, without ever being painted.
#[derive(Clone, Debug)]
pub(super) struct AreaResizer {
    target: Size,
    method: Method,
}

#[derive(Clone, Debug)]
enum Method {
    /// Same size: a copy.
    Copy(Window),
    Blocks(BlockReducer),
    Fraction(FractionReducer),
    Enlarge(Enlarger),
}

impl AreaResizer {
    /// Resizes `canvas`, which is black outside `window`, to `target`.
    pub fn new(canvas: Size, window: Window, target: Size) -> Self {
        debug_assert!(window.left + window.size.width <= canvas.width);
        debug_assert!(window.top + window.size.height <= canvas.height);
        let horizontal = Axis { source: canvas.width, target: target.width };
        let vertical = Axis { source: canvas.height, target: target.height };
        let method = if canvas == target {
            Method::Copy(window)
        } else if horizontal.scale() < 1.0 || vertical.scale() < 1.0 {
            Method::Enlarge(Enlarger::new(horizontal, vertical, window))
        } else if let (Some(columns), Some(rows)) = (horizontal.whole(), vertical.whole()) {
            Method::Blocks(BlockReducer::new(canvas, window, columns, rows))
        } else {
            Method::Fraction(FractionReducer::new(horizontal, vertical, window))
        };
        Self { target, method }
    }

    /// Resizes `picture`, the part of the canvas under the window, into `out`,
    /// `[target height, target width, 3]`.
    pub fn run(&mut self, picture: View<'_>, out: &mut [u8]) {
        debug_assert_eq!(out.len(), self.target.bytes());
        let rows = out.chunks_exact_mut(CHANNELS * self.target.width);
        match &mut self.method {
            Method::Copy(window) => copy(picture, *window, rows),
            Method::Blocks(reducer) => reducer.run(picture, rows),
            Method::Fraction(reducer) => reducer.run(picture, rows),
            Method::Enlarge(enlarger) => enlarger.run(picture, rows),
        }
    }
}

/// Rows of the output, from top to bottom.
type OutputRows<'a> = std::slice::ChunksExactMut<'a, u8>;

fn copy(picture: View<'_>, window: Window, rows: OutputRows<'_>) {
    for (y, row) in rows.enumerate() {
        paint_row(picture, window, y, row);
    }
}

/// Writes row `y` of the canvas. `row` is as wide as the canvas, or wider: the excess becomes black.
fn paint_row(picture: View<'_>, window: Window, y: usize, row: &mut [u8]) {
    let inside = y.checked_sub(window.top).filter(|&y| y < window.size.height);
    let Some(y) = inside else {
        row.fill(0);
        return;
    };
    let pixels = picture.row(y);
    let (left, rest) = row.split_at_mut(CHANNELS * window.left);
    let (middle, right) = rest.split_at_mut(pixels.len());
    left.fill(0);
    middle.copy_from_slice(pixels);
    right.fill(0);
}

/// One axis of a resize, with the reference's own arithmetic.
#[derive(Clone, Copy, Debug)]
struct Axis {
    source: usize,
    target: usize,
}

impl Axis {
    /// Output samples per input sample.
    fn inverse(self) -> f64 {
        self.target as f64 / self.source as f64
    }

    /// Input samples per output sample: the reciprocal of the rounded inverse, not the quotient itself.
    fn scale(self) -> f64 {
        1.0 / self.inverse()
    }

    /// The scale where it counts as an integer.
    fn whole(self) -> Option<usize> {
        let nearest = self.scale().round_ties_even();
        ((self.scale() - nearest).abs() < f64::EPSILON).then_some(nearest as usize)
    }
}

/// Rounds half to even and clamps to 8 bits. `value` is at least 0 and below 2^22.
#[inline(always)]
fn round_half_even(value: f32) -> u8 {
    /// At this size the spacing of f32 is 1, so that the addition rounds to integers.
    const SPACING_ONE: f32 = (1 << 23) as f32;
    let clamped = if value < 255.0 { value } else { 255.0 };
    (clamped + SPACING_ONE).to_bits() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_the_even_neighbour() {
        for (value, rounded) in [
            (0.0, 0),
            (0.5, 0),
            (0.50001, 1),
            (1.5, 2),
            (2.5, 2),
            (254.5, 254),
            (255.4, 255),
            (300.0, 255),
        ] {
            assert_eq!(round_half_even(value), rounded, "{value}");
        }
    }

    fn resized(
        canvas: Size,
        window: Window,
        target: Size,
        sample: impl Fn(usize) -> u8,
    ) -> Vec<u8> {
        let rgb: Vec<u8> = (0..window.size.bytes()).map(sample).collect();
        let mut out = vec![77; target.bytes()];
        AreaResizer::new(canvas, window, target).run(View::new(&rgb, window.size), &mut out);
        out
    }

    /// The same resize of a canvas that really is painted.
    fn resized_painted(
        canvas: Size,
        window: Window,
        target: Size,
        sample: impl Fn(usize) -> u8,
    ) -> Vec<u8> {
        let rgb: Vec<u8> = (0..window.size.bytes()).map(sample).collect();
        let mut painted = vec![0; canvas.bytes()];
        copy(View::new(&rgb, window.size), window, painted.chunks_exact_mut(3 * canvas.width));
        resized(canvas, Window::whole(canvas), target, |i| painted[i])
    }

    #[test]
    fn an_unpainted_canvas_equals_a_painted_one() {
        let square = Size::square;
        let target = square(32);
        let sizes = [
            (square(32), Size { width: 32, height: 9 }),
            (square(64), Size { width: 31, height: 64 }),
            (square(96), Size { width: 96, height: 1 }),
            (square(75), Size { width: 75, height: 40 }),
            (square(75), Size { width: 3, height: 75 }),
            (square(20), Size { width: 13, height: 20 }),
        ];
        for (canvas, frame) in sizes {
            let window = Window::centred(frame, canvas);
            let noise = |i: usize| (i.wrapping_mul(2_654_435_761) >> 7) as u8;
            assert_eq!(
                resized(canvas, window, target, noise),
                resized_painted(canvas, window, target, noise),
                "{frame:?} on {canvas:?}"
            );
        }
    }

    #[test]
    fn a_flat_picture_stays_flat() {
        let targets = [(455, 256), (100, 70), (50, 35), (25, 35), (37, 29), (7, 2), (1, 1)];
        let source = Size { width: 100, height: 70 };
        for (width, height) in targets {
            let target = Size { width, height };
            let flat = resized(source, Window::whole(source), target, |i| [3, 128, 255][i % 3]);
            assert_eq!(flat, [3, 128, 255].repeat(width * height), "{target:?}");
        }
    }

    #[test]
    fn a_single_pixel_can_be_enlarged() {
        let source = Size::square(1);
        let out = resized(source, Window::whole(source), Size::square(40), |i| [5, 6, 7][i]);
        assert_eq!(out, [5, 6, 7].repeat(1600));
    }
}
