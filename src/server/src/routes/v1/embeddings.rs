//! Embeddings of texts.
//!
//! ```text
//! one passage   -> lane of queries, like the vector of a search
//! more          -> groups that keep the cores busy for about a tenth of a second, each with a
//!                  permit of the fair queue and in the lane of answers
//! ```
//! A search therefore never waits for a group, and another owner waits for one group at most,
//! however many texts are sent.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::app::App;
use crate::dto::v1::embeddings::{Embed, EmbeddingList, EmbeddingUsage, EmbeddingView, VectorView};
use crate::error::{ApiError, Location};
use crate::reply::Bare;
use crate::request::{Call, Inputs};
use crate::routes::off_thread;
use crate::routes::route::share_of;
use crate::routes::v1::{of_key, tenant_behind};
use lodestone_catalog::Tenant;
use lodestone_embed::{Embedder, Lane, Role};
use lodestone_engine::EngineError;
use lodestone_engine::ingest::MemoryShare;
use lodestone_types::{CollectionId, RequestContext, limits};

/// Memory per number of a response, in bytes: the number itself and its text.
const BYTES_PER_NUMBER: usize = 16;
/// Responses smaller than this reserve no memory.
const SHARE_BYTES_MIN: usize = 128 << 10;

/// Texts to embed.
pub(super) struct Passages {
    texts: Vec<String>,
    /// Token count of each text.
    tokens: Vec<usize>,
    /// Positions of the texts that are truncated.
    truncated: Vec<usize>,
}

impl Passages {
    /// Counts the tokens of `texts`.
    pub(super) fn new(embedder: &dyn Embedder, texts: Vec<String>) -> Self {
        let counts: Vec<(usize, bool)> =
            texts.iter().map(|text| embedder.tokens_read(text)).collect();
        let cut = counts.iter().enumerate().filter(|(_, (_, is_cut))| *is_cut);
        let truncated = cut.map(|(at, _)| at).collect();
        Self { texts, tokens: counts.into_iter().map(|(count, _)| count).collect(), truncated }
    }

    /// Splits the texts into consecutive groups of up to `tokens_max` tokens, but at least one
    /// text.
    fn groups(&self, tokens_max: usize) -> Vec<Range<usize>> {
        let (mut groups, mut start, mut sum) = (Vec::new(), 0, 0);
        for (at, tokens) in self.tokens.iter().enumerate() {
            if sum + tokens > tokens_max && at > start {
                groups.push(start..at);
                (start, sum) = (at, 0);
            }
            sum += tokens;
        }
        groups.push(start..self.tokens.len());
        groups
    }
}

pub(super) async fn embed(
    app: App,
    call: Call,
    input: Embed,
) -> Result<Bare<EmbeddingList>, ApiError> {
    let context = app.search_context(&call);
    // Dropped together with this future when the client disconnects.
    let _listening = context.cancel().on_drop();
    let (preparing, asked) = (app.clone(), call.clone());
    let prepared = off_thread(move || prepare(&preparing, &asked, input)).await?;
    let Prepared { embedder, mut passages, role, owner, dimension, is_base64, held } = prepared;
    let prompt_tokens = passages.tokens.iter().sum();
    let truncated = std::mem::take(&mut passages.truncated);
    let vectors = vectors(&app, &call, &context, owner, &embedder, passages, role).await?;
    off_thread(move || {
        let shown = |(index, vector)| EmbeddingView {
            object: "embedding",
            index,
            embedding: shown(vector, dimension, is_base64),
        };
        let body = EmbeddingList {
            object: "list",
            data: vectors.into_iter().enumerate().map(shown).collect(),
            model: embedder.name().to_owned(),
            usage: EmbeddingUsage { prompt_tokens, total_tokens: prompt_tokens },
            truncated,
        };
        Ok(Bare { held, ..Bare::new(body) })
    })
    .await
}

/// A request that has been validated.
struct Prepared {
    embedder: Arc<dyn Embedder>,
    passages: Passages,
    role: Role,
    owner: CollectionId,
    dimension: usize,
    is_base64: bool,
    held: Option<MemoryShare>,
}

fn prepare(app: &App, call: &Call, input: Embed) -> Result<Prepared, ApiError> {
    let Embed { input, model, is_base64, dimensions, truncate, is_query, tenant } = input;
    let grant = call.grant()?;
    let tenant = tenant_behind(app, grant, tenant.as_ref())?;
    let owner = tenant.as_ref().map_or_else(|| of_key(&grant.key_id), |it| it.collection);
    let own = chosen(app, tenant.as_ref(), model)?;
    let embedder = &*own;
    let dimension = dimensions.unwrap_or(embedder.dimension());
    if !embedder.may_shorten_to(dimension) {
        let (name, whole) = (embedder.name(), embedder.dimension());
        let problem =
            format!("must be {whole}: vectors of {name} cannot be shortened to {dimension}");
        return Err(wrong("dimensions", &problem));
    }
    let texts = texts(embedder, input)?;
    let bytes = texts.len() * embedder.dimension() * BYTES_PER_NUMBER;
    let is_large = bytes > SHARE_BYTES_MIN;
    let held = is_large.then(|| share_of(bytes as u64, &call.gate)).transpose()?;
    let passages = Passages::new(embedder, texts);
    match passages.truncated.first() {
        Some(at) if !truncate => {
            let problem = format!(
                "[{at}] is longer than the model's window of {} tokens",
                passages.tokens[*at]
            );
            Err(wrong("input", &problem))
        }
        _ => {
            let role = if is_query { Role::Query } else { Role::Document };
            Ok(Prepared { embedder: own, passages, role, owner, dimension, is_base64, held })
        }
    }
}

