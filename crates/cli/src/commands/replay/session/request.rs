//! Requests of a session.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::Context;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use tracesmith_replay::debug::{DiffLimits, Moment, Number};

use crate::args::ToleranceArg;

/// Elements and ranges of a difference that are listed, unless a request says otherwise.
const LISTED: usize = 64;

/// The most that a request may list.
const MOST_LISTED: usize = 4096;

/// A line of input.
pub(super) struct Sent {
    /// Null if the line has none.
    pub(super) id: Value,
    /// The position to go to first, if the line has one, and the rest of the request.
    pub(super) request: anyhow::Result<(Option<usize>, Request)>,
}

/// What can be requested.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    Calls {
        #[serde(default)]
        from: u64,
        limit: Option<usize>,
    },
    Position {},
    Go {
        before: Option<u64>,
        after: Option<u64>,
        to: Option<Edge>,
    },
    Next {
        count: Option<usize>,
    },
    Back {
        count: Option<usize>,
    },
    Buffers {
        call: Option<u64>,
    },
    Read {
        address: Address,
        bytes: u64,
        at: Option<At>,
        #[serde(flatten)]
        rows: Rows,
    },
    Stats {
        address: Address,
        bytes: Option<u64>,
        at: Option<At>,
        #[serde(rename = "type")]
        number: Type,
        bins: Option<usize>,
    },
    Grid {
        address: Address,
        bytes: Option<u64>,
        at: Option<At>,
        #[serde(rename = "type")]
        number: Type,
        rows: u64,
        columns: u64,
        most_rows: Option<u64>,
        most_columns: Option<u64>,
    },
    Changes {
        call: Option<u64>,
        #[serde(flatten)]
        how: How,
    },
    Diff {
        address: Address,
        bytes: Option<u64>,
        from: At,
        to: At,
        #[serde(flatten)]
        how: How,
    },
    Compare {
        #[serde(flatten)]
        how: How,
    },
    Check {
        runs: Option<u32>,
    },
    Replace {
        kernel: Option<String>,
        call: Option<u64>,
        file: PathBuf,
        symbol: Option<String>,
        #[serde(default)]
        tolerance: Vec<ToleranceText>,
        repeat: Option<u32>,
    },
    Restore {},
    Quit {},
}

/// The first or the last position.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Edge {
    Begin,
    End,
}

/// Several ranges of the same size, such as a part of each row of a matrix.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Rows {
    #[serde(default = "one")]
    pub(super) rows: u64,
    /// The distance of two rows in bytes.
    #[serde(default)]
    pub(super) pitch: u64,
}

fn one() -> u64 {
    1
}

/// How differences are listed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct How {
    #[serde(rename = "type")]
    number: Option<Type>,
    ranges: Option<usize>,
    elements: Option<usize>,
}

impl How {
    pub(super) fn number(&self) -> Number {
        self.number.map_or(Number::U8, |Type(number)| number)
    }

    pub(super) fn limits(&self) -> DiffLimits {
        let limit = |chosen: Option<usize>| chosen.unwrap_or(LISTED).min(MOST_LISTED);
        DiffLimits {
            ranges: limit(self.ranges),
            elements: limit(self.elements),
        }
    }
}

/// An address: a number, or a text such as `"0x7f0000000000"`. Numbers of JavaScript are too short for some.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address(pub(super) u64);

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parse;
        impl Visitor<'_> for Parse {
            type Value = Address;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address such as \"0x7f0000000000\"")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Address, E> {
                Ok(Address(number))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Address, E> {
                let parsed = match text.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16).ok(),
                    None => text.parse().ok(),
                };
                parsed.map(Address).ok_or_else(|| {
                    let unexpected = de::Unexpected::Str(text);
                    E::invalid_value(unexpected, &self)
                })
            }
        }
        deserializer.deserialize_any(Parse)
    }
}

impl Address {
    /// A range of this many bytes.
    pub(super) fn range(self, bytes: u64) -> anyhow::Result<Range<u64>> {
        let end = self.0.checked_add(bytes);
        let end = end.ok_or_else(|| anyhow::anyhow!("{:#x} + {bytes} is no address", self.0))?;
        Ok(self.0..end)
    }
}

