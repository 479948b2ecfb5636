// The first page: the key.
import { call, ApiError } from "./api.js";
import { field, fill, h, problem } from "./dom.js";
import { update } from "./state.js";

/** The form that takes the key. */
export function login() {
  const input = h("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const button = h("button", { class: "primary", type: "submit" }, "Sign in");
  const message = h("div", { "aria-live": "polite" });
  /** @param {Event} event */
  async function enter(event) {
    event.preventDefault();
    const key = input.value.trim();
    button.disabled = true;
    fill(message, h("p", { class: "muted" }, "Asking the server…"));
    try {
      await call("GET", "jobs", { query: { limit: 1 }, key });
      update({ key });
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
      h("p", {}, "The first start of the server shows an admin key on its terminal, once. Where the output is no terminal the key is in the file ",
        h("code", {}, "admin_key"), " of the data directory. The operator can also set one with ", h("code", {}, "LODESTONE_ADMIN_KEY"),
        ", and make others on the page Keys.")),
    h("p", { class: "small" }, h("a", { href: "docs" }, "API for people"), " · ", h("a", { href: "openapi.json" }, "OpenAPI"),
      " · ", h("a", { href: "readyz" }, "Readiness")));
}
