//! Padding to a square, by arithmetic only: the black border is never painted.

use super::view::{Size, Window};

/// A frame in the middle of a black square as wide as the frame's longer side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Letterbox {
    /// The square.
    pub canvas: Size,
    /// Where the frame lies in it.
    pub window: Window,
}

impl Letterbox {
    pub fn around(frame: Size) -> Self {
        let canvas = Size::square(frame.width.max(frame.height));
        Self { canvas, window: Window::centred(frame, canvas) }
    }

    /// The frame as it is.
    pub fn without_border(frame: Size) -> Self {
        Self { canvas: frame, window: Window::whole(frame) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_top(width: usize, height: usize) -> (usize, usize, usize) {
        let letterbox = Letterbox::around(Size { width, height });
        (letterbox.canvas.width, letterbox.window.left, letterbox.window.top)
    }

    #[test]
    fn case_61_frames_are_padded_not_stretched() {
        assert_eq!(left_top(640, 480), (640, 0, 80));
        assert_eq!(left_top(480, 640), (640, 80, 0));
        assert_eq!(left_top(256, 256), (256, 0, 0));
    }

    #[test]
    fn odd_remainder_goes_to_the_far_side() {
        assert_eq!(left_top(97, 131), (131, 17, 0));
        assert_eq!(left_top(333, 218), (333, 0, 57));
    }
}
