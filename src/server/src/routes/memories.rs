//! Handlers of personal memories (docs/api.md, "Memories").

use crate::app::{App, blocking, degraded, lookup_error, searching};
use crate::dto::memories::{
    AddMemory, AddedMemory, DeleteMemory, DeletedMemory, GenerateMemories, GeneratedMemories,
    Inferring, ListMemories, MemoryList, MemoryView, RetrieveMemories, RetrievedMemories,
    RetrievedMemory,
};
use crate::error::ApiError;
use crate::reply::Json;
use crate::request::Call;
use crate::routes::once::{Once, once};
use crate::routes::{Group, Route};
use lodestone_answer::generate::Said;
use lodestone_engine::ingest::NewMemory;
use lodestone_engine::query::{FoundMemory, MemoryRequest};
use lodestone_types::{RequestContext, Role, TenantMode};

const MODE: Option<TenantMode> = Some(TenantMode::Standard);

/// Returns the memory operations.
pub fn routes() -> Vec<Route<App>> {
    const GROUP: Group = Group::Memory;
    let (by_reader, by_writer) = (Role::Read, Role::Write);
    vec![
        Route::<App>::post(
            "/user_memory/add_user_memory",
            GROUP,
            by_writer,
            "Add a memory from a text or exchanges, visible when the call returns",
        )
        .handle(blocking(add)),
        Route::<App>::get(
            "/user_memory/list_user_memories",
            GROUP,
            by_reader,
            "List the memories of a sub-tenant, newest first",
        )
        .handle(blocking(list)),
        Route::<App>::delete(
            "/user_memory/delete_user_memory", GROUP, by_writer, "Delete a memory",
        )
        .handle(blocking(delete)),
        Route::<App>::post(
            "/user_memory/retrieve_user_memory",
            GROUP,
            by_reader,
            "Search memories by meaning and keywords, best first",
        )
        .handle(searching(retrieve)),
        Route::<App>::post(
            "/user_memory/generate_user_memory",
            GROUP,
            by_writer,
            "Extract memories from a message and store them",
        )
        .handle(blocking(generate)),
    ]
}

fn add(app: &App, call: &Call, request: AddMemory) -> Result<Once<AddedMemory>, ApiError> {
    let access = app.engine.open_or_create(call.grant()?, &request.scope)?;
    once(app, call, |ids| {
        let AddMemory { id, content, life_seconds, inferring, sent, .. } = request;
        let id = id.or_else(|| ids.map(|ids| ids.memory()));
        let text = content.clone();
        let as_said = inferring.as_ref().map(|Inferring { user_name, instructions }| Said {
            text: &text,
            user_name,
            instructions,
        });
        let condensed = Vec::new();
        let memory = NewMemory { id, content, life_seconds, condensed, sent };
        let added = app.engine.add_memory(&access, memory, as_said.as_ref())?;
        let body = AddedMemory {
            success: true,
            user_memory_added: true,
            memory_id: added.memory.id.to_string(),
            chunks_created: added.chunks,
        };
        Ok(Json::new(body).with_degraded(degraded(&access)))
    })
}

fn list(app: &App, call: &Call, request: ListMemories) -> Result<Json<MemoryList>, ApiError> {
    let access = app.engine.open(call.grant()?, &request.scope, MODE)?.within(&call.context());
    let memories = app.engine.memories(&access)?;
    let user_memories = memories.into_iter().map(MemoryView::from).collect();
    let body = MemoryList { success: true, user_memories };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

fn delete(app: &App, call: &Call, request: DeleteMemory) -> Result<Json<DeletedMemory>, ApiError> {
    let access = app.engine.open(call.grant()?, &request.scope, MODE)?;
    call.tell_subject(format!("a memory of {}", access.tenant.collection));
    let deleted = app.engine.delete_memory(&access, &request.id);
    deleted.map_err(|error| lookup_error(&access, error))?;
    let body = DeletedMemory { success: true, user_memory_deleted: true };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

fn retrieve(
    app: &App,
    call: &Call,
    context: &RequestContext,
    request: RetrieveMemories,
) -> Result<Json<RetrievedMemories>, ApiError> {
    let access = app.engine.open(call.grant()?, &request.scope, MODE)?.within(context);
    let RetrieveMemories { max_count, query, user_name, .. } = request;
    let found =
        app.engine.search_memories(&access, &MemoryRequest { query, user_name, max_count })?;
    let view = |FoundMemory { memory, score }| RetrievedMemory {
        memory: memory.into(),
        relevancy_score: score,
    };
    let memories: Vec<RetrievedMemory> = found.into_iter().map(view).collect();
    let body = RetrievedMemories {
        success: true,
        user_memories: memories.clone(),
        retrieved_user_memories: memories,
    };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

fn generate(
    app: &App,
    call: &Call,
    request: GenerateMemories,
) -> Result<Once<GeneratedMemories>, ApiError> {
    let access = app.engine.open_or_create(call.grant()?, &request.scope)?;
    // Needs no request ids: a repetition recognizes the stored memories by their words.
    once(app, call, |_| {
        let (message, name) = (&request.message, request.user_name.as_deref());
        let generated = app.engine.generate_memories(&access, message, name)?;
        let body = GeneratedMemories {
            success: true,
            generated_user_memories: generated.into_iter().map(MemoryView::from).collect(),
        };
        Ok(Json::new(body).with_degraded(degraded(&access)))
    })
}
