//! Tests of the HTTP contract with clients, against a server in this process. Each test's name
//! states what it shows.

mod answers;
mod apps;
mod archives;
mod console;
mod contract;
mod conversations;
mod corpus;
mod deadlines;
mod documented;
mod errors;
#[path = "../process/exposition.rs"]
mod exposition;
mod fetch;
mod filters;
mod full_text;
mod gate;
mod generated;
mod generated_graph;
mod given;
mod graph;
mod http_rules;
mod idempotency;
mod limits;
mod listings;
mod mcp;
mod memories;
mod metadata;
mod metrics;
mod modes;
mod names;
mod openai;
mod own_vectors;
mod page_images;
mod pages;
#[path = "../process/patience.rs"]
mod patience;
mod privacy;
mod real_generator;
mod replacement;
mod reranking;
mod scopes;
mod search;
mod status;
mod streams;
mod support;
mod tools;
mod translated;
mod uploads;
mod upstream;
mod usage;
mod vector_metrics;
mod vector_stores;
mod vectors;
mod webhooks;
