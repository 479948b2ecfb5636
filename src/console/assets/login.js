// The first page: the key; and the link of the server's start, which signs in by itself.
import { call, ApiError } from "./api.js";
import { field, fill, h, problem } from "./dom.js";
import { state, update } from "./state.js";

const SITTING_HOURS = 12;
/** The name of the key in a link, and the seconds for which the server makes it. */
const LINK = "console: sign-in link";
const LINK_S = 10 * 60;
/** The name of the key that a link makes. */
const SITTING = "console: signed in by link";
const KEPT = "The link that signed you in could not be revoked. It expires ten minutes after the start of the server.";
/** Time in which a key is revoked; who signs out does not wait longer. */
const REVOKE_MS = 5000;

/**
 * The key of a link as the server lists it, if the server made it for that: any other key may be in
 * use elsewhere, and is never revoked here.
 * @param {string} key
 */
async function ofLink(key) {
  const { api_keys: all } = await call("GET", "admin/api_keys", { key }).catch((error) => {
    // Only an admin key lists keys.
    if (error instanceof ApiError && error.status === 403) return { api_keys: [] };
    throw error;
  });
  return all.find((/** @type {any} */ one) => key.includes(one.key_id) && one.name === LINK
    && one.expires_at && Number(one.expires_at) - Number(one.created_at) < LINK_S + 1);
}

/**
 * Signs in by the key of a link. One that the server made for it is good once: a key for this
 * sitting is made, and that of the link revoked. Any other is taken as if it had been typed.
 * @returns {Promise<string>} why it did not; empty where it did, or where the address is no link
 */
export async function followLink() {
  const [, key] = location.hash.match(/^#sign-in=(.+)$/) ?? [];
  if (!key) return "";
  history.replaceState(null, "", location.pathname);
  try {
    const own = await ofLink(key);
    if (!own) {
      update({ key, sitting: "", warning: "" });
      return "";
    }
    const expires_at = Math.floor(Date.now() / 1000) + SITTING_HOURS * 3600;
    const made = await call("POST", "admin/api_keys", { json: { name: SITTING, role: "admin", expires_at }, key });
    update({ key: made.api_key, sitting: made.key_id });
    await call("DELETE", `admin/api_keys/${encodeURIComponent(own.key_id)}`).catch(() => update({ warning: KEPT }));
    return "";
  } catch (error) {
    const isUsed = error instanceof ApiError && error.status === 401;
    return isUsed ? "This link has already been used, is older than ten minutes, or its key is unknown. Starting the server prints a new one; you can also sign in with any API key below." : String(error);
  }
}

/**
 * Revokes the key that a link made for this sitting. One that a person typed is theirs.
 * @returns {Promise<string>} why it still holds; empty where it does not
 */
export async function endSitting() {
  if (!state.sitting) return "";
  try {
    await call("DELETE", `admin/api_keys/${encodeURIComponent(state.sitting)}`, { signal: AbortSignal.timeout(REVOKE_MS) });
  } catch (error) {
    // The server does not know it any more.
    if (error instanceof ApiError && [401, 404].includes(error.status)) return "";
    return `You are signed out, but the server could not revoke the key of this session: it stays valid for up to ${SITTING_HOURS} hours. Sign in again and revoke “${SITTING}” on the page Keys.`;
  }
  return "";
}

/**
 * The form that takes the key.
 * @param {string} [refused] why a link did not sign in
 */
export function login(refused) {
  const input = h("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const button = h("button", { class: "primary", type: "submit" }, "Sign in");
  const message = h("div", { "aria-live": "polite" }, refused && problem(refused));
  /** @param {Event} event */
  async function enter(event) {
    event.preventDefault();
    const key = input.value.trim();
    button.disabled = true;
    fill(message, h("p", { class: "muted" }, "Checking with the server…"));
    try {
      await call("GET", "jobs", { query: { limit: 1 }, key });
      update({ key, sitting: "", warning: "" });
    } catch (error) {
      const isWrong = error instanceof ApiError && error.status === 401;
      fill(message, problem(isWrong ? "The server does not know this key, or it has expired." : error));
      input.focus();
    } finally {
      button.disabled = false;
    }
  }
  queueMicrotask(() => input.focus());
  return h("main", { class: "narrow login" },
    h("h1", {}, "Lodestone"),
    h("p", {}, "Documents in, hybrid search and cited answers out."),
    h("form", { class: "card", onsubmit: enter },
      field("API key", input, "It stays in this tab and is forgotten when the tab is closed."), message, button),
    h("details", {}, h("summary", {}, "Where is my key?"),
      h("p", {}, "The first start of the server shows an admin key on its terminal, once. If the output is not a terminal, the key is in the file ",
        h("code", {}, "admin_key"), " of the data directory. The operator can also set one with ", h("code", {}, "LODESTONE_ADMIN_KEY"),
        ", and create others on the page Keys.")),
    h("p", { class: "small" }, h("a", { href: "docs" }, "API for people"), " · ", h("a", { href: "openapi.json" }, "OpenAPI"),
      " · ", h("a", { href: "readyz" }, "Readiness")));
}
