//! Relationships: links from one part of a container to others.

use std::collections::BTreeMap;

use crate::ExtractError;
use crate::events::{Event, Events};
use crate::package::Package;

/// Maximum relationships kept per part.
const RELATIONS_MAX: usize = 20_000;

/// A link to another part.
#[derive(Debug)]
struct Relation {
    /// The last segment of its type, such as `slide`.
    kind: String,
    /// The name of the target part.
    target: String,
}

/// The relationships of one part.
#[derive(Debug, Default)]
pub(super) struct Relations {
    all: Vec<Relation>,
    by_id: BTreeMap<String, usize>,
}

impl Relations {
    /// Reads the relationships of the part called `name`, or of the container if it is empty. Links
    /// out of the container are left out.
    pub(super) fn of(package: &Package<'_>, name: &str) -> Result<Self, ExtractError> {
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
        let separator = if folder.is_empty() { "" } else { "/" };
        let Some(part) = package.part(&format!("{folder}{separator}_rels/{file}.rels"))? else {
            return Ok(Self::default());
        };
        let mut events = Events::new(part)?;
        let mut all = Vec::new();
        let mut by_id = BTreeMap::new();
        loop {
            match events.next()? {
                Event::Open(element) if element.name() == "Relationship" => {
                    let is_outside = element.attribute("TargetMode").as_deref() == Some("External");
                    let (Some(id), Some(kind), Some(target)) = (
                        element.attribute("Id"),
                        element.attribute("Type"),
                        element.attribute("Target"),
                    ) else {
                        continue;
                    };
                    if is_outside || all.len() >= RELATIONS_MAX {
                        continue;
                    }
                    let kind = kind.rsplit('/').next().unwrap_or("").to_owned();
                    by_id.entry(id).or_insert(all.len());
                    all.push(Relation { kind, target: resolve(folder, &target) });
                }
                Event::End => return Ok(Self { all, by_id }),
                _ => {}
            }
        }
    }

    /// The part that `id` refers to.
    pub(super) fn target(&self, id: &str) -> Option<&str> {
        self.by_id.get(id).map(|&index| &*self.all[index].target)
    }

    /// The first part of this kind.
    pub(super) fn first(&self, kind: &str) -> Option<&str> {
        let mut found = self.all.iter().filter(|relation| relation.kind == kind);
        found.next().map(|relation| &*relation.target)
    }

    /// All parts of this kind, in file order.
    pub(super) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let found = self.all.iter().filter(move |relation| relation.kind == kind);
        found.map(|relation| &*relation.target)
    }
}

/// Resolves `target` relative to `folder`. The result cannot leave the container.
pub(crate) fn resolve(folder: &str, target: &str) -> String {
    let target = target.replace('\\', "/");
    let base = if target.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// The main part of a document and its relationships.
pub(super) fn main_part(
    package: &Package<'_>,
    usual: &str,
) -> Result<(String, Relations), ExtractError> {
    let roots = Relations::of(package, "")?;
    let named = roots.first("officeDocument").filter(|name| package.has(name));
    let name = named.unwrap_or(usual).to_owned();
    if !package.has(&name) {
        let problem = format!("there is no part '{usual}'");
        return Err(ExtractError::Broken { format: package.format(), problem });
    }
    let relations = Relations::of(package, &name)?;
    Ok((name, relations))
}
