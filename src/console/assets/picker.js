// The tenant and the sub-tenant that every page is about.
import { ApiError, call } from "./api.js";
import { entry, fill, h } from "./dom.js";
import { listen, state, update } from "./state.js";

/**
 * @typedef {object} Tenant
 * @property {string} tenant_id
 * @property {string} mode
 * @property {string} created_at
 * @property {number | null} vector_dimension
 * @property {{properties: {field_name: string, type: string, index_filterable: boolean}[]} | null} tenant_schema
 */

/** @type {Tenant[]} */
export let known = [];

/** Asks which tenants there are, if the key may know, and chooses one if there is no choice. */
export async function loadTenants() {
  try {
    known = (await call("GET", "tenant/list")).tenants;
    const isThere = known.some((tenant) => tenant.tenant_id === state.tenant);
    const chosen = isThere ? state.tenant : known[0]?.tenant_id ?? "";
    update({ isAdmin: true });
    choose(chosen, chosen === state.tenant ? state.subTenant : "");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    known = [];
    update({ isAdmin: false });
    if (!state.tenant) await chooseReached();
  }
  changed.dispatchEvent(new Event("tenants"));
}
const changed = new EventTarget();

/** Chooses the first tenant of documents that the key reaches: the list of models names it, with its sub-tenant where the key is limited to one. */
async function chooseReached() {
  const { data } = await call("GET", "v1/models");
  const reached = data.find((/** @type {any} */ model) => model.kind === "knowledge");
  if (reached) choose(...(/** @type {[string, string?]} */ (reached.id.split("/"))));
}

/**
 * @param {string} tenant
 * @param {string} [subTenant]
 */
export function choose(tenant, subTenant = "") {
  const mode = known.find((one) => one.tenant_id === tenant)?.mode ?? "standard";
  update({ tenant, subTenant, mode });
}

/** The declared keys of the tenant's metadata. */
export function schema() {
  return known.find((tenant) => tenant.tenant_id === state.tenant)?.tenant_schema?.properties ?? [];
}

/** The two boxes in the header. */
export function tenantPicker() {
  const tenant = h("div", { class: "row" });
  const sub = h("div", { class: "row" });
  const showTenant = () => fill(tenant, state.isAdmin === false ? typed() : chosen());
  const showSub = async () => {
    if (!state.tenant) return fill(sub);
    try {
      const { sub_tenant_ids: names } = await call("GET", "tenant/sub_tenant_ids", { query: { tenant_id: state.tenant } });
      fill(sub, subChoice(names));
    } catch {
      // The page itself says what is wrong with the tenant.
      fill(sub);
    }
  };
  changed.addEventListener("tenants", showTenant);
  listen("tenant", showTenant);
  listen("tenant", showSub);
  listen("subTenant", showSub);
  showTenant();
  showSub();
  return h("div", { class: "picker row", role: "group", "aria-label": "Tenant" }, tenant, sub);
}

function chosen() {
  if (known.length === 0) return h("span", { class: "muted" }, "No tenants yet");
  const names = known.map(({ tenant_id }) => tenant_id);
  return h("label", { class: "row" }, h("span", { class: "muted wide" }, "Tenant"),
    h("select", { "aria-label": "Tenant", value: state.tenant, onchange: (/** @type {any} */ event) => choose(event.target.value) },
      names.map((name) => h("option", { value: name }, name))));
}

function typed() {
  const input = h("input", { value: state.tenant, placeholder: "tenant", size: "14", "aria-label": "Tenant" });
  /** @param {Event} event */
  const use = (event) => {
    event.preventDefault();
    choose(input.value.trim());
  };
  return h("form", { class: "row", onsubmit: use }, input, h("button", {}, "Use"));
}

/** @param {string[]} names */
function subChoice(names) {
  const current = state.subTenant || "default";
  // One that was made here comes into being with its first upload.
  const all = names.includes(current) ? names : [...names, current];
  /** @param {any} event */
  async function pick({ target }) {
    if (target.value) return update({ subTenant: target.value });
    target.value = current;
    const name = await entry("A new sub-tenant", "Name", "Use it");
    if (name) update({ subTenant: name });
  }
  return h("label", { class: "row" }, h("span", { class: "muted wide" }, "Sub-tenant"),
    h("select", { "aria-label": "Sub-tenant", value: current, onchange: pick },
      all.map((name) => h("option", { value: name }, name)), h("option", { value: "" }, "new…")));
}
