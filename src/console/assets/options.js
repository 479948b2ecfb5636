// Parameters that questions and searches share, and a request as a command.
import { field, fill, h, problem, tick } from "./dom.js";
import { schema } from "./picker.js";

/**
 * The controls of a search.
 * @param {"qna" | "retrieve"} kind
 */
export function options(kind) {
  const isAuto = h("input", { type: "checkbox", checked: true, onchange: show });
  const alpha = h("input", { type: "range", min: "0", max: "1", step: "0.05", value: "0.8", oninput: show });
  const shown = h("output");
  const recency = h("input", { type: "range", min: "0", max: "1", step: "0.1", value: "0", oninput: show });
  const recencyShown = h("output");
  const mode = h("select", {}, h("option", { value: "fast" }, "fast"), h("option", { value: "accurate" }, "accurate"));
  const most = h("input", { type: "number", min: "1", max: "1001", value: "10" });
  const perSource = h("input", { type: "number", min: "1", max: "1001", placeholder: "no limit" });
  const withGraph = h("input", { type: "checkbox" });
  const personal = h("input", { type: "checkbox" });
  const filters = h("textarea", { class: "code", rows: "3", spellcheck: "false", placeholder: "{\"document_metadata\": {\"team\": \"sales\"}}" });
  const message = h("div", { "aria-live": "polite" });
  function show() {
    alpha.disabled = isAuto.checked;
    shown.textContent = isAuto.checked ? "auto" : Number(alpha.value).toFixed(2);
    recencyShown.textContent = Number(recency.value).toFixed(1);
  }
  show();
  /** @param {HTMLInputElement} slider @param {HTMLOutputElement} output */
  const sliding = (slider, output) => h("div", { class: "row" }, slider, output);
  const node = h("div", { class: "options" },
    h("div", { class: "field" }, h("label", { for: label(alpha, "alpha") }, "Alpha: words to meaning"), sliding(alpha, shown), tick("auto", isAuto)),
    h("div", { class: "field" }, h("label", { for: label(recency, "recency") }, "Recency"), sliding(recency, recencyShown)),
    field("Mode", mode), field("Passages", most), field("Passages per source", perSource),
    h("div", { class: "stack" }, tick("Relations of entities", withGraph), tick("Steered by memories", personal)),
    h("div", { class: "wide-field" }, field("Filters (JSON)", filters, hint()), message));

  /** The parameters; null, with a message, where the filters are not JSON. */
  function read() {
    fill(message);
    const given = parse(filters.value);
    if (given instanceof Error) {
      fill(message, problem(`Filters: ${given.message}`));
      filters.focus();
      return null;
    }
    const used = isAuto.checked ? "auto" : Number(alpha.value);
    return {
      ...(kind === "qna" ? { search_alpha: used, top_n: Number(most.value) || 10 } : { alpha: used, max_chunks: Number(most.value) || 10 }),
      mode: mode.value,
      recency_bias: Number(recency.value) || undefined,
      max_chunks_per_source: Number(perSource.value) || undefined,
      graph_context: withGraph.checked || undefined,
      personalise_search: personal.checked || undefined,
      explain: true,
      ...given,
    };
  }
  return { node, read };
}

/**
 * @param {HTMLElement} control
 * @param {string} name
 */
function label(control, name) {
  control.id = `option-${name}-${++made}`;
  return control.id;
}
let made = 0;

const FILTERS = ["document_metadata", "tenant_metadata", "metadata", "context_list"];

/**
 * Filters of a request.
 * @param {string} text
 * @returns {Record<string, unknown> | Error}
 */
export function parse(text) {
  if (text.trim() === "") return {};
  try {
    const value = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return new Error("must be a JSON object.");
    const other = Object.keys(value).find((name) => !FILTERS.includes(name));
    return other === undefined ? value : new Error(`"${other}" is not one of ${FILTERS.join(", ")}.`);
  } catch (error) {
    return new Error(error instanceof Error ? error.message : "not JSON");
  }
}

function hint() {
  const declared = schema().filter((one) => one.index_filterable).map((one) => `${one.field_name} (${one.type})`);
  const own = declared.length > 0 ? ` Declared keys of tenant_metadata: ${declared.join(", ")}.` : "";
  return `Members: ${FILTERS.join(", ")}. Operators: $gt, $gte, $lt, $lte, $in, $nin, $ne, $exists, $and, $or.${own}`;
}

/** @param {string} path */
function full(path) {
  return new URL(path, document.baseURI.split("#")[0]).href;
}

/**
 * The request as a command. The key is a variable, so that it is not copied along.
 * @param {string} path
 * @param {unknown} body
 */
export function asCurl(path, body) {
  const text = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return `curl -s '${full(path)}' \\\n  -H "authorization: Bearer $LODESTONE_API_KEY" -H 'content-type: application/json' \\\n  -d '${text}'\n`;
}

/**
 * @param {string} path
 * @param {unknown} body
 */
export function asPython(path, body) {
  const text = JSON.stringify(JSON.stringify(body));
  return `import json, os, urllib.request

body = json.loads(${text})
request = urllib.request.Request(
    ${JSON.stringify(full(path))},
    data=json.dumps(body).encode(),
    headers={"authorization": "Bearer " + os.environ["LODESTONE_API_KEY"], "content-type": "application/json"},
)
print(json.dumps(json.load(urllib.request.urlopen(request)), indent=2, ensure_ascii=False))
`;
}
