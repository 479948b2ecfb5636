// The API: every operation of the server's own document, with its fields, and a form that sends it.
import { ApiError, call, open } from "./api.js";
import { field, fill, h, oneAtATime, problem } from "./dom.js";
import { scope } from "./state.js";

/** @typedef {{type?: string, format?: string, enum?: any[], anyOf?: Schema[], items?: Schema, properties?: Record<string, Schema>, required?: string[], default?: any, description?: string, minimum?: number, maximum?: number, maxLength?: number, $ref?: string}} Schema */
/** @typedef {{name: string, in: string, required: boolean, description?: string, schema: Schema}} Parameter */
/** @typedef {{operationId: string, tags?: string[], summary: string, description?: string, "x-role"?: string, parameters?: Parameter[], requestBody?: {content: Record<string, {schema: Schema}>}, responses: Record<string, {description?: string, content?: Record<string, {schema: Schema}>}>}} Operation */

/** Characters of an answer that are shown. */
const SHOWN_MAX = 20_000;
const DEPTH_MAX = 3;

/**
 * The page.
 * @param {URLSearchParams} _params
 * @param {AbortSignal} leaving
 */
export async function operations(_params, leaving) {
  const api = await call("GET", "openapi.json", { signal: leaving });
  /** @param {Schema | undefined} schema @returns {Schema} */
  const resolved = (schema) => (schema?.$ref ? api.components.schemas[schema.$ref.split("/").pop() ?? ""] ?? {} : schema ?? {});
  /** @type {Map<string, HTMLElement[]>} */
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const group = operation.tags?.[0] ?? "other";
      groups.set(group, [...groups.get(group) ?? [], shown(path, method.toUpperCase(), operation, resolved, leaving)]);
    }
  }
  const words = h("input", { type: "search", placeholder: "upload, search, keys …", oninput: () => narrow(words.value) });
  const list = h("div", {}, [...groups].map(([name, boxes]) => h("section", {}, h("h2", {}, name), boxes)));
  /** @param {string} text */
  function narrow(text) {
    const wanted = text.trim().toLowerCase().split(/\s+/);
    for (const section of list.children) {
      for (const box of section.querySelectorAll("details")) {
        const said = box.querySelector("summary")?.textContent?.toLowerCase() ?? "";
        box.hidden = !wanted.every((word) => said.includes(word));
      }
      /** @type {HTMLElement} */ (section).hidden = !section.querySelector("details:not([hidden])");
    }
  }
  return h("div", {}, h("h1", {}, "API"),
    h("p", { class: "muted" }, "Source: ", h("a", { href: "openapi.json" }, "openapi.json"), "; as one page for printing: ", h("a", { href: "docs" }, "docs"), ". Requests made here use your key and take effect."),
    field("Find an operation", words), list);
}

/**
 * One operation; its form is made when it is opened.
 * @param {string} path
 * @param {string} method
 * @param {Operation} operation
 * @param {(schema: Schema | undefined) => Schema} resolved
 * @param {AbortSignal} leaving
 */
function shown(path, method, operation, resolved, leaving) {
  const place = h("div", { class: "stack" });
  const box = h("details", { class: "card operation", ontoggle: () => box.open && place.childNodes.length === 0 && fill(place, inside(path, method, operation, resolved, leaving)) },
    h("summary", {}, h("strong", { class: "method" }, method), " ", h("code", {}, path), h("span", { class: "muted block small" }, operation.summary)), place);
  return box;
}

/**
 * @param {string} path
 * @param {string} method
 * @param {Operation} operation
 * @param {(schema: Schema | undefined) => Schema} resolved
 * @param {AbortSignal} leaving
 */
