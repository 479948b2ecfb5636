//! Handler of the protocol's requests.

use std::sync::Arc;

use http::Method;
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, ErrorData, Implementation, JsonObject, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::mcp::api::{Api, Refusal};
use crate::mcp::caller::{Caller, Choice};
use crate::mcp::resources::{Address, TEMPLATE};
use crate::mcp::session::Session;
use crate::mcp::tool::Entry;
use crate::mcp::tools;

/// Number of sources per page of the resource list.
const RESOURCES_MAX: usize = 100;
/// Number of chunks fetched per call while a resource is read.
const CHUNKS_MAX: usize = 200;
/// Largest resource in bytes; longer documents are read in parts with the `read_source` tool.
const RESOURCE_BYTES_MAX: usize = 4 << 20;

/// Methods that take params.
const METHODS: [&str; 5] =
    ["initialize", "tools/list", "tools/call", "resources/list", "resources/read"];

const INSTRUCTIONS: &str = "A knowledge base of documents. `ask` answers a question with \
    citations, `search` finds passages, and `read_source` reads a document. Base your statements \
    on what they return, name the documents, and say so if they contain no answer.";

/// Handles one message. Clones share the tools.
#[derive(Clone)]
pub(super) struct Handler {
    api: Arc<Api>,
    tools: Arc<[Entry]>,
}

impl Handler {
    /// Creates a handler with the tools over the operations of `api`.
    pub fn new(api: Arc<Api>) -> Self {
        Self { api, tools: tools::all().into() }
    }

    /// Iterates over the tools that the caller's key may use.
    fn tools_of(&self, caller: &Caller) -> impl Iterator<Item = &Entry> {
        self.tools.iter().filter(|tool| caller.grant.role >= tool.role)
    }

    fn session(&self, caller: &Arc<Caller>, address: &Address) -> Result<Session, ErrorData> {
        // A caller that is fixed to one tenant may address no other.
        let fits = |choice: Choice, named: &str| match choice {
            Choice::Fixed(only) => only == named,
            Choice::OneOf(_) | Choice::Any => true,
        };
        if !fits(caller.tenants(), &address.tenant)
            || !fits(caller.sub_tenants(), &address.sub_tenant)
        {
            return Err(unknown_resource());
        }
        let mut named = JsonObject::new();
        named.insert("tenant_id".to_owned(), json!(address.tenant));
        named.insert("sub_tenant_id".to_owned(), json!(address.sub_tenant));
        let session = Session::begin(Arc::clone(&self.api), Arc::clone(caller), &mut named, None);
        session.map_err(|refusal| ErrorData::invalid_params(refusal.message, None))
    }
}

/// Converts a refusal outside of a tool. One that may pass is an internal error rather than the
/// fault of the request.
fn failed(refusal: Refusal, otherwise: impl FnOnce(String) -> ErrorData) -> ErrorData {
    match refusal.is_passing {
        true => ErrorData::internal_error(refusal.to_string(), None),
        false => otherwise(refusal.message),
    }
}

fn unknown_resource() -> ErrorData {
    ErrorData::resource_not_found("resource not found, or this key has no access to it", None)
}

/// Returns the sender of the message.
fn caller(context: &RequestContext<RoleServer>) -> Result<Arc<Caller>, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let caller = parts.and_then(|parts| parts.extensions.get::<Arc<Caller>>());
    caller.cloned().ok_or_else(|| ErrorData::internal_error("the message has no sender", None))
}

/// Converts a refusal into the result that the model reads. It has no structured content, which
/// would have to match the tool's output schema.
fn told(refusal: Refusal) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(refusal.to_string())])
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let name = Implementation::new("lodestone", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(name.with_title("Lodestone"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {}

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = caller(&context)?;
        let tools = self.tools_of(&caller).map(|tool| tool.seen_by(&caller)).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = caller(&context)?;
        let tool = self.tools_of(&caller).find(|tool| tool.name() == request.name).cloned();
        let Some(tool) = tool else {
            let message = format!("tool {} not found, or this key may not use it", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let mut arguments = request.arguments.unwrap_or_default();
        let token = context.meta.get_progress_token();
        let progress = token.map(|token| (context.peer.clone(), token));
        let api = Arc::clone(&self.api);
        let session = match Session::begin(api, caller, &mut arguments, progress) {
            Ok(session) => session,
            Err(refusal) => return Ok(told(refusal).into()),
        };
        let work = (tool.run)(session, arguments);
        let result = tokio::select! {
            // Stops the work when the client has disconnected.
            () = context.ct.cancelled() => Err(Refusal::new("cancelled")),
            result = work => result,
        };
        Ok(result.map_or_else(told, CallToolResult::structured).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = caller(&context)?;
        // Without a fixed tenant, or a sub-tenant to take unless one is named, there is nothing to
        // list; the resource template shows the URI form.
        let sub_tenants = caller.sub_tenants();
        let (Choice::Fixed(tenant), false) = (caller.tenants(), sub_tenants.lacks_default()) else {
            return Ok(ListResourcesResult::with_all_items(Vec::new()));
        };
        let sub_tenant = match sub_tenants {
            Choice::Fixed(name) => name,
            Choice::OneOf(_) | Choice::Any => String::new(),
        };
        let own = |file: &Value| Address {
            tenant: tenant.clone(),
            sub_tenant: sub_tenant.clone(),
            file: file.as_str().unwrap_or_default().to_owned(),
        };
        let session = self.session(&caller, &own(&Value::Null))?;
        let mut query = vec![("limit", RESOURCES_MAX.to_string())];
        query.extend(request.and_then(|page| page.cursor).map(|cursor| ("cursor", cursor)));
        let found = session.ask::<Value>(Method::GET, "/list/sources", query, Value::Null).await;
        let wrong = |message: String| ErrorData::invalid_params(message, None);
        let found = found.map_err(|refusal| failed(refusal, wrong))?;
        let sources = found["sources"].as_array().map_or(&[][..], Vec::as_slice);
        let resource = |source: &Value| {
            let title = source["title"].as_str().unwrap_or_default();
            Resource::new(own(&source["id"]).uri(), title).with_mime_type("text/plain")
        };
        let mut page = ListResourcesResult::with_all_items(sources.iter().map(resource).collect());
        page.next_cursor = found["next_cursor"].as_str().map(str::to_owned);
        Ok(page)
    }

    /// Also receives known requests whose params do not have the expected form.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if METHODS.contains(&method.as_str()) {
            let message = format!("invalid params for {method}");
            return Err(ErrorData::invalid_params(message, None));
        }
        let message = format!("method {method} not found");
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new(TEMPLATE, "source")
            .with_description("Text of a document. `default` is the unnamed sub-tenant.")
            .with_mime_type("text/plain");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = caller(&context)?;
        let address = Address::read(&request.uri).ok_or_else(unknown_resource)?;
        let session = self.session(&caller, &address)?;
        let (mut text, mut offset) = (String::new(), Some(0));
        while let Some(at) = offset {
            let body = json!({"file_id": address.file, "offset": at, "limit": CHUNKS_MAX});
            let found = session.post::<Value>("/list/chunks", body).await;
            let found = found.map_err(|refusal| failed(refusal, |_| unknown_resource()))?;
            let part = tools::read(&found);
            text.push_str(if text.is_empty() { "" } else { "\n\n" });
            text.push_str(&part.text);
            offset = part.next;
            if text.len() > RESOURCE_BYTES_MAX {
                let message = "the document is larger than 4 MiB: read it with read_source";
                return Err(ErrorData::invalid_params(message, None));
            }
        }
        let contents = ResourceContents::text(text, request.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