/// Selects the embedding model: the model of new tenants if it is named, otherwise that of the
/// tenant that the request works in.
fn chosen(
    app: &App,
    tenant: Option<&Arc<Tenant>>,
    model: Option<String>,
) -> Result<Arc<dyn Embedder>, ApiError> {
    let usual = app.engine.models().current();
    let own = match tenant {
        Some(tenant) if model.as_deref() != Some(usual.name()) => app.engine.embedder_of(tenant)?,
        _ => Arc::clone(usual),
    };
    match model.is_none_or(|model| model == own.name()) {
        true => Ok(own),
        false => Err(ApiError::model_not_found(Location::Body)),
    }
}

fn texts(embedder: &dyn Embedder, input: Inputs) -> Result<Vec<String>, ApiError> {
    let texts = match input {
        Inputs::Texts(texts) => texts,
        Inputs::Tokens(lists) => {
            let read = |(at, ids): (usize, Vec<u32>)| {
                embedder.text_of_tokens(&ids).ok_or_else(|| {
                    let name = embedder.name();
                    wrong("input", &format!("[{at}] has a token outside the vocabulary of {name}"))
                })
            };
            lists.into_iter().enumerate().map(read).collect::<Result<_, _>>()?
        }
    };
    match texts.iter().position(String::is_empty) {
        Some(at) => Err(wrong("input", &format!("[{at}] is empty"))),
        None => Ok(texts),
    }
}

/// Creates a 400 about a member; the message is `<member> <problem>`, without a space before an
/// index.
fn wrong(member: &str, problem: &str) -> ApiError {
    let separator = if problem.starts_with('[') { "" } else { " " };
    let message = format!("{member}{separator}{problem}");
    ApiError::invalid("invalid_value", message).at(Location::Body, member)
}

/// Computes the vectors of texts of one role, in order.
pub(super) async fn vectors(
    app: &App,
    call: &Call,
    context: &RequestContext,
    owner: CollectionId,
    embedder: &Arc<dyn Embedder>,
    mut passages: Passages,
    role: Role,
) -> Result<Vec<Vec<f32>>, ApiError> {
    let context = context.of_tenant(owner);
    let with_role = move |text: String| (role, text);
    if passages.tokens.iter().sum::<usize>() <= limits::MODEL_TOKENS_MAX {
        let embedder = Arc::clone(embedder);
        return off_thread(move || {
            let texts = passages.texts.into_iter().map(with_role).collect();
            let made = embedder.embed_as(Lane::Query, &context, texts);
            Ok(made.map_err(EngineError::from)?)
        })
        .await;
    }
    let tokens_max = limits::EMBED_BATCH_TOKENS * app.engine.settings().embed_threads.max(1);
    let mut vectors = Vec::with_capacity(passages.texts.len());
    for group in passages.groups(tokens_max) {
        let permit = app.run_permit_of(call, &context.restarted(), owner).await?;
        let texts = passages.texts[group].iter_mut().map(std::mem::take).map(with_role).collect();
        let (embedder, context) = (Arc::clone(embedder), context.restarted());
        let made = off_thread(move || {
            let made = embedder.embed_as(Lane::Answer, &context, texts);
            drop(permit);
            Ok(made.map_err(EngineError::from)?)
        });
        vectors.extend(made.await?);
    }
    Ok(vectors)
}

/// Truncates a vector to `dimension`, normalizes it again and encodes it in the requested form.
fn shown(mut vector: Vec<f32>, dimension: usize, is_base64: bool) -> VectorView {
    if dimension < vector.len() {
        vector.truncate(dimension);
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|x| *x /= length);
        }
    }
    if !is_base64 {
        return VectorView::Numbers(vector);
    }
    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
    VectorView::Base64(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_neighbours_and_every_text_once() {
        let groups = |tokens: &[usize]| {
            let texts = vec![String::new(); tokens.len()];
            Passages { texts, tokens: tokens.to_vec(), truncated: Vec::new() }.groups(10)
        };
        assert_eq!(groups(&[4, 4, 4, 20, 1]), [0..2, 2..3, 3..4, 4..5]);
        assert_eq!(groups(&[10, 10]), [0..1, 1..2]);
        assert_eq!(groups(&[0, 0, 10, 0, 1]), [0..4, 4..5]);
    }

    #[test]
    fn a_shorter_vector_has_length_1() {
        let VectorView::Numbers(cut) = shown(vec![0.36, 0.48, 0.8], 2, false) else {
            unreachable!("numbers were asked for")
        };
        assert_eq!(cut.len(), 2);
        assert!((cut[0] - 0.6).abs() < 1e-6 && (cut[1] - 0.8).abs() < 1e-6, "{cut:?}");
        let whole = shown(vec![1.0, -2.0], 2, true);
        assert_eq!(whole, VectorView::Base64("AACAPwAAAMA=".to_owned()));
    }
}
