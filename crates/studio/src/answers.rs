//! Answers that take long: computed once for all who ask the same, and kept for those who ask again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tokio::sync::watch;
use tracesmith_trace::tables::Cancel;

use crate::payload::Payload;
use crate::reply::Failure;
use crate::work::{Length, Work};

/// Memory of all answers that are kept, unless a test has less.
const KEPT_BYTES: usize = 64 << 20;

/// The answers, by question.
#[derive(Clone, Debug)]
pub(crate) struct Answers(Arc<Mutex<Known>>);

#[derive(Debug)]
struct Known {
    /// Memory of all that is kept, at most.
    room: usize,
    entries: FxHashMap<String, Entry>,
    bytes: usize,
    /// Counts uses, so that the answer that was used least lately goes first.
    uses: u64,
}

#[derive(Debug)]
enum Entry {
    Running(Arc<Running>),
    Done { payload: Payload, last_use: u64 },
}

/// An answer that is being computed.
#[derive(Debug)]
struct Running {
    cancel: Cancel,
    waiting: AtomicUsize,
    result: watch::Receiver<Option<Result<Payload, Failure>>>,
}

/// Somebody who waits. When the last one goes, the work ends.
struct Waiter(Arc<Running>);

impl Waiter {
    fn of(running: &Arc<Running>) -> Self {
        running.waiting.fetch_add(1, Ordering::SeqCst);
        Waiter(Arc::clone(running))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if self.0.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.cancel.cancel();
        }
    }
}

impl Default for Answers {
    fn default() -> Self {
        Self::with_room(KEPT_BYTES)
    }
}

impl Answers {
    fn with_room(room: usize) -> Self {
        Answers(Arc::new(Mutex::new(Known {
            room,
            entries: FxHashMap::default(),
            bytes: 0,
            uses: 0,
        })))
    }

    /// The answer to a question: a kept one, that of somebody who asked the same before, or a new one.
    pub(crate) async fn get(
        &self,
        work: &Work,
        question: String,
        compute: impl FnOnce(&Cancel) -> Result<Payload, Failure> + Send + 'static,
    ) -> Result<Payload, Failure> {
        let waiter = match self.find(&question) {
            Found::Done(payload) => return Ok(payload),
            Found::Running(waiter) => waiter,
            Found::Nothing(waiter, job) => {
                tokio::spawn(job.run(self.clone(), work.clone(), question, compute));
                waiter
            }
        };
        let mut result = waiter.0.result.clone();
        let ended = result.wait_for(Option::is_some).await;
        let result = ended.ok().and_then(|result| result.clone());
        result.unwrap_or_else(|| Err(Failure::bug()))
    }

    fn find(&self, question: &str) -> Found {
        let mut known = self.lock();
        known.uses += 1;
        let uses = known.uses;
        match known.entries.get_mut(question) {
            Some(Entry::Done { payload, last_use }) => {
                *last_use = uses;
                Found::Done(payload.clone())
            }
            // Work that was ended gives no answer.
            Some(Entry::Running(running)) if !running.cancel.is_cancelled() => {
                Found::Running(Waiter::of(running))
            }
            _ => {
                let (sender, result) = watch::channel(None);
                let running = Arc::new(Running {
                    cancel: Cancel::default(),
                    waiting: AtomicUsize::new(0),
                    result,
                });
                let entry = Entry::Running(Arc::clone(&running));
                known.entries.insert(question.to_owned(), entry);
                let waiter = Waiter::of(&running);
                Found::Nothing(waiter, Job { running, sender })
            }
        }
    }

