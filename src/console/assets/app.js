// The frame of the console: key, tenant, navigation, and the page that the address names.
import { call, watchConnection } from "./api.js";
import { address, fill, h, oneAtATime, problem } from "./dom.js";
import { endSitting, followLink, login } from "./login.js";
import { listen, state, update, warnNext } from "./state.js";
import { choose, loadTenants, tenantPicker } from "./picker.js";
import { ask } from "./ask.js";
import { search } from "./search.js";
import { sources } from "./sources.js";
import { source } from "./source.js";
import { jobs } from "./jobs.js";
import { tenants } from "./tenants.js";
import { keys } from "./keys.js";
import { system } from "./system.js";
import { memories } from "./memories.js";
import { graph } from "./graph.js";
import { vectors } from "./vectors.js";
import { operations } from "./operations.js";

/**
 * @typedef {object} Page
 * @property {string} title
 * @property {(params: URLSearchParams, signal: AbortSignal) => Node | Promise<Node>} make
 * @property {"content" | "vectors" | "admin" | "any"} needs a tenant of documents, one of vectors, an admin key, nothing
 * @property {boolean} [isHidden] whether the navigation leaves it out
 */

/** @type {Record<string, Page>} */
const PAGES = {
  ask: { title: "Ask", make: ask, needs: "content" },
  search: { title: "Search", make: search, needs: "content" },
  sources: { title: "Sources", make: sources, needs: "content" },
  source: { title: "Source", make: source, needs: "content", isHidden: true },
  graph: { title: "Graph", make: graph, needs: "content" },
  memories: { title: "Memories", make: memories, needs: "content" },
  vectors: { title: "Vectors", make: vectors, needs: "vectors" },
  jobs: { title: "Jobs", make: jobs, needs: "any" },
  tenants: { title: "Tenants", make: tenants, needs: "any" },
  keys: { title: "Keys", make: keys, needs: "admin" },
  system: { title: "System", make: system, needs: "any" },
  api: { title: "API", make: operations, needs: "any" },
};
/** Time after which a page that is not there says so. */
const LOADING_MS = 200;
const THEMES = ["auto", "light", "dark"];

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const main = h("main", { id: "main", tabindex: "-1" });
const navigation = h("nav", { "aria-label": "Pages" });
const banner = h("div", { class: "banners", role: "status" });
let leaving = new AbortController();

/** The page and the parameters of the address. */
function place() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: name in PAGES ? name : "ask", params: new URLSearchParams(query) };
}

/** @param {Page} page */
function isOffered(page) {
  if (page.isHidden) return false;
  if (page.needs === "admin") return state.isAdmin === true;
  if (page.needs === "vectors") return state.mode === "embeddings";
  return page.needs === "any" || state.mode !== "embeddings";
}

function showNavigation() {
  const { name } = place();
  const current = name === "source" ? "sources" : name;
  const links = Object.entries(PAGES).filter(([, page]) => isOffered(page)).map(([to, page]) =>
    h("a", { href: address(to), "aria-current": to === current ? "page" : null }, page.title));
  fill(navigation, links);
  // On a narrow screen they are a row that scrolls.
  const shown = navigation.querySelector("[aria-current=page]");
  if (shown instanceof HTMLElement) navigation.scrollLeft = shown.offsetLeft - (navigation.clientWidth - shown.offsetWidth) / 2;
}

function showBanner() {
  fill(banner,
    state.connection === "down" && h("p", { class: "banner bad" },
      "The server does not answer. Trying again; nothing you started is lost while this page stays open."),
    state.warning && h("p", { class: "banner warn" }, state.warning,
      h("button", { class: "link", onclick: () => update({ warning: "" }) }, "Hide")));
}

/** Shows the page of the address. */
async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  let { name, params } = place();
  const tenant = params.get("tenant");
  if (tenant) choose(tenant, params.get("sub") ?? "");
  // Another tenant has shown the page already.
  if (signal.aborted) return;
  if (state.mode === "embeddings" && PAGES[name].needs === "content") name = "vectors";
  showNavigation();
  const page = PAGES[name];
  document.title = `${page.title} · Lodestone`;
  if (!state.tenant && page.needs !== "any" && page.needs !== "admin") {
    fill(main, h("h1", {}, page.title), state.isAdmin ? welcome() : firstTenant());
    return;
  }
  const waiting = setTimeout(() => !signal.aborted && fill(main, h("h1", {}, page.title), h("p", { class: "muted" }, "Loading…")), LOADING_MS);
  try {
    const made = await page.make(params, signal);
    if (signal.aborted) return;
    fill(main, made);
    // The focus was on what is gone: it moves to the page, where a screen reader reads on.
    if (document.activeElement === document.body) main.focus({ preventScroll: true });
  } catch (error) {
    if (!signal.aborted) fill(main, h("h1", {}, page.title), problem(error));
  } finally {
    clearTimeout(waiting);
  }
}

