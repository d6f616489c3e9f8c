//! Rojo's protocol 5 on hyper.
