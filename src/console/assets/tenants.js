// Tenants: making, choosing and deleting them.
import { call } from "./api.js";
import { address, age, confirmation, count, empty, field, fill, h, oneAtATime, plural, problem } from "./dom.js";
import { choose, known, loadTenants } from "./picker.js";
import { state } from "./state.js";

/** Tenants whose counts are asked for at once. */
const COUNTED_MAX = 100;

/**
 * The page.
 * @param {URLSearchParams} _params
 * @param {AbortSignal} leaving
 */
export async function tenants(_params, leaving) {
  if (!state.isAdmin) return h("div", {}, h("h1", {}, "Tenants"), await ownTenant(leaving));
  const list = h("div");
  const show = () => fill(list, known.length === 0 ? empty("No tenants yet", h("p", {}, "Create the first one above. A tenant is an isolated set of documents.")) : tableOf(leaving, show));
  show();
  return h("div", {}, h("h1", {}, "Tenants"), making(), list);
}

/** What a key without the role of an admin may know. @param {AbortSignal} leaving */
async function ownTenant(leaving) {
  const note = h("p", { class: "muted" }, "Only an admin key can list, create and delete tenants.");
  if (!state.tenant) return note;
  const stats = await call("GET", "tenant/stats", { query: { tenant_id: state.tenant }, signal: leaving });
  return [note, h("p", {}, state.tenant, ": ", counts(stats))].reduce((all, one) => {
    all.append(one);
    return all;
  }, h("div"));
}

function making() {
  const name = h("input", { required: true, maxlength: "256", pattern: "[A-Za-z0-9][A-Za-z0-9._:@#$+=~\\-]*", title: "letters, digits and . _ - : @ # $ + = ~, starting with a letter or digit" });
  const mode = h("select", {}, h("option", { value: "standard" }, "documents"), h("option", { value: "embeddings" }, "own vectors"));
  const schema = h("textarea", { class: "code", rows: "3", spellcheck: "false", placeholder: "[{\"key\": \"team\", \"type\": \"string\"}]" });
  const message = h("div", { "aria-live": "polite" });
  const make = oneAtATime(async () => {
    const tenant = name.value.trim();
    try {
      const fields = schema.value.trim() ? JSON.parse(schema.value) : undefined;
      if (mode.value === "embeddings") await call("POST", "embeddings/create_tenant", { query: { tenant_id: tenant } });
      else await call("POST", "user/create_tenant", { query: { tenant_id: tenant }, json: { tenant_metadata_schema: fields } });
      await loadTenants();
      choose(tenant);
      location.hash = address(mode.value === "embeddings" ? "vectors" : "sources");
    } catch (error) {
      fill(message, problem(error));
    }
  });
  return h("form", { class: "card stack", onsubmit: make }, h("h2", {}, "Create a tenant"),
    h("div", { class: "ask-row" }, field("Name", name), field("For", mode), h("button", { class: "primary", type: "submit" }, "Create")),
    h("details", {}, h("summary", {}, "Metadata schema"), field("Fields (JSON)", schema, "Types: string, number, boolean, array, datetime; \"searchable\" and \"filterable\" are true or false. It cannot be changed later.")), message);
}

/**
 * @param {AbortSignal} leaving
 * @param {() => void} reload
 */
function tableOf(leaving, reload) {
  const head = ["Tenant", "For", "Holds", "Made", ""];
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, head.map((text) => (text ? h("th", { scope: "col" }, text) : h("td"))))),
    h("tbody", {}, known.map((tenant, i) => row(tenant, i, leaving, reload)))));
}

/**
 * @param {import("./picker.js").Tenant} tenant
 * @param {number} i
 * @param {AbortSignal} leaving
 * @param {() => void} reload
 */
function row(tenant, i, leaving, reload) {
  const id = tenant.tenant_id;
  const holds = h("td");
  if (i < COUNTED_MAX) {
    call("GET", "tenant/stats", { query: { tenant_id: id }, signal: leaving }).then((stats) => fill(holds, counts(stats)), () => {});
  }
  const use = () => {
    choose(id);
    location.hash = address(tenant.mode === "embeddings" ? "vectors" : "ask");
  };
  const drop = oneAtATime(async () => {
    const text = "Its documents, vectors, memories and jobs are deleted too. This cannot be undone.";
    if (!await confirmation(`Delete the tenant “${id}”?`, text, "Delete the tenant", id)) return;
    await call("DELETE", "tenant/delete", { query: { tenant_id: id, confirm: id } });
    await loadTenants();
    reload();
  });
  return h("tr", {}, h("td", { class: "title" }, h("button", { class: "link", type: "button", onclick: use }, id), state.tenant === id && h("span", { class: "badge" }, "shown")),
    h("td", {}, tenant.mode === "embeddings" ? "own vectors" : "documents"), holds, h("td", {}, age(tenant.created_at)),
    h("td", { class: "actions" }, h("button", { class: "quiet", type: "button", onclick: drop, "aria-label": `Delete ${id}` }, "Delete")));
}

/** @param {any} stats */
function counts(stats) {
  const parts = stats.mode === "embeddings"
    ? [plural(stats.tenant_object_count, "vector"), stats.vector_dimension ? `${count(stats.vector_dimension)} wide` : ""]
    : [plural(stats.source_count, "source"), plural(stats.tenant_object_count, "passage"), stats.memory_count ? plural(stats.memory_count, "memory").replace("memorys", "memories") : ""];
  return parts.filter(Boolean).join(", ");
}
