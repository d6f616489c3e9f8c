//! The simulated Studio.
