//! Our Studio plugin as a model file.
