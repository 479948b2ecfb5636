// Memories: what the tenant remembers of its people.
import { ask, call } from "./api.js";
import { age, confirmation, empty, field, fill, h, oneAtATime, plural, problem, unique } from "./dom.js";
import { scope } from "./state.js";

/**
 * The page.
 * @param {URLSearchParams} _params
 * @param {AbortSignal} leaving
 */
export async function memories(_params, leaving) {
  const list = h("div", { "aria-live": "polite" });
  const query = h("input", { type: "search", placeholder: "find a memory", "aria-label": "Find a memory" });
  const text = h("textarea", { rows: "2", required: true, maxlength: "32768" });
  const message = h("div", { "aria-live": "polite" });
  async function load() {
    const wanted = query.value.trim();
    const found = wanted
      ? (await ask(`user_memory/retrieve_user_memory?${new URLSearchParams(scope())}`, { query: wanted }, leaving)).retrieved_user_memories
      : (await call("GET", "user_memory/list_user_memories", { query: scope(), signal: leaving })).user_memories;
    fill(list, found.length === 0 ? empty(wanted ? "Nothing found" : "No memories yet", h("p", {}, "A memory is a statement about a person or a preference. Searches that ask for it take memories into account; they never appear as documents."))
      : [h("p", { class: "muted" }, plural(found.length, "memory").replace("memorys", "memories")), h("ul", { class: "plain cards" }, found.map(card))]);
  }
  /** @param {any} memory */
  function card(memory) {
    const drop = oneAtATime(async () => {
      if (!await confirmation("Delete this memory?", memory.memory_content, "Delete")) return;
      await call("DELETE", "user_memory/delete_user_memory", { query: { ...scope(), memory_id: memory.memory_id } });
      await load();
    });
    return h("li", { class: "card row between" }, h("div", { class: "grow" }, h("p", { class: "text" }, memory.memory_content),
      h("p", { class: "muted small" }, age(memory.created_at), memory.expires_at && [" · expires ", age(memory.expires_at)])),
    h("button", { class: "quiet", type: "button", onclick: drop }, "Delete"));
  }
  const add = oneAtATime(async () => {
    try {
      await call("POST", "user_memory/add_user_memory", { query: scope(), json: { user_memory: text.value.trim() }, once: unique() });
      text.value = "";
      fill(message);
      await load();
    } catch (error) {
      fill(message, problem(error));
    }
  });
  /** @param {Event} event */
  const find = (event) => {
    event.preventDefault();
    void load();
  };
  await load();
  return h("div", {}, h("h1", {}, "Memories"),
    h("form", { class: "card", onsubmit: add }, h("div", { class: "ask-row" }, field("A new memory", text), h("button", { class: "primary", type: "submit" }, "Add")), message),
    h("form", { class: "row bar", onsubmit: find }, query, h("button", { type: "submit" }, "Find")), list);
}
