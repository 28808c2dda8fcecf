//! What all requests share.

use std::path::PathBuf;
use std::sync::Arc;

use crate::access::Hosts;
use crate::answers::Answers;
use crate::events::Hub;
use crate::folder::StartFolder;
use crate::key::Key;
use crate::library::Library;
use crate::options::Control;
use crate::predictions::Predictions;
use crate::replay::Replays;
use crate::tabs::Tabs;
use crate::work::Work;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Studio {
    pub(crate) key: Key,
    pub(crate) hosts: Hosts,
    pub(crate) control: Control,
    pub(crate) folder: StartFolder,
    pub(crate) library: Library,
    pub(crate) predictions: Predictions,
    pub(crate) hub: Hub,
    pub(crate) work: Work,
    pub(crate) answers: Answers,
    pub(crate) replays: Replays,
    pub(crate) tabs: Arc<Tabs>,
    /// Where pages are read from instead of from the program.
    pub(crate) pages: Option<PathBuf>,
}
