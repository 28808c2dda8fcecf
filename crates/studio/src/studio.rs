//! What all requests share.

use std::path::PathBuf;
use std::sync::Arc;

use axum::http::StatusCode;

use crate::access::Hosts;
use crate::answers::Answers;
use crate::events::Hub;
use crate::folder::StartFolder;
use crate::key::Key;
use crate::library::Library;
use crate::options::{Control, Recorder};
use crate::predictions::Predictions;
use crate::recorder::Recordings;
use crate::replay::Replays;
use crate::reply::Failure;
use crate::tabs::Tabs;
use crate::work::Work;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Studio {
    pub(crate) key: Key,
    pub(crate) hosts: Hosts,
    pub(crate) control: Control,
    pub(crate) folder: StartFolder,
    pub(crate) library: Arc<Library>,
    pub(crate) predictions: Predictions,
    pub(crate) hub: Hub,
    pub(crate) work: Work,
    pub(crate) answers: Answers,
    pub(crate) replays: Replays,
    pub(crate) tabs: Arc<Tabs>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) recordings: Arc<Recordings>,
    /// Where pages are read from instead of from the program.
    pub(crate) pages: Option<PathBuf>,
}

impl Studio {
    /// Fails unless pages may do more than look.
    pub(crate) fn may_write(&self, what: &str) -> Result<(), Failure> {
        match self.control {
            Control::Allowed => Ok(()),
            Control::Refused => Err(
                Failure::new(StatusCode::FORBIDDEN, "this server only reads").with_hint(format!(
                    "start 'tracesmith studio' with --control to let pages {what}"
                )),
            ),
        }
    }
}
