//! Notes about a trace, which are kept in a file next to it.

use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::Subject;
use crate::notes::{self, About, Document, Note, Saved};
use crate::options::Control;
use crate::payload::{Keep, Payload};
use crate::reply::{Failure, Named, Sent};
use crate::studio::Studio;
use crate::work::Length;

#[derive(Serialize)]
struct Answer {
    /// The file; `None` for a trace that is no file.
    path: Option<String>,
    /// Whether it can be written from here.
    can_save: bool,
    /// Tells this file from what is there later; `None` without a file.
    stamp: Option<String>,
    /// Whether the notes are about this recording.
    fits: bool,
    /// Why the file cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// All that a file with notes has, for one that a page makes.
    document: Document,
}

/// The notes next to a trace.
pub(super) async fn notes(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let control = studio.control;
    let answer = studio.work.run(Length::Quick, move |_| {
        let path = place(&subject);
        let (saved, problem) = match path.map(|path| notes::read(&notes::place(path))) {
            Some(Ok(saved)) => (saved, None),
            Some(Err(failure)) => (None, Some(failure.error().to_owned())),
            None => (None, None),
        };
        Payload::json(&Answer {
            path: path.map(|path| notes::place(path).display().to_string()),
            can_save: path.is_some() && problem.is_none() && control == Control::Allowed,
            problem,
            ..of_saved(&subject, saved)?
        })
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

#[derive(Deserialize)]
pub(super) struct Wanted {
    /// The stamp of the file that the page knows.
    base: Option<String>,
    notes: Vec<Note>,
}

/// Writes the notes to the file next to a trace.
pub(super) async fn save(
    State(studio): State<Arc<Studio>>,
    Named(id): Named<usize>,
    headers: HeaderMap,
    Sent(Wanted { base, notes }): Sent<Wanted>,
) -> Result<Response, Failure> {
    studio.may_write("write notes next to traces")?;
    let subject = Subject::of(&studio, id).await?;
    let known = Arc::clone(&studio);
    let answer = studio.work.run(Length::Quick, move |_| {
        let path = place(&subject)
            .ok_or_else(|| Failure::bad("this trace is not a file: there is no place next to it"))?;
        let document = Document::new(about(&subject), notes)?;
        let _one_by_one = known.library.saving();
        let saved = notes::write(path, &document, base.as_deref())?;
        Payload::json(&Answer {
            path: Some(notes::place(path).display().to_string()),
            can_save: true,
            ..of_saved(&subject, Some(saved))?
        })
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

/// The trace, if notes can lie next to it.
fn place(subject: &Subject) -> Option<&Path> {
    subject.opened.is_file().then_some(subject.opened.path.as_path())
}

fn about(subject: &Subject) -> About {
    About {
        trace: subject.opened.name(),
        origin_ns: subject.origin().to_string(),
    }
}

fn of_saved(subject: &Subject, saved: Option<Saved>) -> Result<Answer, Failure> {
    let about = about(subject);
    let (stamp, fits, document) = match saved {
        Some(Saved { document, stamp }) => {
            let fits = document.about.origin_ns == about.origin_ns;
            (Some(stamp), fits, document)
        }
        None => (None, true, Document::new(about, Vec::new())?),
    };
    Ok(Answer {
        path: None,
        can_save: false,
        stamp,
        fits,
        problem: None,
        document,
    })
}
