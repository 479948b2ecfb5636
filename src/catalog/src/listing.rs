//! Jobs as shown by status requests and listings.

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use super::Catalog;
use super::error::Result;
use super::rows::{JOB_COLUMNS, STATE_COLUMNS, Statements, blob, read_job_row};
use crate::job::JobRow;
use lodestone_types::{CollectionId, JobStatus, Sequence, SourceId, SubTenantId, Timestamp};

const STATUSES: [JobStatus; 4] =
    [JobStatus::Queued, JobStatus::InProgress, JobStatus::Success, JobStatus::Errored];

/// Scope of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobScope {
    /// Every tenant.
    Everywhere,
    /// These collections, each optionally restricted to some sub-tenants.
    Within(Vec<(CollectionId, Option<Vec<SubTenantId>>)>),
}

/// Filter and page of a job listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFilter {
    /// The scope to list.
    pub scope: JobScope,
    /// Only jobs in this state.
    pub status: Option<JobStatus>,
    /// Maximum number of jobs.
    pub limit: usize,
    /// Only jobs accepted before this one: [`JobPage::next`] of the previous page.
    pub before: Option<Sequence>,
}

/// Numbers of jobs by state, regardless of the filter's state and page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Waiting jobs.
    pub queued: u64,
    /// Jobs in progress.
    pub in_progress: u64,
    /// Successful jobs that are still recorded.
    pub success: u64,
    /// Failed jobs that are still recorded.
    pub errored: u64,
}

/// One page of a listing, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<JobRow>,
    /// Counts for the whole scope.
    pub counts: JobCounts,
    /// Start of the next page; `None` on the last page.
    pub next: Option<Sequence>,
}

/// A source whose newest job is waiting, running or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSource {
    /// The source.
    pub source: SourceId,
    /// The state of that job.
    pub status: JobStatus,
    /// When it was accepted.
    pub uploaded_at: Timestamp,
}

impl Catalog {
    /// Returns the newest job of a source, in any state.
    pub fn latest(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        source: &SourceId,
    ) -> Result<Option<JobRow>> {
        let rest = "WHERE j.source = ?1 AND j.collection = ?2 AND j.sub_tenant = ?3
            AND t.deleting = 0 ORDER BY j.seq DESC LIMIT 1";
        let scope = params![source.as_str(), blob(collection), sub_tenant.as_str()];
        Ok(self.read(|connection| select(connection, rest, scope))?.pop().map(|r| self.staged(r)))
    }

    /// Lists the sources of a sub-tenant whose newest job has not succeeded; a listing of sources
    /// adds these to the visible ones.
    pub fn open_sources(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
    ) -> Result<Vec<OpenSource>> {
        let sql = "SELECT j.source, j.status, j.uploaded_at
            FROM jobs j JOIN tenants t ON t.collection = j.collection
            WHERE j.collection = ?1 AND j.sub_tenant = ?2 AND t.deleting = 0
              AND j.status IN ('queued', 'in_progress', 'errored')
              AND NOT EXISTS (SELECT 1 FROM jobs n
                WHERE n.source = j.source AND n.collection = j.collection
                  AND n.sub_tenant = j.sub_tenant AND n.seq > j.seq)";
        self.read_long(collection, |connection| {
            connection.all(sql, params![blob(collection), sub_tenant.as_str()], |cells| {
                let (source, status) = (cells.source()?, cells.word(JobStatus::from_word)?);
                Ok(OpenSource { source, status, uploaded_at: cells.time()? })
            })
        })
    }

    /// Lists one page of jobs, newest first, with the counts of the scope.
    pub fn list_jobs(&self, filter: &JobFilter) -> Result<JobPage> {
        let (mut jobs, counts) = self.read_scope(&filter.scope, |connection| {
            // One transaction, so that jobs and counts are consistent.
            let transaction = connection.unchecked_transaction()?;
            let jobs = page(&transaction, filter)?;
            Ok((jobs, count(&transaction, &filter.scope)?))
        })?;
        let has_more = jobs.len() > filter.limit;
        jobs.truncate(filter.limit);
        let next = jobs.last().filter(|_| has_more).map(|row| row.job.sequence);
        let jobs = jobs.into_iter().map(|row| self.staged(row)).collect();
        Ok(JobPage { jobs, counts, next })
    }

    /// Counts the jobs of a scope by state.
    pub fn job_counts(&self, scope: &JobScope) -> Result<JobCounts> {
        self.read_scope(scope, |connection| count(connection, scope))
    }

