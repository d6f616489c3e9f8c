//! Read the fields of a JSON object and say which of them is wrong.

use std::{cell::Cell, iter};

use serde::de::{DeserializeOwned, value::MapDeserializer};
use serde_json::{Map, Value};

/// Read `fields` as `T`.
///
/// # Errors
/// The text names the field that is absent or wrong. (`serde_json` itself names only absent ones.)
pub(super) fn read_fields<T: DeserializeOwned>(fields: &Map<String, Value>) -> Result<T, String> {
    let reading = Cell::new(None);
    let entries = fields
        .iter()
        .inspect(|(key, _)| reading.set(Some(key.as_str())))
        .map(|(key, value)| (key.as_str(), value))
        .chain(iter::from_fn(|| {
            reading.set(None);
            None
        }));
    T::deserialize(MapDeserializer::new(entries)).map_err(|error: serde_json::Error| match reading.get() {
        Some(field) => format!("field `{}`: {error}", field.chars().take(80).collect::<String>()),
        None => error.to_string(),
    })
}
