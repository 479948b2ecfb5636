//! `lodestone store`: moves a server's data from a data directory to a bucket, or back.

use std::error::Error;

use clap::Subcommand;
use lodestone_engine::backup::Location;
use lodestone_engine::{CopiedStore, CopyProgress, copy_store};

use crate::cli::backup::StoreOptions;
use crate::cli::counted;
use crate::cli::progress::Progress;

/// Operation on the data of a stopped server.
#[derive(Debug, Subcommand)]
pub enum StoreVerb {
    /// Copy the data of a stopped server; files that exist at the destination are not copied again.
    Copy {
        /// Source: a data directory or a bucket URL.
        #[arg(value_parser = Location::parse)]
        from: Location,
        /// Destination: a bucket URL, or the data directory to create.
        #[arg(value_parser = Location::parse)]
        to: Location,
        #[command(flatten)]
        store: StoreOptions,
    },
}

/// Runs the operation.
pub fn run(verb: &StoreVerb) -> Result<(), Box<dyn Error>> {
    let StoreVerb::Copy { from, to, store } = verb;
    let progress = Progress::rare();
    let mut see = move |now: &CopyProgress| {
        let blobs = || format!(", {} of {} blobs", now.blobs, now.blobs_total);
        progress.show("copied", now.bytes, now.bytes_total, blobs);
    };
    let copied = copy_store(from, to, &store.opener()?, &mut see);
    drop(see);
    let CopiedStore { blobs, new, new_bytes } = copied?;
    println!("{} in {to}, {new} of them and {new_bytes} bytes are new", counted(blobs, "blob"));
    Ok(())
}
