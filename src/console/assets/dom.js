// Elements made from data. Text only ever becomes text: nothing here reads markup.

/** @typedef {Node | string | number | null | undefined | false} Leaf */
/** @typedef {Leaf | any[]} Child */
/** @typedef {Record<string, any>} Props */

/** Properties that are set as such; everything else is an attribute. */
const PROPERTIES = new Set(["value", "checked", "disabled", "selected", "open", "hidden", "indeterminate"]);
const SVG = "http://www.w3.org/2000/svg";

/**
 * Appends children; text becomes text nodes.
 * @param {Element | DocumentFragment} parent
 * @param {Child[]} children
 */
export function append(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Whether an address may stand in a link: within the console, or http and https.
 * @param {unknown} value
 */
export function isSafeAddress(value) {
  try {
    return ["http:", "https:", "blob:"].includes(new URL(String(value), document.baseURI).protocol);
  } catch {
    return false;
  }
}

/**
 * @param {Element} node
 * @param {Props} props
 */
function assign(node, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) {
      if (typeof value === "function") node.addEventListener(name.slice(2), value);
    } else if (PROPERTIES.has(name)) {
      /** @type {any} */ (node)[name] = value;
    } else if (name === "href" || name === "src") {
      if (isSafeAddress(value)) node.setAttribute(name, String(value));
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * An element of HTML.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Props} [props] attributes; `on...` are listeners
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  // Options before the value that chooses one of them.
  append(node, children);
  assign(node, props);
  return node;
}

/**
 * An element of SVG.
 * @param {string} tag
 * @param {Props} [props]
 * @param {...Child} children
 */
export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  assign(node, props);
  append(node, children);
  return node;
}

/**
 * Puts other children in place of those of an element.
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  const fragment = document.createDocumentFragment();
  append(fragment, children);
  parent.replaceChildren(fragment);
}

/** Work on many things pauses after this time. */
const TURN_MS = 8;

/**
 * Does work on many things, with pauses in which the browser draws and answers the person.
 * @template T
 * @param {Iterable<T>} things
 * @param {(thing: T) => void} work
 * @param {() => void} [beforePause]
 */
export async function inTurns(things, work, beforePause) {
  let until = performance.now() + TURN_MS;
  for (const thing of things) {
    work(thing);
    if (performance.now() < until) continue;
    beforePause?.();
    await new Promise((resolve) => setTimeout(resolve));
    until = performance.now() + TURN_MS;
  }
}

/**
 * A link within the console.
 * @param {string} page
 * @param {Record<string, string>} [params]
 */
export function address(page, params = {}) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "")).toString();
  return `#/${page}${query ? `?${query}` : ""}`;
}

/**
 * A labelled control.
 * @param {string} label
 * @param {HTMLElement} control
 * @param {Child} [hint]
 */
export function field(label, control, hint) {
  control.id ||= `f${++fields}`;
  const note = hint ? h("small", { class: "muted", id: `${control.id}-hint` }, hint) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, note);
}
let fields = 0;

/**
 * A labelled box to tick.
 * @param {string} label
 * @param {HTMLInputElement} control
 */
export function tick(label, control) {
  return h("label", { class: "tick" }, control, label);
}

/**
 * A box that says what is wrong, and what to do.
 * @param {unknown} error
 * @param {Child} [advice]
 */
export function problem(error, advice) {
  const text = error instanceof Error ? error.message : String(error);
  const id = /** @type {any} */ (error)?.requestId;
  return h("div", { class: "note bad", role: "alert" }, h("p", {}, text), advice && h("p", {}, advice),
    id && h("p", { class: "muted small" }, `Request ${id}`));
}

/**
 * What a page shows where there is nothing yet.
 * @param {string} title
 * @param {...Child} children
 */
export function empty(title, ...children) {
  return h("div", { class: "empty" }, h("h2", {}, title), children);
}

/**
 * A listener that takes nothing while the work that an event began goes on: what is pressed twice is
 * done once.
 * @template {any[]} T
 * @param {(event: Event, ...rest: T) => Promise<unknown>} work
 * @returns {(event: Event, ...rest: T) => Promise<void>}
 */
