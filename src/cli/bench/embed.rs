//! `lodestone bench embed`: embeds a file of passages and measures the rate.
//!
//! Passages are processed as in ingestion: tokenized, then embedded in the bulk lane of the model's
//! queue. Loading the model is not timed. The vectors are those that the server would store, before
//! rounding to half precision.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use lodestone_embed::{Embedder, Lane, Model, ModelFiles};
use serde_json::json;

use crate::cli::arguments::BenchEmbed;
use crate::cli::bench::{arrays, cpu_seconds, report, round};

/// Number of passages embedded before timing starts.
const WARM_UP_PASSAGES: usize = 16;

/// Embeds the passages and writes the report.
pub fn run(options: &BenchEmbed) -> Result<(), Box<dyn Error>> {
    let passages = passages(&options.texts)?;
    let files = ModelFiles::read(&options.model_dir, &|path| std::fs::read(path))?;
    let model = Model::load_on(&files, usize::from(options.threads), options.precision, None)?;
    model.embed(Lane::Bulk, passages.iter().take(WARM_UP_PASSAGES).cloned().collect())?;
    let (before, begun, cpu) = (model.stats(), Instant::now(), cpu_seconds());
    let vectors = model.embed(Lane::Bulk, passages)?;
    let (wall, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let passages = vectors.len() as f64;
    let tokens = (model.stats().tokens - before.tokens) as f64;
    if let Some(path) = &options.vectors {
        arrays::write_floats(path, &vectors)?;
    }
    let measured = json!({
        "model": model.name(), "dimension": model.dimension(), "threads": options.threads,
        "precision": options.precision.to_string(), "arithmetic": model.arithmetic().to_string(),
        "passages": vectors.len(), "tokens": tokens, "wall_s": round(wall), "cpu_s": round(cpu),
        "passages_per_s": round(passages / wall), "passages_per_cpu_s": round(passages / cpu),
        "tokens_per_s": round(tokens / wall), "tokens_per_cpu_s": round(tokens / cpu),
    });
    report(&measured, options.json.as_deref())
}

/// Reads one passage per line. An empty line is an empty passage, so that row numbers match.
fn passages(path: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("--texts {}: {error}", path.display()))?;
    let passages: Vec<String> = text.lines().map(str::to_owned).collect();
    if passages.is_empty() {
        return Err(format!("--texts {} has no lines", path.display()).into());
    }
    Ok(passages)
}
