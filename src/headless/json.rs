//! JSON with the quirks of `HttpService`, and values as JSON for the host.

use super::{errors::raise, instance::as_instance, values::as_number, world::World};
use mlua::prelude::*;
use serde_json::Value;
use std::ffi::c_void;

/// Deeper tables are taken for cyclic ones.
const DEPTH_LIMIT: usize = 200;

/// `HttpService:JSONEncode`: an empty table is `[]`, a table with a first element is an
/// array and loses its string keys, numbers that JSON cannot hold are written bare, and
/// a string that is not UTF-8 throws. What JSON has no form for becomes `null`.
pub(super) fn encode(value: &LuaValue) -> LuaResult<String> {
    let mut out = String::new();
    write_value(&mut out, value, 0)?;
    Ok(out)
}

fn write_value(out: &mut String, value: &LuaValue, depth: usize) -> LuaResult<()> {
    if depth > DEPTH_LIMIT {
        return raise("tables cannot be cyclic");
    }
    match value {
        LuaValue::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        LuaValue::Integer(_) | LuaValue::Number(_) => write_number(out, as_number(value).unwrap_or_default()),
        LuaValue::String(text) => match text.to_str() {
            Ok(text) => write_string(out, &text),
            Err(_) => return raise("Can't convert to JSON"),
        },
        LuaValue::Table(table) if table.raw_len() > 0 || table.is_empty() => write_array(out, table, depth)?,
        LuaValue::Table(table) => write_object(out, table, depth)?,
        _ => out.push_str("null"),
    }
    Ok(())
}

fn write_number(out: &mut String, number: f64) {
    let text = if number.is_nan() {
        "nan".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "inf".to_owned() } else { "-inf".to_owned() }
    } else {
        json_number(number).to_string()
    };
    out.push_str(&text);
}

fn write_string(out: &mut String, text: &str) {
    out.push_str(&Value::from(text).to_string());
}

fn write_array(out: &mut String, table: &LuaTable, depth: usize) -> LuaResult<()> {
    out.push('[');
    for index in 1..=table.raw_len() {
        if index > 1 {
            out.push(',');
        }
        write_value(out, &table.raw_get(index)?, depth + 1)?;
    }
    out.push(']');
    Ok(())
}

fn write_object(out: &mut String, table: &LuaTable, depth: usize) -> LuaResult<()> {
    out.push('{');
    let mut first = true;
    for pair in table.pairs::<LuaValue, LuaValue>() {
        let (key, value) = pair?;
        let key = match &key {
            LuaValue::String(text) => match text.to_str() {
                Ok(text) => text.to_owned(),
                Err(_) => return raise("Can't convert to JSON"),
            },
            other => match as_number(other) {
                Some(number) => json_number(number).to_string(),
                None => continue,
            },
        };
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        write_string(out, &key);
        out.push(':');
        write_value(out, &value, depth + 1)?;
    }
    out.push('}');
    Ok(())
}

/// Whole numbers are written without a fraction, as Luau does.
fn json_number(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within the exact range")]
        let whole = number as i64;
        return whole.into();
    }
    serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)
}

/// `HttpService:JSONDecode`.
pub(super) fn decode(lua: &Lua, text: &[u8]) -> LuaResult<LuaValue> {
    match serde_json::from_slice::<Value>(text) {
        Ok(value) => to_lua(lua, &value),
        Err(_) => raise("Can't parse JSON"),
    }
}

pub(super) fn to_lua(lua: &Lua, value: &Value) -> LuaResult<LuaValue> {
    Ok(match value {
        Value::Null => LuaValue::Nil,
        Value::Bool(value) => LuaValue::Boolean(*value),
        Value::Number(number) => LuaValue::Number(number.as_f64().unwrap_or_default()),
        Value::String(text) => text.as_str().into_lua(lua)?,
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in items.iter().enumerate() {
                table.raw_set(index + 1, to_lua(lua, item)?)?;
            }
            LuaValue::Table(table)
        }
        Value::Object(fields) => {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (name, field) in fields {
                table.raw_set(name.as_str(), to_lua(lua, field)?)?;
            }
            LuaValue::Table(table)
        }
    })
}

/// Any value as JSON for the caller of `HeadlessStudio::run`; unlike `encode` it never
/// fails: an instance is its full name, other values are what `tostring` gives.
pub(super) fn describe(world: &World, value: &LuaValue) -> Value {
    Describer { world, path: Vec::new(), left: VALUE_LIMIT }.value(value)
}

/// How many values `describe` follows before it says `<too many values>`.
const VALUE_LIMIT: usize = 1_000_000;

struct Describer<'a> {
    world: &'a World,
    /// The tables the walk is inside of.
    path: Vec<*const c_void>,
    left: usize,
}

impl Describer<'_> {
    fn value(&mut self, value: &LuaValue) -> Value {
        if self.left == 0 {
            return Value::from("<too many values>");
        }
        self.left -= 1;
        if let Some(this) = as_instance(value) {
            return Value::from(self.world.full_name(this));
        }
        match value {
            LuaValue::Nil => Value::Null,
            LuaValue::Boolean(value) => Value::from(*value),
            LuaValue::String(text) => Value::from(text.to_string_lossy()),
            LuaValue::Table(table) => self.table(table),
            LuaValue::Buffer(buffer) => Value::from(buffer.to_vec()),
            other => match as_number(other) {
                Some(number) => json_number(number),
                None => Value::from(other.to_string().unwrap_or_else(|_| other.type_name().to_owned())),
            },
        }
    }

    fn table(&mut self, table: &LuaTable) -> Value {
        if self.path.contains(&table.to_pointer()) || self.path.len() > DEPTH_LIMIT {
            return Value::from("<cyclic>");
        }
        self.path.push(table.to_pointer());
        let pairs: Vec<(LuaValue, LuaValue)> = table.pairs().filter_map(Result::ok).collect();
        let described = if pairs.len() == table.raw_len() {
            let items = (1..=table.raw_len()).filter_map(|index| table.raw_get::<LuaValue>(index).ok());
            items.map(|item| self.value(&item)).collect()
        } else {
            Value::Object(pairs.iter().map(|(key, value)| (self.key(key), self.value(value))).collect())
        };
        self.path.pop();
        described
    }

    fn key(&mut self, key: &LuaValue) -> String {
        match self.value(key) {
            Value::String(name) => name,
            other => other.to_string(),
        }
    }
}
