//! A tool: its name, its schemas, the role that it requires, and its implementation.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::mcp::api::Refusal;
use crate::mcp::caller::{Caller, Choice};
use crate::mcp::session::Session;
use lodestone_types::Role;

/// The effect of a tool on stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Changes nothing.
    Reads,
    /// Adds data, and replaces an item whose id is given again.
    Adds,
    /// Removes data.
    Removes,
}

type Work = Pin<Box<dyn Future<Output = Result<Value, Refusal>> + Send>>;

/// A tool.
#[derive(Clone)]
pub(super) struct Entry {
    /// Name, description and schemas, without the tenant and sub-tenant.
    tool: Tool,
    /// The least role that may call the tool.
    pub role: Role,
    /// Runs the tool.
    pub run: fn(Session, JsonObject) -> Work,
}

/// Defines a tool. `run` is a monomorphic function pointer, so an [`Entry`] needs no allocation.
macro_rules! entry {
    ($name:literal, $title:literal, $role:expr, $effect:expr, $work:path, $about:expr) => {
        $crate::mcp::tool::Entry::new(
            $name,
            $title,
            $role,
            $effect,
            $about,
            $work,
            |session, input| {
                Box::pin(async move { $crate::mcp::tool::run(session, input, $work).await })
            },
        )
    };
}
pub(super) use entry;

/// Parses the arguments, runs the tool and serializes the result.
pub(super) async fn run<I, O, F>(
    session: Session,
    arguments: JsonObject,
    work: impl Fn(Session, I) -> F,
) -> Result<Value, Refusal>
where
    I: DeserializeOwned,
    O: Serialize,
    F: Future<Output = Result<O, Refusal>>,
{
    let input = read(&arguments).map_err(|error| match wrong_one::<I>(&arguments, &error) {
        Some(name) => Refusal::new(format!("invalid arguments: {name}: {error}")),
        None => Refusal::new(format!("invalid arguments: {error}")),
    })?;
    let output = work(session, input).await?;
    serde_json::to_value(output).map_err(|error| Refusal::new(error.to_string()))
}

fn read<I: DeserializeOwned>(arguments: &JsonObject) -> Result<I, String> {
    serde_json::from_value(Value::Object(arguments.clone())).map_err(|error| error.to_string())
}

/// Finds the argument that an error is about but does not name: the one without which the error
/// goes away or changes.
fn wrong_one<'a, I: DeserializeOwned>(arguments: &'a JsonObject, error: &str) -> Option<&'a str> {
    let is_wrong = |name: &&String| {
        let mut others = arguments.clone();
        others.remove(*name);
        read::<I>(&others).err().as_deref() != Some(error)
    };
    arguments.keys().find(is_wrong).map(String::as_str)
}

impl Entry {
    /// Creates a tool, whose schemas are generated from the input and output types of `work`.
    pub fn new<I, O, F>(
        name: &'static str,
        title: &'static str,
        role: Role,
        effect: Effect,
        about: &'static str,
        _work: fn(Session, I) -> F,
        run: fn(Session, JsonObject) -> Work,
    ) -> Self
    where
        I: JsonSchema,
        O: JsonSchema,
        F: Future<Output = Result<O, Refusal>>,
    {
        let mut hints = ToolAnnotations::with_title(title).open_world(false);
        hints.read_only_hint = Some(effect == Effect::Reads);
        hints.destructive_hint = Some(effect == Effect::Removes);
        hints.idempotent_hint = Some(effect != Effect::Adds);
        let tool = Tool::new(name, about, schema::<I>())
            .with_title(title)
            .with_raw_output_schema(schema::<O>())
            .with_annotations(hints);
        Self { tool, role, run }
    }

    /// Returns the name of the tool.
    pub fn name(&self) -> &str {
        &self.tool.name
    }

    /// Returns the tool as `caller` sees it, with the tenants that the caller may choose from.
    pub fn seen_by(&self, caller: &Caller) -> Tool {
        let mut schema = JsonObject::clone(&self.tool.input_schema);
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        let (tenants, sub_tenants) = (caller.tenants(), caller.sub_tenants());
        let (is_fixed, must_be_named) =
            (matches!(tenants, Choice::Fixed(_)), sub_tenants.lacks_default());
        let part = match must_be_named {
            true => "Part of the knowledge base.",
            false => "Part of the knowledge base; `default` if absent.",
        };
        for (name, about, choice) in
            [("tenant_id", "Knowledge base to use.", tenants), ("sub_tenant_id", part, sub_tenants)]
        {
            let mut property = json!({"type": "string", "description": about});
            match choice {
                Choice::Fixed(_) => continue,
                Choice::OneOf(names) => property["enum"] = json!(names),
                Choice::Any => {}
            }
            properties[name] = property;
        }
        for (name, is_required) in [("tenant_id", !is_fixed), ("sub_tenant_id", must_be_named)] {
            if is_required {
                let required = schema.entry("required").or_insert_with(|| json!([]));
                required.as_array_mut().into_iter().for_each(|names| names.push(json!(name)));
            }
        }
        let mut tool = self.tool.clone();
        tool.input_schema = Arc::new(schema);
        tool
    }
}

/// Returns the JSON schema of a type, with all subschemas inlined.
fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    // Clients do not know formats such as `uint32`, and some warn about each of them.
    let plain = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("format");
    });
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .with_transform(plain);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let members = schema.as_object_mut().map(std::mem::take).unwrap_or_default();
    let unwanted = ["$schema", "title", "description"];
    let members = members.into_iter().filter(|(name, _)| !unwanted.contains(&name.as_str()));
    Arc::new(members.collect())
}
