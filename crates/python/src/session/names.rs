//! Texts of a session. Each is kept once; rows have its number.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use tracesmith_format::StringId;

/// The texts of a session, numbered from 1 in the order in which they came.
#[derive(Default)]
pub(super) struct Names {
    known: RwLock<FxHashMap<Arc<str>, StringId>>,
    all: Mutex<Texts>,
}

#[derive(Default)]
struct Texts {
    texts: Vec<Arc<str>>,
    bytes: usize,
}

impl Names {
    /// The number of a text. `None` if the texts would take more memory than `limit` bytes.
    pub(super) fn intern(&self, text: &str, limit: usize) -> Option<StringId> {
        if text.is_empty() {
            return Some(StringId::NONE);
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known.get(text) {
            return Some(*id);
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known.get(text) {
            return Some(*id);
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.bytes + text.len() > limit {
            return None;
        }
        let text: Arc<str> = text.into();
        all.bytes += text.len();
        all.texts.push(Arc::clone(&text));
        let id = StringId(u32::try_from(all.texts.len()).ok()?);
        known.insert(text, id);
        Some(id)
    }

    /// The texts after the first `count`.
    pub(super) fn after(&self, count: usize) -> Vec<Arc<str>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.texts[count..].to_vec()
    }
}
