//! The lean form of a JSON result: what a reader with little room needs, such as a language model or a log.

use serde_json::Value;

/// Lists within list entries that are kept: without them an entry states nothing.
const KEPT: [&str; 1] = ["causes"];

/// A list of numbers that is no longer than this is a pair, such as a start and an end.
const PAIR: usize = 2;

/// The result without long lists. Lists of objects have at most `limit` entries, and an entry has no lists of its own.
pub(super) fn lean(value: Value, limit: usize) -> Value {
    strip(value, limit, Depth::Outside)
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Outside,
    InEntry,
}

fn strip(value: Value, limit: usize, depth: Depth) -> Value {
    match value {
        Value::Object(members) => {
            let is_kept = |key: &str, value: &Value| {
                depth == Depth::Outside || KEPT.contains(&key) || !is_long_list(value)
            };
            let members = members.into_iter().filter(|(key, value)| is_kept(key, value));
            members
                .map(|(key, value)| (key, strip(value, limit, depth)))
                .collect()
        }
        Value::Array(list) if list.iter().any(Value::is_object) => {
            let entries = list.into_iter().take(limit);
            entries.map(|entry| strip(entry, limit, Depth::InEntry)).collect()
        }
        other => other,
    }
}

fn is_long_list(value: &Value) -> bool {
    let list = value.as_array();
    list.is_some_and(|list| {
        list.len() > PAIR || list.iter().any(|entry| entry.is_object() || entry.is_array())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_have_no_lists_and_lists_have_few_entries() {
        let value = json!({
            "span_ns": [1, 2],
            "idle": {"devices": [{"name": "GPU 0", "span_ns": [1, 2], "longest": [{"from_ns": 1}],
                                  "load": [1, 2, 3], "causes": [{"cause": "a", "rows": [{}]}, {"cause": "b"}]}]},
            "rows": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
        });
        let expected = json!({
            "span_ns": [1, 2],
            "idle": {"devices": [{"name": "GPU 0", "span_ns": [1, 2], "causes": [{"cause": "a"}, {"cause": "b"}]}]},
            "rows": [{"name": "a"}, {"name": "b"}],
        });
        assert_eq!(lean(value, 2), expected);
    }
}
