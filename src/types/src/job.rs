//! States of processing and the legal moves between them (API 4.10).

/// The state of one job, as the wire shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobStatus {
    /// Accepted and durable, waiting for a worker.
    Queued,
    /// Claimed by a worker.
    InProgress,
    /// Searchable in every way at once.
    Success,
    /// Ended with an error; an older version, if any, stays searchable.
    Errored,
}

words!(JobStatus {
    Queued = "queued",
    InProgress = "in_progress",
    Success = "success",
    Errored = "errored",
});

impl JobStatus {
    /// Whether the job has ended.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Success | Self::Errored)
    }
}

/// Stage of a claimed job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The stored bytes are checked.
    Validating,
    /// Text is extracted.
    Parsing,
    /// The text is cut.
    Chunking,
    /// Vectors are computed.
    Embedding,
    /// Entities and triplets are extracted.
    Graph,
    /// The segment is built and published.
    Indexing,
}

words!(Stage {
    Validating = "validating",
    Parsing = "parsing",
    Chunking = "chunking",
    Embedding = "embedding",
    Graph = "graph",
    Indexing = "indexing",
});

/// Progress of a claimed job. Kept in memory only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Its stage.
    pub stage: Stage,
    /// Chunks that have their vectors.
    pub chunks_done: u32,
    /// Chunks in all; 0 before they are counted.
    pub chunks: u32,
}

impl Progress {
    /// The share of the embedding that is done, once it is known.
    pub fn share(&self) -> Option<f64> {
        (self.chunks > 0).then(|| f64::from(self.chunks_done) / f64::from(self.chunks))
    }
}

/// Code of the error for which a document could not be processed. The words are stable (API 3.1
/// #3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobErrorCode {
    /// The file needs a password.
    EncryptedFile,
    /// The file is damaged.
    CorruptFile,
    /// The document is beyond a limit: its text, its parts, or the memory that reading it takes.
    TooLarge,
    /// There is no text in it.
    NoText,
    /// The page could not be fetched.
    FetchFailed,
    /// The page may not be fetched.
    UrlBlocked,
    /// The model could not embed it.
    EmbeddingFailed,
    /// It took too long.
    Timeout,
    /// The tenant has no room for it.
    TenantLimit,
    /// An error of the server.
    Internal,
}

words!(JobErrorCode {
    EncryptedFile = "ENCRYPTED_FILE",
    CorruptFile = "CORRUPT_FILE",
    TooLarge = "TOO_LARGE",
    NoText = "NO_TEXT",
    FetchFailed = "FETCH_FAILED",
    UrlBlocked = "URL_BLOCKED",
    EmbeddingFailed = "EMBEDDING_FAILED",
    Timeout = "TIMEOUT",
    TenantLimit = "TENANT_LIMIT",
    Internal = "INTERNAL",
});

/// Durable state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobState {
    /// The status shown to clients.
    pub status: JobStatus,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Restarts of the server while it was in progress.
    pub interruptions: u32,
}

/// Event in the life of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEvent {
    /// A worker takes it.
    Claimed,
    /// Its rows are visible.
    Published,
    /// The document is the cause: trying again cannot help.
    Rejected,
    /// Another error: trying again may help.
    Failed,
    /// The server started and found it in progress.
    Interrupted,
    /// The worker gave it back unprocessed (shutdown, disk full).
    Released,
    /// A client asks for another try of what has failed.
    Retried,
}

impl JobState {
    /// The state of a fresh job.
    pub const QUEUED: Self = Self { status: JobStatus::Queued, attempts: 0, interruptions: 0 };

    /// The state after `event`, or `None` where the move is not legal.
    pub fn after(self, event: JobEvent) -> Option<Self> {
        use crate::limits::{ATTEMPTS_MAX, INTERRUPTIONS_PER_ATTEMPT};
        let is_running = self.status == JobStatus::InProgress;
        let retry_or_end = |attempts| match attempts >= ATTEMPTS_MAX {
            true => JobStatus::Errored,
            false => JobStatus::Queued,
        };
        match event {
            JobEvent::Claimed if self.status == JobStatus::Queued => {
                Some(Self { status: JobStatus::InProgress, ..self })
            }
            JobEvent::Published if is_running => Some(Self { status: JobStatus::Success, ..self }),
            JobEvent::Rejected if is_running => {
                let attempts = self.attempts + 1;
                Some(Self { status: JobStatus::Errored, attempts, ..self })
            }
            JobEvent::Failed if is_running => {
                let attempts = self.attempts + 1;
                Some(Self { status: retry_or_end(attempts), attempts, ..self })
            }
            JobEvent::Interrupted if is_running => {
                let interruptions = self.interruptions + 1;
                let counts = interruptions.is_multiple_of(INTERRUPTIONS_PER_ATTEMPT);
                let attempts = self.attempts + u32::from(counts);
                Some(Self { status: retry_or_end(attempts), attempts, interruptions })
            }
            JobEvent::Released if is_running => Some(Self { status: JobStatus::Queued, ..self }),
            JobEvent::Retried if self.status == JobStatus::Errored => Some(Self::QUEUED),
            JobEvent::Claimed
            | JobEvent::Published
            | JobEvent::Rejected
            | JobEvent::Failed
            | JobEvent::Interrupted
            | JobEvent::Released
            | JobEvent::Retried => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [JobEvent; 7] = [
        JobEvent::Claimed,
        JobEvent::Published,
        JobEvent::Rejected,
        JobEvent::Failed,
        JobEvent::Interrupted,
        JobEvent::Released,
        JobEvent::Retried,
    ];

    #[test]
    fn only_the_moves_of_the_contract_are_legal() {
        use JobStatus::{Errored, InProgress, Queued, Success};
        let legal = [
            (Queued, InProgress),
            (InProgress, Success),
            (InProgress, Errored),
            (InProgress, Queued),
            (Errored, Queued),
        ];
        for from in [Queued, InProgress, Success, Errored] {
            for event in EVENTS {
                let state = JobState { status: from, attempts: 0, interruptions: 0 };
                if let Some(to) = state.after(event) {
                    assert!(legal.contains(&(from, to.status)), "{from:?} {event:?} {to:?}");
                }
                let is_retry = from == Errored && event == JobEvent::Retried;
                if from.is_settled() && !is_retry {
                    assert_eq!(state.after(event), None);
                }
            }
        }
    }

    #[test]
    fn no_job_runs_for_ever() {
        let claimed = |state: JobState| state.after(JobEvent::Claimed);
        for event in [JobEvent::Failed, JobEvent::Interrupted] {
            let mut state = JobState::QUEUED;
            let mut rounds = 0;
            while let Some(running) = claimed(state) {
                state = running.after(event).unwrap();
                rounds += 1;
                assert!(rounds <= 9);
            }
            assert_eq!(state.status, JobStatus::Errored);
        }
    }

    #[test]
    fn two_restarts_cost_nothing() {
        let mut state = JobState::QUEUED;
        for _ in 0..2 {
            state = state.after(JobEvent::Claimed).unwrap();
            state = state.after(JobEvent::Interrupted).unwrap();
        }
        assert_eq!((state.attempts, state.status), (0, JobStatus::Queued));
    }
}
