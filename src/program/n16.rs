//! GR00T N1.6 as an instruction list.
