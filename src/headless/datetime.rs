//! The datatype `DateTime`: a moment in milliseconds since 1970. The simulated Studio stands in
//! UTC, so local time is universal time.

use super::errors::raise;
use mlua::prelude::*;

const MILLIS_PER_DAY: i64 = 86_400_000;
/// The years 1400 to 9999 (creator documentation).
const RANGE: std::ops::RangeInclusive<i64> = -17_987_443_200_000..=253_402_300_799_999;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// What the composite tokens mean for `en-us` (creator documentation).
const COMPOSITES: [(&str, &str); 10] = [
    ("LLLL", "dddd, MMMM D, YYYY h:mm A"),
    ("llll", "ddd, MMM D, YYYY h:mm A"),
    ("LLL", "MMMM D, YYYY h:mm A"),
    ("lll", "MMM D, YYYY h:mm A"),
    ("LTS", "h:mm:ss A"),
    ("LT", "h:mm A"),
    ("LL", "MMMM D, YYYY"),
    ("ll", "MMM D, YYYY"),
    ("L", "MM/DD/YYYY"),
    ("l", "M/D/YYYY"),
];
/// Longer ones first, because they begin with shorter ones.
const TOKENS: [&str; 27] = [
    "YYYY", "YY", "MMMM", "MMM", "MM", "M", "DDDD", "DDD", "DD", "D", "dddd", "ddd", "dd", "d", "HH", "H", "hh", "h",
    "mm", "m", "ss", "s", "SSS", "SS", "S", "A", "a",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DateTime {
    millis: i64,
}

/// The parts of a moment, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    millisecond: i64,
    weekday: i64,
    day_of_year: i64,
}

/// Days since 1970 of a date of the Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March, so that a leap day is the last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of days since 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

impl DateTime {
    fn new(millis: f64) -> LuaResult<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "saturates, and the range is checked")]
        let millis = millis.floor() as i64;
        if RANGE.contains(&millis) { Ok(Self { millis }) } else { raise("DateTime: the time is out of range") }
    }

    /// From year, month, day, hour, minute, second and millisecond; what is missing is the lowest.
    fn from_parts(given: &[Option<f64>; 7]) -> LuaResult<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "saturates, and the range is checked")]
        let part = |index: usize, lowest: i64| given[index].map_or(lowest, |value| value.floor() as i64);
        let (year, month, day) = (part(0, 1970), part(1, 1), part(2, 1));
        let valid = (1..=12).contains(&month) && date_of(days_of(year, month, day)) == (year, month, day);
        if !valid {
            return raise("DateTime: the date is invalid");
        }
        let seconds = (part(3, 0) * 60 + part(4, 0)) * 60 + part(5, 0);
        #[expect(clippy::cast_precision_loss, reason = "the range is checked")]
        Self::new((days_of(year, month, day) * MILLIS_PER_DAY + seconds * 1000 + part(6, 0)) as f64)
    }

    fn from_iso(text: &str) -> Option<Self> {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
        let mut given = [None; 7];
        let fields = date.split('-').chain(time.split(':'));
        for (index, field) in fields.enumerate() {
            *given.get_mut(index).filter(|_| index < 6)? = Some(f64::from(field.parse::<u32>().ok()?));
        }
        given[5]?;
        if !fraction.is_empty() {
            given[6] = Some(format!("0.{fraction}").parse::<f64>().ok()? * 1000.0);
        }
        Self::from_parts(&given).ok()
    }

    fn parts(self) -> Parts {
        let days = self.millis.div_euclid(MILLIS_PER_DAY);
        let rest = self.millis.rem_euclid(MILLIS_PER_DAY);
        let (year, month, day) = date_of(days);
        Parts {
            year,
            month,
            day,
            hour: rest / 3_600_000,
            minute: rest / 60_000 % 60,
            second: rest / 1000 % 60,
            millisecond: rest % 1000,
            weekday: (days + 4).rem_euclid(7),
            day_of_year: days - days_of(year, 1, 1) + 1,
        }
    }

    fn iso(self) -> String {
        self.format("YYYY-MM-DDTHH:mm:ssZ")
    }

    fn format(self, pattern: &str) -> String {
        let mut pattern = pattern.to_owned();
        if let Some((_, meaning)) = COMPOSITES.iter().find(|(token, _)| *token == pattern) {
            (*meaning).clone_into(&mut pattern);
        }
        let (parts, mut text, mut rest) = (self.parts(), String::new(), pattern.as_str());
        while let Some(first) = rest.chars().next() {
            let token = TOKENS.iter().find_map(|token| Some((*token, rest.strip_prefix(token)?)));
            if let Some((token, behind)) = token {
                text.push_str(&parts.token(token));
                rest = behind;
            } else {
                text.push(first);
                rest = rest.strip_prefix(first).unwrap_or_default();
            }
        }
        text
    }
}

fn named(names: &[&str], index: i64, length: usize) -> String {
    let name = usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or_default();
    name.chars().take(length).collect()
}

