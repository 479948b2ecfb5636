// Keys: making and revoking them.
import { call } from "./api.js";
import { age, confirmation, copyButton, empty, field, fill, h, oneAtATime, problem } from "./dom.js";
import { known } from "./picker.js";

/**
 * The page.
 * @param {URLSearchParams} _params
 * @param {AbortSignal} leaving
 */
export async function keys(_params, leaving) {
  const list = h("div");
  const load = async () => {
    const { api_keys: all } = await call("GET", "admin/api_keys", { signal: leaving });
    fill(list, all.length === 0 ? empty("No keys but the operator's", h("p", {}, "The operator's own key is a setting of the server and is not listed.")) : tableOf(all, load));
  };
  await load();
  return h("div", {}, h("h1", {}, "Keys"), making(load), list);
}

/** @param {() => Promise<void>} load */
function making(load) {
  const name = h("input", { required: true, maxlength: "256" });
  const role = h("select", {}, [["read", "read: search and ask"], ["write", "write: also upload and delete"], ["admin", "admin: also tenants and keys"]].map(([value, text]) => h("option", { value }, text)));
  const reach = h("select", {}, h("option", { value: "" }, "all tenants"), known.map(({ tenant_id }) => h("option", { value: tenant_id }, tenant_id)));
  const subs = h("input", { placeholder: "all, or names separated by commas" });
  const days = h("input", { type: "number", min: "1", max: "3650", placeholder: "never" });
  const message = h("div", { "aria-live": "polite" });
  const make = oneAtATime(async () => {
    const names = subs.value.split(",").map((one) => one.trim()).filter(Boolean);
    const tenants = reach.value ? [{ tenant_id: reach.value, ...(names.length > 0 ? { sub_tenant_ids: names } : {}) }] : undefined;
    const expires = days.value ? Math.floor(Date.now() / 1000) + Number(days.value) * 86_400 : undefined;
    try {
      const made = await call("POST", "admin/api_keys", { json: { name: name.value, role: role.value, tenants, expires_at: expires } });
      name.value = "";
      fill(message, h("div", { class: "note good" }, h("p", {}, "This is shown only once. Keep it in a safe place:"),
        h("p", {}, h("code", { class: "secret" }, made.api_key)), copyButton("Copy the key", () => made.api_key)));
      await load();
    } catch (error) {
      fill(message, problem(error));
    }
  });
  return h("form", { class: "card stack", onsubmit: make }, h("h2", {}, "Create a key"),
    h("div", { class: "options" }, field("Name", name), field("Role", role), field("Reaches", reach), field("Sub-tenants", subs), field("Expires after (days)", days)),
    message, h("div", {}, h("button", { class: "primary", type: "submit" }, "Create the key")));
}

/**
 * @param {any[]} all
 * @param {() => Promise<void>} load
 */
function tableOf(all, load) {
  const head = ["Name", "Role", "Reaches", "Made", "Expires", ""];
  const row = (/** @type {any} */ key) => {
    const reach = key.tenants === null ? "all tenants" : key.tenants.length === 0 ? "none (tenant deleted)"
      : key.tenants.map((/** @type {any} */ one) => one.tenant_id + (one.sub_tenant_ids ? ` (${one.sub_tenant_ids.join(", ")})` : "")).join(", ");
    const revoke = oneAtATime(async () => {
      if (!await confirmation(`Revoke “${key.name}”?`, "Requests with it are refused from now on.", "Revoke")) return;
      await call("DELETE", `admin/api_keys/${encodeURIComponent(key.key_id)}`);
      await load();
    });
    return h("tr", {}, h("td", { class: "title" }, key.name, h("span", { class: "muted small block" }, key.key_id)), h("td", {}, key.role), h("td", {}, reach),
      h("td", {}, age(key.created_at)), h("td", {}, key.expires_at ? age(key.expires_at) : "never"),
      h("td", { class: "actions" }, h("button", { class: "quiet", type: "button", onclick: revoke, "aria-label": `Revoke ${key.name}` }, "Revoke")));
  };
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, head.map((text) => (text ? h("th", { scope: "col" }, text) : h("td"))))), h("tbody", {}, all.map(row))));
}
