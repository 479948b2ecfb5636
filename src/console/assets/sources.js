// Sources: adding them, and the list of those that are there.
import { call } from "./api.js";
import { address, age, count, empty, field, fill, h, oneAtATime, plural, problem, size } from "./dom.js";
import { remove } from "./source.js";
import { scope } from "./state.js";
import { loadSample } from "./sample.js";
import { addFiles, addPage, addText, badge, filesOf, onProcessed, replaceButton, retry, uploads, warnings, why } from "./upload.js";

const PAGE = 50;

/**
 * The page.
 * @param {URLSearchParams} _params
 * @param {AbortSignal} leaving
 */
export async function sources(_params, leaving) {
  const list = h("div");
  const table = sourceTable(list, leaving);
  void table.load();
  onProcessed(() => void table.load(), leaving);
  return h("div", {}, h("h1", {}, "Sources"), adding(), uploads(), table.bar, list);
}

/** Ways to add: a drop, files, a folder, a text, an address. */
function adding() {
  const files = h("input", { type: "file", multiple: true, hidden: true, onchange: () => take(files) });
  const folder = h("input", { type: "file", webkitdirectory: true, hidden: true, onchange: () => take(folder) });
  /** @param {HTMLInputElement} input */
  function take(input) {
    void addFiles([...(input.files ?? [])].map((file) => ({ file, path: file.webkitRelativePath || file.name }))
      .filter(({ path }) => !path.split("/").some((part) => part.startsWith("."))));
    input.value = "";
  }
  const zone = h("div", { class: "drop", ondragover: over, ondragleave: out, ondrop: drop },
    h("p", {}, h("strong", {}, "Drop files or folders here")),
    h("div", { class: "row center" }, files, folder,
      h("button", { class: "primary", type: "button", onclick: () => files.click() }, "Choose files"),
      h("button", { type: "button", onclick: () => folder.click() }, "Choose a folder")),
    h("p", { class: "muted small" }, "PDF, Word, PowerPoint, Excel, OpenDocument, EPUB, e-mail, HTML, Markdown, text, CSV, JSON, XML. Up to 100 MiB each. A file of the same name replaces the earlier one."));
  /** @param {DragEvent} event */
  function over(event) {
    event.preventDefault();
    zone.classList.add("over");
  }
  function out() {
    zone.classList.remove("over");
  }
  /** @param {DragEvent} event */
  async function drop(event) {
    event.preventDefault();
    out();
    if (event.dataTransfer) await addFiles(await filesOf(event.dataTransfer));
  }
  return h("section", { class: "card", "aria-label": "Add sources" }, zone,
    h("div", { class: "columns" }, h("details", {}, h("summary", {}, "Paste a text"), textForm()),
      h("details", {}, h("summary", {}, "Add a web address"), pageForm())));
}

function textForm() {
  const title = h("input", { maxlength: "200" });
  const text = h("textarea", { rows: "6", required: true });
  /** @param {Event} event */
  function add(event) {
    event.preventDefault();
    addText(title.value.trim(), text.value);
    title.value = text.value = "";
  }
  return h("form", { class: "stack", onsubmit: add }, field("Title", title), field("Text", text), h("div", {}, h("button", { type: "submit" }, "Add the text")));
}

function pageForm() {
  const url = h("input", { type: "url", required: true, maxlength: "2048", placeholder: "https://" });
  /** @param {Event} event */
  function add(event) {
    event.preventDefault();
    addPage(url.value.trim());
    url.value = "";
  }
  return h("form", { class: "stack", onsubmit: add }, field("Address", url, "The server fetches it; it runs no scripts and reaches no private addresses."),
    h("div", {}, h("button", { type: "submit" }, "Fetch the page")));
}

/**
 * @param {HTMLElement} place
 * @param {AbortSignal} leaving
 */
