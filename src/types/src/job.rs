//! Processing states of a job and the legal transitions between them.

/// The status of a job as shown to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobStatus {
    /// Accepted durably and waiting for a worker.
    Queued,
    /// Claimed by a worker.
    InProgress,
    /// Processed and searchable through every read path.
    Success,
    /// Ended with an error; an older version of the source, if any, stays searchable.
    Errored,
}

words!(JobStatus {
    Queued = "queued",
    InProgress = "in_progress",
    Success = "success",
    Errored = "errored",
});

impl JobStatus {
    /// Whether the job has ended, successfully or not.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Success | Self::Errored)
    }
}

/// Processing stage of a claimed job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Checking the stored bytes.
    Validating,
    /// Extracting the text.
    Parsing,
    /// Splitting the text into chunks.
    Chunking,
    /// Computing vectors.
    Embedding,
    /// Extracting entities and triplets.
    Graph,
    /// Building and publishing the segment.
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

/// Progress of a claimed job, kept in memory only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The current stage.
    pub stage: Stage,
    /// Chunks embedded so far.
    pub chunks_done: u32,
    /// Total number of chunks; 0 until known.
    pub chunks: u32,
}

impl Progress {
    /// Fraction of chunks embedded; `None` until the total is known.
    pub fn share(&self) -> Option<f64> {
        (self.chunks > 0).then(|| f64::from(self.chunks_done) / f64::from(self.chunks))
    }
}

/// Error code of a document that could not be processed. The words are part of the stable API
/// (docs/api.md, "Upload").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobErrorCode {
    /// The file needs a password.
    EncryptedFile,
    /// The file is damaged.
    CorruptFile,
    /// The document exceeds a limit: its text, its parts, or the memory needed to read it.
    TooLarge,
    /// The document contains no text.
    NoText,
    /// The web page could not be fetched.
    FetchFailed,
    /// Fetching the web page is not allowed.
    UrlBlocked,
    /// The model could not embed the text.
    EmbeddingFailed,
    /// Processing exceeded its time limit.
    Timeout,
    /// The document does not fit within the tenant's limits.
    TenantLimit,
    /// An internal error of the server.
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

/// The durable state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobState {
    /// The status shown to clients.
    pub status: JobStatus,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Server restarts while the job was in progress.
    pub interruptions: u32,
}

/// An event in the life of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEvent {
    /// A worker took the job.
    Claimed,
    /// The job's rows became visible.
    Published,
    /// The document itself is at fault, so a retry cannot help.
    Rejected,
    /// Any other error; a retry may help.
    Failed,
    /// The server found the job in progress when it started.
    Interrupted,
    /// The worker returned the job unprocessed (shutdown, disk full).
    Released,
    /// A client asked to retry a failed job.
    Retried,
}

impl JobState {
    /// The state of a new job.
    pub const QUEUED: Self = Self { status: JobStatus::Queued, attempts: 0, interruptions: 0 };

    /// Returns the state after `event`, or `None` if the transition is illegal.
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