function inside(path, method, operation, resolved, leaving) {
  const [media, content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const schema = resolved(content?.schema);
  const members = Object.entries(schema.properties ?? {}).map(([name, one]) => ({ name, in: "body", required: schema.required?.includes(name) ?? false, description: one.description, schema: one }));
  const isForm = media === "multipart/form-data";
  const fields = [...operation.parameters ?? [], ...members];
  return [h("p", {}, operation.description), fields.length > 0 && tableOf(fields, resolved), answers(operation, resolved),
    isForm || (media && media !== "application/json") ? h("p", { class: "muted" }, `Its body is ${media}: add files on the page Sources, or from a terminal.`)
      : sending(path, method, operation.parameters ?? [], media ? schema : null, resolved, leaving)];
}

/**
 * @param {Parameter[]} fields
 * @param {(schema: Schema | undefined) => Schema} resolved
 */
function tableOf(fields, resolved) {
  const row = (/** @type {Parameter} */ one) => h("tr", {}, h("td", {}, h("code", {}, one.name), one.required && h("span", { class: "small block" }, "required")), h("td", {}, one.in),
    h("td", {}, kindOf(resolved(one.schema), resolved)), h("td", {}, one.schema.default === undefined ? "" : h("code", {}, JSON.stringify(one.schema.default))), h("td", {}, one.description));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Fields" }, h("table", {}, h("thead", {}, h("tr", {}, ["Name", "In", "Type", "Default", "Meaning"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, fields.map(row))));
}

/**
 * @param {Schema} schema
 * @param {(schema: Schema | undefined) => Schema} resolved
 * @returns {string}
 */
function kindOf(schema, resolved) {
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(", ");
  if (schema.anyOf) return schema.anyOf.map((one) => kindOf(resolved(one), resolved)).join(" or ");
  if (schema.type === "array") return `list of ${kindOf(resolved(schema.items), resolved)}`;
  const range = schema.minimum !== undefined && schema.maximum !== undefined ? `, ${schema.minimum} to ${schema.maximum}` : schema.maxLength ? `, up to ${schema.maxLength} characters` : "";
  return `${schema.type ?? "any"}${range}`;
}

/**
 * The answers of an operation, each with the shape of its body.
 * @param {Operation} operation
 * @param {(schema: Schema | undefined) => Schema} resolved
 */
function answers(operation, resolved) {
  return h("details", {}, h("summary", {}, "Answers"), Object.entries(operation.responses).map(([status, { description, content }]) => {
    const schema = content?.["application/json"]?.schema;
    return h("div", {}, h("p", {}, h("strong", {}, status), " ", description), schema && status.startsWith("2") && h("pre", { class: "code", tabindex: "0" }, JSON.stringify(sample(schema, resolved), null, 2)));
  }));
}

/**
 * A value of the form of a schema.
 * @param {Schema | undefined} schema
 * @param {(schema: Schema | undefined) => Schema} resolved
 * @param {number} [depth]
 * @returns {any}
 */
function sample(schema, resolved, depth = 0) {
  const { type, enum: words, anyOf, items, properties, default: usual } = resolved(schema);
  if (usual !== undefined) return usual;
  if (words) return words[0];
  if (anyOf) return sample(anyOf[0], resolved, depth);
  if (type === "object" || properties) return depth > DEPTH_MAX ? {} : Object.fromEntries(Object.entries(properties ?? {}).map(([name, one]) => [name, sample(one, resolved, depth + 1)]));
  if (type === "array") return depth > DEPTH_MAX ? [] : [sample(items, resolved, depth + 1)];
  return { string: "…", integer: 0, number: 0, boolean: false }[type ?? ""] ?? null;
}

/**
 * The form that sends an operation, filled with the tenant of the console.
 * @param {string} path
 * @param {string} method
 * @param {Parameter[]} parameters
 * @param {Schema | null} body
 * @param {(schema: Schema | undefined) => Schema} resolved
 * @param {AbortSignal} leaving
 */
function sending(path, method, parameters, body, resolved, leaving) {
  /** @type {Record<string, string>} */
  const known = { ...scope() };
  const asked = parameters.filter((one) => one.in === "path" || one.in === "query");
  const inputs = new Map(asked.map((one) => [one, h("input", { value: known[one.name] ?? "", required: one.required, spellcheck: "false" })]));
  const first = Object.entries(body?.properties ?? {}).filter(([name]) => name in known || body?.required?.includes(name));
  const text = h("textarea", { class: "code", rows: "6", spellcheck: "false", value: JSON.stringify(Object.fromEntries(first.map(([name, one]) => [name, known[name] ?? sample(one, resolved)])), null, 2) });
  const place = h("div", { "aria-live": "polite" });
  const send = oneAtATime(async () => {
    const values = [...inputs].map(([one, input]) => /** @type {const} */ ([one, input.value]));
    const target = values.filter(([one]) => one.in === "path").reduce((made, [one, value]) => made.replace(`{${one.name}}`, encodeURIComponent(value)), path.slice(1));
    const query = Object.fromEntries(values.filter(([one]) => one.in === "query").map(([one, value]) => [one.name, value]));
    const began = performance.now();
    try {
      const response = await open(method, target, { query, json: body ? JSON.parse(text.value) : undefined, signal: leaving });
      show(`${response.status} after ${Math.round(performance.now() - began)} ms`, await response.text());
    } catch (error) {
      if (error instanceof ApiError) show(String(error.status), error.message);
      else fill(place, problem(error));
    }
  });
  /** @param {string} head @param {string} said */
  function show(head, said) {
    let told = said;
    try {
      told = JSON.stringify(JSON.parse(said), null, 2);
    } catch {
      // It is no JSON.
    }
    fill(place, h("p", {}, h("strong", {}, head)), h("pre", { class: "code", tabindex: "0" }, told.length > SHOWN_MAX ? `${told.slice(0, SHOWN_MAX)}\n… ${told.length - SHOWN_MAX} more characters` : told));
  }
  return h("form", { class: "stack", onsubmit: send }, inputs.size > 0 && h("div", { class: "options" }, [...inputs].map(([one, input]) => field(one.name, input))),
    body && field("Body (JSON)", text), h("div", {}, h("button", { class: "primary", type: "submit" }, "Send")), place);
}