function firstTenant() {
  return h("div", { class: "empty" }, h("h2", {}, "Choose a tenant"),
    h("p", {}, "A tenant is an isolated set of documents. Every page shows one tenant at a time."),
    h("p", {}, "This key has no access to a tenant of documents yet: type its name into the box above."));
}

/** What to do first, where there is no tenant. */
function welcome() {
  const message = h("div", { "aria-live": "polite" });
  /** Makes a tenant and shows a page of it. */
  const begin = oneAtATime(async (_event, /** @type {string} */ tenant, /** @type {string} */ to, /** @type {Record<string, string>} */ params) => {
    try {
      await call("POST", "user/create_tenant", { query: { tenant_id: tenant }, json: {} });
      history.replaceState(null, "", address(to, params));
      await loadTenants();
    } catch (error) {
      fill(message, problem(error));
    }
  });
  const sample = (/** @type {Event} */ event) => begin(event, "sample", "ask", { sample: "load" });
  const own = (/** @type {Event} */ event) => begin(event, "main", "sources", {});
  return h("div", { class: "empty" }, h("h2", {}, "Nothing here yet"),
    h("p", {}, "Ask questions about five short documents, or add your own: PDF, Office, web pages, mail, text."),
    h("div", { class: "row center" }, h("button", { class: "primary", type: "button", onclick: sample }, "Try a small sample"),
      h("button", { type: "button", onclick: own }, "Add your documents")),
    h("p", { class: "small muted" }, "Each creates a tenant, an isolated set of documents: “sample” or “main”. ",
      h("a", { href: address("tenants") }, "Create one with another name")), message);
}

function themeButton() {
  const button = h("button", { class: "quiet", type: "button", onclick: next });
  let theme = stored();
  apply();
  function next() {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try {
      localStorage.setItem("lodestone.theme", theme);
    } catch {
      // Kept for this page only.
    }
    apply();
  }
  function apply() {
    document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  }
  return button;
}

function stored() {
  try {
    const theme = localStorage.getItem("lodestone.theme") ?? "";
    return THEMES.includes(theme) ? theme : "auto";
  } catch {
    return "auto";
  }
}

function showFrame() {
  const leave = oneAtATime(async () => {
    warnNext(await endSitting());
    update({ key: "", sitting: "", isAdmin: null, tenant: "", subTenant: "", mode: "standard" });
    // Questions, answers and names of files leave the memory of the tab too.
    location.replace(location.pathname);
  });
  const skip = h("button", { class: "skip", onclick: () => main.focus() }, "Skip to the page");
  fill(root, skip,
    h("header", { class: "top" }, h("a", { class: "brand", href: address("ask") }, "Lodestone"), tenantPicker(),
      h("div", { class: "row tools" }, themeButton(), h("button", { class: "quiet", type: "button", onclick: leave }, "Sign out"))),
    h("div", { class: "frame" }, navigation, h("div", { class: "page" }, banner, main)));
}

async function start() {
  if (!state.key) {
    leaving.abort();
    for (const dialog of document.querySelectorAll("dialog")) dialog.close();
    document.title = "Lodestone";
    const refused = await followLink();
    // Then the new key has shown the frame.
    if (state.key) return;
    fill(root, h("div", { class: "top-right" }, themeButton()), banner, login(refused));
    return;
  }
  showFrame();
  try {
    await loadTenants();
  } catch (error) {
    if (state.key) fill(main, problem(error));
    return;
  }
  await show();
}

watchConnection();
listen("key", start);
listen("tenant", show);
listen("subTenant", show);
listen("mode", show);
listen("isAdmin", showNavigation);
listen("connection", showBanner);
listen("warning", showBanner);
// What a button began and nothing has caught, such as a deletion that is refused.
window.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  const { reason } = event;
  // Who is signed out has been told why.
  if (state.key && reason?.name !== "AbortError") update({ warning: reason instanceof Error ? reason.message : String(reason) });
});
window.addEventListener("hashchange", () => {
  if (state.key) show();
  else if (location.hash.startsWith("#sign-in=")) start();
});
// What the page before left to be told.
start().then(showBanner);