    /// Runs a read whose cost grows with the jobs and sub-tenants of the scope.
    fn read_scope<T>(
        &self,
        scope: &JobScope,
        body: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        match scope {
            JobScope::Within(places) if !places.is_empty() => self.read_long(places[0].0, body),
            JobScope::Within(_) | JobScope::Everywhere => self.read(body),
        }
    }

    pub(super) fn staged(&self, mut row: JobRow) -> JobRow {
        if row.status == JobStatus::InProgress {
            row.progress = self.inner.stages.get(row.job.sequence);
        }
        row
    }
}

pub(super) fn select(
    connection: &Connection,
    rest: &str,
    parameters: impl rusqlite::Params,
) -> Result<Vec<JobRow>> {
    let sql = format!(
        "SELECT {JOB_COLUMNS}, {STATE_COLUMNS}
         FROM jobs j JOIN tenants t ON t.collection = j.collection {rest}"
    );
    connection.all(&sql, parameters, read_job_row)
}

/// Reads one job more than fits on the page. Each (collection, state) is read along its index and
/// the parts are merged, so the cost of a page does not depend on the number of jobs, unless only
/// some sub-tenants are asked for.
fn page(connection: &Connection, filter: &JobFilter) -> Result<Vec<JobRow>> {
    let before = filter.before.map_or(i64::MAX, |sequence| sequence.0 as i64);
    let limit = filter.limit as i64 + 1;
    let mut found = Vec::new();
    let JobScope::Within(places) = &filter.scope else {
        let condition = match filter.status {
            None => "",
            Some(JobStatus::Queued) => "AND j.status = 'queued' AND j.status <> 'success'",
            Some(JobStatus::InProgress) => "AND j.status = 'in_progress' AND j.status <> 'success'",
            Some(JobStatus::Errored) => "AND j.status = 'errored' AND j.status <> 'success'",
            Some(JobStatus::Success) => "AND j.status = 'success'",
        };
        let rest =
            format!("WHERE j.seq < ?1 AND t.deleting = 0 {condition} ORDER BY j.seq DESC LIMIT ?2");
        return select(connection, &rest, params![before, limit]);
    };
    for (collection, sub_tenants) in places {
        for status in STATUSES.into_iter().filter(|s| filter.status.is_none_or(|only| only == *s)) {
            let mut values = vec![
                Value::Blob(blob(*collection).to_vec()),
                Value::Text(status.as_str().into()),
                Value::Integer(before),
                Value::Integer(limit),
            ];
            let names = among(sub_tenants.as_deref(), "j", &mut values);
            let rest = format!(
                "WHERE j.collection = ?1 AND j.status = ?2 AND j.seq < ?3 AND t.deleting = 0
                 {names} ORDER BY j.seq DESC LIMIT ?4"
            );
            found.extend(select(connection, &rest, params_from_iter(values))?);
        }
    }
    found.sort_by_key(|row| std::cmp::Reverse(row.job.sequence));
    found.truncate(limit as usize);
    Ok(found)
}

/// Builds the condition that a sub-tenant is one of `names`, and appends their values.
pub(super) fn among(names: Option<&[SubTenantId]>, table: &str, values: &mut Vec<Value>) -> String {
    let Some(names) = names else { return String::new() };
    let first = values.len() + 1;
    values.extend(names.iter().map(|name| Value::Text(name.as_str().into())));
    let places: Vec<String> = (first..=values.len()).map(|place| format!("?{place}")).collect();
    format!("AND {table}.sub_tenant IN ({})", places.join(", "))
}

fn count(connection: &Connection, scope: &JobScope) -> Result<JobCounts> {
    let mut counts = JobCounts::default();
    let mut add = |condition: &str, values: Vec<Value>| -> Result<()> {
        let sql = format!(
            "SELECT c.status, sum(c.jobs) FROM job_counts c
             JOIN tenants t ON t.collection = c.collection
             WHERE t.deleting = 0 {condition} GROUP BY c.status"
        );
        connection.each(&sql, params_from_iter(values), |cells| {
            let status = cells.word(JobStatus::from_word)?;
            let jobs = cells.number()?;
            match status {
                JobStatus::Queued => counts.queued += jobs,
                JobStatus::InProgress => counts.in_progress += jobs,
                JobStatus::Success => counts.success += jobs,
                JobStatus::Errored => counts.errored += jobs,
            }
            Ok(())
        })
    };
    match scope {
        JobScope::Everywhere => add("", Vec::new())?,
        JobScope::Within(places) => {
            for (collection, sub_tenants) in places {
                let mut values = vec![Value::Blob(blob(*collection).to_vec())];
                let names = among(sub_tenants.as_deref(), "c", &mut values);
                add(&format!("AND c.collection = ?1 {names}"), values)?;
            }
        }
    }
    Ok(counts)
}