impl Parts {
    fn token(&self, token: &str) -> String {
        let hour12 = (self.hour + 11) % 12 + 1;
        let half = if self.hour < 12 { "AM" } else { "PM" };
        match token {
            "YYYY" => format!("{:04}", self.year),
            "YY" => format!("{:02}", self.year % 100),
            "MMMM" => named(&MONTHS, self.month - 1, usize::MAX),
            "MMM" => named(&MONTHS, self.month - 1, 3),
            "MM" => format!("{:02}", self.month),
            "M" => self.month.to_string(),
            "DDDD" => format!("{:03}", self.day_of_year),
            "DDD" => self.day_of_year.to_string(),
            "DD" => format!("{:02}", self.day),
            "D" => self.day.to_string(),
            "dddd" => named(&DAYS, self.weekday, usize::MAX),
            "ddd" => named(&DAYS, self.weekday, 3),
            "dd" => named(&DAYS, self.weekday, 2),
            "d" => self.weekday.to_string(),
            "HH" => format!("{:02}", self.hour),
            "H" => self.hour.to_string(),
            "hh" => format!("{hour12:02}"),
            "h" => hour12.to_string(),
            "mm" => format!("{:02}", self.minute),
            "m" => self.minute.to_string(),
            "ss" => format!("{:02}", self.second),
            "s" => self.second.to_string(),
            "SSS" => format!("{:03}", self.millisecond),
            "SS" => format!("{:02}", self.millisecond / 10),
            "S" => (self.millisecond / 100).to_string(),
            "A" => half.to_owned(),
            _ => half.to_lowercase(),
        }
    }

    fn table(&self, lua: &Lua) -> LuaResult<LuaTable> {
        lua.create_table_from([
            ("Year", self.year),
            ("Month", self.month),
            ("Day", self.day),
            ("Hour", self.hour),
            ("Minute", self.minute),
            ("Second", self.second),
            ("Millisecond", self.millisecond),
        ])
    }
}

fn formatted(_: &Lua, time: &DateTime, (pattern, locale): (String, Option<String>)) -> LuaResult<String> {
    match locale.as_deref().map(str::to_lowercase).as_deref() {
        None | Some("en-us" | "en") => Ok(time.format(&pattern)),
        Some(other) => raise(format!("DateTime in the locale {other} is not simulated by the headless Studio")),
    }
}

impl LuaUserData for DateTime {
    fn add_fields<F: LuaUserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(LuaMetaMethod::Type, "DateTime");
        fields.add_field_method_get("UnixTimestamp", |_, time| Ok(time.millis.div_euclid(1000)));
        fields.add_field_method_get("UnixTimestampMillis", |_, time| Ok(time.millis));
    }

    fn add_methods<M: LuaUserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("ToIsoDate", |_, time, ()| Ok(time.iso()));
        methods.add_method("ToUniversalTime", |lua, time, ()| time.parts().table(lua));
        methods.add_method("ToLocalTime", |lua, time, ()| time.parts().table(lua));
        methods.add_method("FormatUniversalTime", formatted);
        methods.add_method("FormatLocalTime", formatted);
        methods.add_meta_method(LuaMetaMethod::ToString, |_, time, ()| Ok(time.millis.to_string()));
        methods.add_meta_method(LuaMetaMethod::Eq, |_, time, other: LuaUserDataRef<Self>| Ok(*time == *other));
        methods.add_meta_method(LuaMetaMethod::Index, |_, _, key: String| -> LuaResult<()> {
            raise(format!("{key} is not a valid member of DateTime"))
        });
    }
}

type Given = (Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>);

fn from_parts(_: &Lua, (year, month, day, hour, minute, second, millisecond): Given) -> LuaResult<DateTime> {
    DateTime::from_parts(&[year, month, day, hour, minute, second, millisecond])
}

/// Make the global `DateTime`; `now` is the prelude's, which knows the clock.
pub(super) fn register(lua: &Lua) -> LuaResult<()> {
    let table = lua.create_table()?;
    table.raw_set("fromUnixTimestamp", lua.create_function(|_, seconds: f64| DateTime::new(seconds * 1000.0))?)?;
    table.raw_set("fromUnixTimestampMillis", lua.create_function(|_, millis: f64| DateTime::new(millis))?)?;
    table.raw_set("fromUniversalTime", lua.create_function(from_parts)?)?;
    table.raw_set("fromLocalTime", lua.create_function(from_parts)?)?;
    table.raw_set("fromIsoDate", lua.create_function(|_, text: String| Ok(DateTime::from_iso(&text)))?)?;
    lua.globals().raw_set("DateTime", table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_there_and_back() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (19_782, (2024, 2, 29)),
            (-208_188, (1400, 1, 1)),
            (2_932_896, (9999, 12, 31)),
        ] {
            assert_eq!(date_of(days), date);
            assert_eq!(days_of(date.0, date.1, date.2), days);
        }
        for days in -208_188..40_000 {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), days);
        }
    }

    #[test]
    fn tokens_are_replaced_longest_first() {
        let time = DateTime::from_iso("1986-09-04T20:30:25.125Z").expect("a date");
        assert_eq!(time.format("LLLL"), "Thursday, September 4, 1986 8:30 PM");
        assert_eq!(time.format("lll"), "Sep 4, 1986 8:30 PM");
        assert_eq!(time.format("DDDD DDD dd HH:mm:ss.SSS a"), "247 247 Th 20:30:25.125 pm");
    }

    #[test]
    fn a_text_that_is_no_date_is_none() {
        for text in ["", "1970", "1970-01-01T00:00:00", "1970-13-01T00:00:00Z", "1970-01-01T00:00Z", "x-01-01T0:0:0Z"] {
            assert_eq!(DateTime::from_iso(text), None, "{text}");
        }
    }
}
