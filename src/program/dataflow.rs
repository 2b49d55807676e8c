//! Which instructions depend on an input of the request.

use std::collections::HashMap;

use super::{BufferId, BufferSource, Input, Op, Program, StageKind, View, WeightId};

/// A product of rows with a weight matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    pub stage: StageKind,
    pub weight: WeightId,
    /// Whether the input that was asked about can change what is multiplied.
    pub depends: bool,
}

/// Every product of a program, in the order of its instructions, and whether it depends on `input`.
pub fn products(program: &Program, input: Input) -> Vec<Product> {
    let mut reached = Reached::by(program, input);
    let mut products = Vec::new();
    for stage in &program.stages {
        for op in &stage.ops {
            if let Op::Linear { x, weight, .. } | Op::LinearBuffer { x, weight, .. } = op {
                let depends = reached.any_of(*x);
                products.push(Product { stage: stage.kind, weight: *weight, depends });
            }
            reached.follow(op);
        }
    }
    products
}

/// The rectangles of buffers whose values depend on an input, at one point of a program.
struct Reached(HashMap<BufferId, Vec<View>>);

impl Reached {
    /// Before the first instruction.
    fn by(program: &Program, input: Input) -> Self {
        let buffers = program.buffers.iter().enumerate();
        let of_input = buffers.filter(|(_, spec)| spec.source == BufferSource::Input(input));
        let whole = |id| (id, vec![program.view(id)]);
        Self(of_input.map(|(place, _)| whole(BufferId(place))).collect())
    }

    fn any_of(&self, view: View) -> bool {
        let of_buffer = self.0.get(&view.buffer);
        of_buffer.is_some_and(|reached| reached.iter().any(|part| overlap(*part, view)))
    }

    fn follow(&mut self, op: &Op) {
        let depends = op.reads().into_iter().any(|view| self.any_of(view));
        let Some(out) = op.written() else { return };
        let overwrites = !op.keeps_old_values();
        let reached = self.0.entry(out.buffer).or_default();
        if depends || overwrites {
            *reached = reached.iter().flat_map(|part| outside(*part, out)).collect();
        }
        // What depended on the input before and is changed in place was not taken out above.
        if depends {
            reached.push(out);
        }
    }
}

fn overlap(a: View, b: View) -> bool {
    a.row < b.row + b.rows
        && b.row < a.row + a.rows
        && a.col < b.col + b.cols
        && b.col < a.col + a.cols
}

/// What of `part` lies above, below, left and right of `hole`.
fn outside(part: View, hole: View) -> Vec<View> {
    if !overlap(part, hole) {
        return vec![part];
    }
    let (row_end, col_end) = (part.row + part.rows, part.col + part.cols);
    let (first, last) = (part.row.max(hole.row), row_end.min(hole.row + hole.rows));
    let rectangle = |rows: (usize, usize), cols: (usize, usize)| View {
        buffer: part.buffer,
        row: rows.0,
        rows: rows.1.saturating_sub(rows.0),
        col: cols.0,
        cols: cols.1.saturating_sub(cols.0),
    };
    let all = [
        rectangle((part.row, first), (part.col, col_end)),
        rectangle((last, row_end), (part.col, col_end)),
        rectangle((first, last), (part.col, hole.col)),
        rectangle((first, last), (hole.col + hole.cols, col_end)),
    ];
    all.into_iter().filter(|view| view.rows > 0 && view.cols > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Version;
    use crate::program::{Activation, BufferSpec, Stage};

    fn view(row: usize, rows: usize, col: usize, cols: usize) -> View {
        View { buffer: BufferId(0), row, rows, col, cols }
    }

    /// A program of one stage over buffers of 4 x 4, the first of which is the noise.
    fn program(ops: Vec<Op>) -> Program {
        let buffer = |place: usize| BufferSpec {
            name: format!("buffer{place}"),
            rows: 4,
            cols: 4,
            source: match place {
                0 => BufferSource::Input(Input::Noise),
                _ => BufferSource::Scratch,
            },
        };
        Program {
            version: Version::N16,
            buffers: (0..4).map(buffer).collect(),
            indices: vec![],
            weights: vec![],
            stages: vec![Stage { kind: StageKind::Denoise, leading_tokens: None, ops }],
            exports: vec![],
        }
    }

    #[test]
    fn products_depend_on_what_reaches_them() {
        let whole = |place| View { buffer: BufferId(place), ..view(0, 4, 0, 4) };
        let linear = |x, out, weight| Op::Linear {
            x,
            weight: WeightId(weight),
            bias: None,
            activation: Activation::Identity,
            out,
        };
        let ops = vec![
            linear(whole(1), whole(2), 0),
            // The noise reaches the last rows, and so their products, but not those of the first ones.
            Op::Copy { x: whole(0).slice_rows(0, 2), out: whole(2).slice_rows(2, 2) },
            linear(whole(2).slice_rows(0, 2), whole(3).slice_rows(0, 2), 1),
            linear(whole(2), whole(3), 2),
            // What is added to stays what it was; what is written anew forgets.
            Op::Add { x: whole(1), out: whole(3) },
            linear(whole(3), whole(2), 3),
            Op::Copy { x: whole(1), out: whole(3) },
            linear(whole(3), whole(2), 4),
            // A bias of the product does not change what is multiplied, but what comes of it.
            Op::LinearBuffer {
                x: whole(1),
                weight: WeightId(5),
                bias: whole(0).slice_rows(0, 1),
                activation: Activation::Identity,
                out: whole(2),
            },
            linear(whole(2), whole(3), 6),
        ];
        let found: Vec<bool> =
            products(&program(ops), Input::Noise).iter().map(|product| product.depends).collect();
        assert_eq!(found, [false, false, true, true, false, false, true]);
    }

    /// Every value of an 8 x 8 buffer is in one rectangle, or in none, as the hole wants it.
    #[test]
    fn a_hole_takes_just_what_it_covers() {
        let part = view(2, 4, 1, 5);
        for hole in [
            view(0, 8, 0, 8),
            view(3, 1, 2, 2),
            view(0, 3, 0, 2),
            view(5, 3, 4, 4),
            view(6, 2, 0, 8),
            view(2, 4, 6, 1),
        ] {
            let rest = outside(part, hole);
            for (row, col) in (0..64).map(|place| (place / 8, place % 8)) {
                let value = view(row, 1, col, 1);
                let times = rest.iter().filter(|view| overlap(**view, value)).count();
                let expected = overlap(part, value) && !overlap(hole, value);
                assert_eq!(times, usize::from(expected), "({row}, {col}) of {hole:?}");
            }
        }
    }
}