function sourceTable(place, leaving) {
  /** @type {string[]} */
  let cursors = [""];
  const status = h("select", { onchange: first }, [["", "any state"], ["success", "searchable"], ["queued", "queued"], ["in_progress", "in progress"], ["errored", "failed"]]
    .map(([value, text]) => h("option", { value }, text)));
  const id = h("input", { type: "search", placeholder: "exact id", size: "18" });
  const bar = h("form", { class: "row bar", onsubmit: find }, h("label", { class: "row" }, "State", status), h("label", { class: "row" }, "Id", id), h("button", { type: "submit" }, "Find"));
  function first() {
    cursors = [""];
    return load();
  }
  /** @param {Event} event */
  function find(event) {
    event.preventDefault();
    void first();
  }
  async function page() {
    if (id.value.trim()) {
      const found = await call("POST", "list/sources_by_id", { json: { ...scope(), source_ids: [id.value.trim()] }, signal: leaving, isRepeatable: true });
      return { sources: found.sources, total: found.sources.length, next_cursor: null };
    }
    return call("GET", "list/sources", { query: { ...scope(), limit: PAGE, cursor: cursors.at(-1), status: status.value }, signal: leaving });
  }
  async function load() {
    try {
      const { sources: shown, total, next_cursor: next } = await page();
      const isEmpty = total === 0 && !status.value && !id.value;
      bar.hidden = isEmpty;
      fill(place, isEmpty ? nothing() : [h("p", { class: "muted" }, plural(total, "source")), shown.length > 0 ? tableOf(shown, () => void load()) : h("p", {}, "No matches."), paging(next)]);
    } catch (error) {
      if (!leaving.aborted) fill(place, problem(error));
    }
  }
  /** @param {string | null} next */
  function paging(next) {
    const back = () => {
      cursors.pop();
      void load();
    };
    const forth = () => {
      cursors.push(next ?? "");
      void load();
    };
    if (cursors.length === 1 && !next) return null;
    return h("div", { class: "row" }, h("button", { type: "button", disabled: cursors.length === 1, onclick: back }, "Newer"),
      h("span", { class: "muted" }, `Page ${count(cursors.length)}`), h("button", { type: "button", disabled: !next, onclick: forth }, "Older"));
  }
  function nothing() {
    const message = h("p", { class: "muted", "aria-live": "polite" });
    const sample = h("button", { type: "button", onclick: oneAtATime(async () => {
      try {
        await loadSample((text) => (message.textContent = text), leaving);
        location.hash = address("ask", { sample: "1" });
      } catch (error) {
        if (!leaving.aborted) fill(message, problem(error));
      }
    }) }, "Load a small sample");
    return empty("No documents yet", h("p", {}, "Drop a folder above, or try five short documents about a product that does not exist."), sample, message);
  }
  return { load, bar };
}

/**
 * @param {any[]} shown
 * @param {() => void} reload
 */
function tableOf(shown, reload) {
  const head = ["Title", "State", "Passages", "Size", "Uploaded", ""];
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, head.map((text) => (text ? h("th", { scope: "col" }, text) : h("td"))))),
    h("tbody", {}, shown.map((source) => row(source, reload)))));
}

/**
 * @param {any} source
 * @param {() => void} reload
 */
function row(source, reload) {
  const note = h("span", { class: "muted small block" }, warnings(source).join(" · "));
  if (source.status === "errored") {
    call("GET", "upload/verify_processing", { query: { ...scope(), file_id: source.id } }).then((seen) => (note.textContent = why(seen)), () => {});
  }
  const again = () => {
    retry(source);
    window.scrollTo(0, 0);
  };
  const drop = oneAtATime(async () => {
    if (await remove([source.id], source.title)) reload();
  });
  return h("tr", {},
    h("td", { class: "title" }, h("a", { href: address("source", { id: source.id }) }, source.title), note), h("td", {}, badge(source.status)),
    h("td", { class: "figure", "data-name": source.chunk_count === 1 ? "passage" : "passages" }, source.chunk_count === null ? "" : count(source.chunk_count)), h("td", { class: "figure" }, size(source.size_bytes)), h("td", {}, age(source.timestamp)),
    h("td", { class: "actions" }, source.status === "errored" && h("button", { type: "button", onclick: again }, "Try again"), replaceButton(source.id, () => window.scrollTo(0, 0)), h("button", { class: "quiet", type: "button", onclick: drop, "aria-label": `Delete ${source.title}` }, "Delete")));
}