    /// Keeps an answer, or forgets the question.
    fn settle(&self, question: &str, running: &Arc<Running>, result: &Result<Payload, Failure>) {
        let mut known = self.lock();
        let is_ours =
            matches!(known.entries.get(question), Some(Entry::Running(other)) if Arc::ptr_eq(other, running));
        if is_ours {
            known.entries.remove(question);
        }
        let Ok(payload) = result else { return };
        if !is_ours || payload.memory_bytes() > known.room {
            return;
        }
        known.uses += 1;
        known.bytes += payload.memory_bytes();
        let last_use = known.uses;
        let payload = payload.clone();
        known
            .entries
            .insert(question.to_owned(), Entry::Done { payload, last_use });
        known.shrink();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn shrink(&mut self) {
        while self.bytes > self.room {
            let done = self.entries.iter().filter_map(|(question, entry)| match entry {
                Entry::Done { payload, last_use } => Some((*last_use, question, payload.memory_bytes())),
                Entry::Running(_) => None,
            });
            let Some((_, question, bytes)) = done.min() else {
                return;
            };
            let question = question.clone();
            self.entries.remove(&question);
            self.bytes -= bytes;
        }
    }
}

enum Found {
    Done(Payload),
    Running(Waiter),
    Nothing(Waiter, Job),
}

/// What has to be computed.
struct Job {
    running: Arc<Running>,
    sender: watch::Sender<Option<Result<Payload, Failure>>>,
}

impl Job {
    /// Goes on when the one who asked first goes away: others may wait, too.
    async fn run(
        self,
        answers: Answers,
        work: Work,
        question: String,
        compute: impl FnOnce(&Cancel) -> Result<Payload, Failure> + Send + 'static,
    ) {
        let cancel = self.running.cancel.clone();
        let result = work.run_until(Length::Long, cancel, compute).await;
        answers.settle(&question, &self.running, &result);
        // Nobody may wait any longer.
        let _ = self.sender.send(Some(result));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .unwrap()
    }

    fn text(answer: &Payload) -> usize {
        answer.memory_bytes()
    }

    #[test]
    fn a_question_is_computed_once_for_all_who_ask() {
        let (answers, work) = (Answers::default(), Work::new());
        let count = Arc::new(AtomicUsize::new(0));
        runtime().block_on(async {
            let ask = |name: &str| {
                let count = Arc::clone(&count);
                answers.get(&work, name.to_owned(), move |_| {
                    count.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(30));
                    Ok(Payload::json_text(vec![b'1'; 10]))
                })
            };
            let (one, same, other) = tokio::join!(ask("a"), ask("a"), ask("b"));
            assert_eq!([one, same, other].map(|answer| text(&answer.unwrap())), [10; 3]);
            ask("a").await.unwrap();
        });
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn work_ends_when_the_last_one_who_waits_goes() {
        let (answers, work) = (Answers::default(), Work::new());
        let (sender, ended) = mpsc::channel();
        runtime().block_on(async {
            let job = move |cancel: &Cancel| {
                while !cancel.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                sender.send(()).unwrap();
                Err(Failure::cancelled())
            };
            let asked = answers.get(&work, "endless".to_owned(), job);
            let impatient = tokio::time::timeout(Duration::from_millis(50), asked);
            assert!(impatient.await.is_err());
            ended.recv_timeout(Duration::from_secs(5)).unwrap();
            // The question can be asked again.
            let again = answers.get(&work, "endless".to_owned(), |_| {
                Ok(Payload::json_text(vec![b'2']))
            });
            assert_eq!(text(&again.await.unwrap()), 1);
        });
    }

    #[test]
    fn errors_are_not_kept_and_old_answers_go() {
        let (answers, work) = (Answers::with_room(2_500), Work::new());
        runtime().block_on(async {
            let failed = answers.get(&work, "a".to_owned(), |_| Err(Failure::bad("no")));
            assert_eq!(failed.await.unwrap_err().error(), "no");
            let ask = |name: &str, bytes: usize| {
                let answer = answers.get(&work, name.to_owned(), move |_| {
                    Ok(Payload::binary(vec![b'x'; bytes]))
                });
                async { answer.await.unwrap() }
            };
            for name in ["a", "b", "a", "c"] {
                ask(name, 1_000).await;
            }
            ask("too large", 3_000).await;
            let known = answers.lock();
            let mut kept: Vec<&str> = known.entries.keys().map(String::as_str).collect();
            kept.sort_unstable();
            assert_eq!(
                (kept, known.bytes),
                (vec!["a", "c"], 2_000),
                "b was used least lately"
            );
        });
    }
}
