//! The serve session.