/// A moment, by its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct At(pub(super) Moment);

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let moment = Moment::from_name(&name);
        moment
            .map(At)
            .ok_or_else(|| de::Error::unknown_variant(&name, &["now", "before", "begin", "end"]))
    }
}

/// An element type, by its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type(pub(super) Number);

impl<'de> Deserialize<'de> for Type {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const NAMES: &[&str] = &[
            "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64",
        ];
        let name = String::deserialize(deserializer)?;
        let number = Number::from_name(&name);
        number
            .map(Type)
            .ok_or_else(|| de::Error::unknown_variant(&name, NAMES))
    }
}

/// A tolerance, as `--tolerance` takes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToleranceText(pub(super) ToleranceArg);

impl<'de> Deserialize<'de> for ToleranceText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(ToleranceText).map_err(de::Error::custom)
    }
}

/// Takes a line apart. Its ID is found even if the rest is wrong.
pub(super) fn parse(line: &[u8]) -> Sent {
    let mut fields: Map<String, Value> = match serde_json::from_slice(line) {
        Ok(fields) => fields,
        Err(error) => {
            return Sent {
                id: Value::Null,
                request: Err(anyhow::anyhow!("the line is not a JSON object: {error}")),
            };
        }
    };
    let id = fields.remove("id").unwrap_or_default();
    Sent {
        id,
        request: request(fields),
    }
}

fn request(mut fields: Map<String, Value>) -> anyhow::Result<(Option<usize>, Request)> {
    anyhow::ensure!(fields.contains_key("do"), "the request has no field \"do\"");
    let place = fields.remove("place").unwrap_or_default();
    let place = serde_json::from_value(place).context("`place`")?;
    Ok((place, serde_json::from_value(Value::Object(fields))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> (Value, String) {
        let Sent { id, request } = parse(line.as_bytes());
        (id, format!("{:#}", request.unwrap_err()))
    }

    #[test]
    fn what_is_wrong_is_named_and_the_id_is_kept() {
        for (line, id, words) in [
            ("", Value::Null, "not a JSON object"),
            ("[1]", Value::Null, "not a JSON object"),
            ("{\"id\":7}", 7.into(), "no field \"do\""),
            (
                r#"{"id":"a","do":"fly"}"#,
                "a".into(),
                "unknown variant `fly`, expected one of `calls`",
            ),
            (
                r#"{"id":1,"do":"next","steps":2}"#,
                1.into(),
                "unknown field `steps`",
            ),
            (r#"{"id":1,"do":"next","count":-1}"#, 1.into(), "invalid value"),
            (
                r#"{"id":1,"do":"read","bytes":4}"#,
                1.into(),
                "missing field `address`",
            ),
            (
                r#"{"id":1,"do":"read","address":"x","bytes":4}"#,
                1.into(),
                "an address such as",
            ),
            (
                r#"{"id":1,"do":"stats","address":1,"type":"f8"}"#,
                1.into(),
                "unknown variant `f8`",
            ),
            (
                r#"{"id":1,"do":"diff","address":1,"from":"now","to":"then"}"#,
                1.into(),
                "`then`",
            ),
            (
                r#"{"id":1,"do":"position","place":-1}"#,
                1.into(),
                "`place`: invalid value",
            ),
            (
                r#"{"id":1,"do":"compare","typ":"f32"}"#,
                1.into(),
                "unknown field `typ`",
            ),
        ] {
            let (found, text) = error(line);
            assert_eq!(found, id, "{line}");
            assert!(text.contains(words), "{line}: {text}");
        }
    }

    #[test]
    fn addresses_are_numbers_or_texts() {
        for (text, expected) in [("16", 16), ("\"0x10\"", 16), ("\"16\"", 16)] {
            let line = format!("{{\"do\":\"read\",\"address\":{text},\"bytes\":4}}");
            let Ok((None, Request::Read { address, .. })) = parse(line.as_bytes()).request else {
                panic!("{line}");
            };
            assert_eq!(address.0, expected);
        }
        assert!(Address(u64::MAX).range(1).is_err());
    }
}