export function oneAtATime(work) {
  let isBusy = false;
  return async (event, ...rest) => {
    // Of a form it is the page that sends it, never the browser.
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    const pressed = event instanceof SubmitEvent ? event.submitter : event.currentTarget;
    const button = pressed instanceof HTMLElement ? pressed : null;
    // Not disabled: a button that was pressed keeps the focus.
    button?.setAttribute("aria-disabled", "true");
    try {
      await work(event, ...rest);
    } finally {
      isBusy = false;
      button?.removeAttribute("aria-disabled");
    }
  };
}

/**
 * Asks in a dialog; resolves to whether the answer is yes.
 * @param {string} title
 * @param {Child} text
 * @param {string} action
 * @param {string} [typed] text that must be typed first
 * @returns {Promise<boolean>}
 */
export function confirmation(title, text, action, typed) {
  return new Promise((resolve) => {
    const go = h("button", { class: "danger", type: "submit", disabled: typed !== undefined }, action);
    const proof = h("input", { autocomplete: "off", oninput: () => (go.disabled = proof.value !== typed) });
    const form = h("form", { method: "dialog", onsubmit: () => (dialog.returnValue = "yes") },
      h("h2", { id: "confirmation" }, title), h("p", {}, text),
      typed !== undefined && field(`Type ${typed} to confirm`, proof),
      h("div", { class: "row end" }, h("button", { type: "button", onclick: () => dialog.close("") }, "Cancel"), go));
    const dialog = h("dialog", { class: "small-dialog", "aria-labelledby": "confirmation" }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/**
 * Asks for a line of text in a dialog; resolves to it, or to nothing.
 * @param {string} title
 * @param {string} label
 * @param {string} action
 * @returns {Promise<string>}
 */
export function entry(title, label, action) {
  return new Promise((resolve) => {
    const input = h("input", { required: true, maxlength: "256", autocomplete: "off" });
    const form = h("form", { method: "dialog", onsubmit: () => (dialog.returnValue = input.value.trim()) },
      h("h2", { id: "entry" }, title), field(label, input),
      h("div", { class: "row end" }, h("button", { type: "button", onclick: () => dialog.close("") }, "Cancel"), h("button", { class: "primary", type: "submit" }, action)));
    const dialog = h("dialog", { class: "small-dialog", "aria-labelledby": "entry" }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** A random name. (`crypto.randomUUID` is missing on addresses without TLS.) */
export function unique() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * A button that copies a text.
 * @param {string} label
 * @param {() => string} text
 */
export function copyButton(label, text) {
  const button = h("button", { type: "button", onclick: copy }, label);
  async function copy() {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      const area = h("textarea", { class: "code", rows: "8", readonly: true, value: text(), "aria-label": label });
      button.after(area);
      area.select();
      button.textContent = "Copy from here";
    }
    setTimeout(() => (button.textContent = label), 2000);
  }
  return button;
}

const BYTES = ["B", "KB", "MB", "GB"];

/** @param {number | null | undefined} bytes */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "";
  let [value, unit] = [bytes, 0];
  while (value >= 1000 && unit < BYTES.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${value >= 100 || unit === 0 ? value.toFixed(0) : value.toFixed(1)} ${BYTES[unit]}`;
}

const agoFormat = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const timeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });
const countFormat = new Intl.NumberFormat("en");
const STEPS = /** @type {const} */ ([[60, "second"], [60, "minute"], [24, "hour"], [30, "day"], [12, "month"], [Infinity, "year"]]);

/**
 * A time, given in epoch seconds, as an age; the exact time is its title.
 * @param {string | null | undefined} seconds
 */
export function age(seconds) {
  if (!seconds) return h("span");
  const at = new Date(Number(seconds) * 1000);
  let value = (at.getTime() - Date.now()) / 1000;
  for (const [count, unit] of STEPS) {
    if (Math.abs(value) < count) {
      const text = agoFormat.format(Math.round(value), unit);
      return h("time", { datetime: at.toISOString(), title: timeFormat.format(at) }, text);
    }
    value /= count;
  }
  return h("span");
}

/** @param {number} value */
export function count(value) {
  return countFormat.format(value);
}

/**
 * @param {number} value
 * @param {string} one
 */
export function plural(value, one) {
  return `${count(value)} ${value === 1 ? one : `${one}s`}`;
}

/**
 * Milliseconds for people.
 * @param {number} ms
 */
export function duration(ms) {
  return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
