// Jobs: what waits, runs, is done or has failed.
import { call, pause } from "./api.js";
import { address, age, count, empty, fill, h, oneAtATime, problem } from "./dom.js";
import { state, scope } from "./state.js";
import { badge, why } from "./upload.js";

const POLL_MS = 2000;
const PAGE = 50;
const COUNTS = /** @type {const} */ ([["queued", "waiting"], ["in_progress", "running"], ["success", "done"], ["errored", "failed"]]);

/**
 * The page.
 * @param {URLSearchParams} params
 * @param {AbortSignal} leaving
 */
export async function jobs(params, leaving) {
  const everywhere = h("input", { type: "checkbox", checked: !state.tenant, disabled: !state.tenant, onchange: again });
  let status = params.get("status") ?? "";
  /** @type {string[]} */
  let cursors = [""];
  const counts = h("div", { class: "tiles" });
  const list = h("div");
  const message = h("div", { "aria-live": "polite" });
  /** @type {{at: number, ended: number} | null} */
  let before = null;

  async function load() {
    const where = everywhere.checked ? {} : scope();
    const { jobs: shown, counts: all, next_cursor: next } = await call("GET", "jobs", { query: { ...where, status, limit: PAGE, cursor: cursors.at(-1) }, signal: leaving });
    const ended = all.success + all.errored;
    const rate = before && performance.now() > before.at ? Math.max(0, (ended - before.ended) / ((performance.now() - before.at) / 1000)) : null;
    before = { at: performance.now(), ended };
    fill(counts, COUNTS.map(([name, text]) => h("button", { type: "button", class: "tile", "aria-pressed": String(status === name), onclick: () => {
      status = status === name ? "" : name;
      again();
    } }, h("strong", {}, count(all[name])), text)), all.queued + all.in_progress > 0 && rate !== null && h("p", { class: "tile" }, h("strong", {}, rate.toFixed(1)), "ended per second"));
    fill(list, shown.length > 0 ? tableOf(shown, retry) : empty("No jobs", h("p", {}, "Each upload is a job until it is searchable or has failed.")),
      (cursors.length > 1 || next) && h("div", { class: "row" },
        h("button", { type: "button", disabled: cursors.length === 1, onclick: () => turn(null) }, "Newer"), h("button", { type: "button", disabled: !next, onclick: () => turn(next) }, "Older")));
    return all.queued + all.in_progress > 0;
  }
  /** @param {string | null} next */
  function turn(next) {
    if (next) cursors.push(next);
    else cursors.pop();
    void load();
  }
  /** @param {any} job */
  async function retry(job) {
    fill(message);
    try {
      await call("POST", `jobs/${encodeURIComponent(job.job_id)}/retry`, { isRepeatable: true });
      await load();
    } catch (error) {
      if (!leaving.aborted) fill(message, problem(error));
    }
  }
  function again() {
    cursors = [""];
    before = null;
    void load();
  }
  await load();
  void follow();
  async function follow() {
    try {
      for (;;) {
        await pause(POLL_MS, leaving);
        // A page of older jobs, and one that nobody sees, stays as it is.
        if (cursors.length === 1 && !document.hidden && !list.contains(document.activeElement)) await load();
      }
    } catch {
      // The page was left.
    }
  }
  return h("div", {}, h("div", { class: "row between" }, h("h1", {}, "Jobs"), h("label", { class: "tick" }, everywhere, "Every tenant of this key")), counts, message, list);
}

/**
 * @param {any[]} shown
 * @param {(job: any) => Promise<void>} retry
 */
function tableOf(shown, retry) {
  const head = ["Source", "Tenant", "Kind", "State", "Tries", "Accepted", ""];
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Jobs" }, h("table", {}, h("thead", {}, h("tr", {}, head.map((text) => (text ? h("th", { scope: "col" }, text) : h("td"))))), h("tbody", {}, shown.map((job) => row(job, retry)))));
}

/**
 * @param {any} job
 * @param {(job: any) => Promise<void>} retry
 */
function row(job, retry) {
  const share = typeof job.progress === "number" ? ` ${Math.round(job.progress * 100)} %` : "";
  const text = job.status === "errored" ? why(job) : job.stage ? `${job.stage}${share}` : "";
  const sub = job.sub_tenant_id === "default" ? "" : job.sub_tenant_id;
  return h("tr", {},
    h("td", { class: "title" }, h("a", { href: address("source", { id: job.file_id, tenant: job.tenant_id, sub }) }, job.file_id), h("span", { class: "muted small block" }, text)),
    h("td", {}, sub ? `${job.tenant_id} / ${sub}` : job.tenant_id), h("td", {}, job.kind), h("td", {}, badge(job.status)), h("td", { class: "figure", "data-name": job.attempts === 1 ? "try" : "tries" }, job.attempts), h("td", {}, age(job.created_at)),
    h("td", { class: "actions" }, job.status === "errored" && job.kind !== "reembed" && h("button", { type: "button", onclick: oneAtATime(() => retry(job)), "aria-label": `Try ${job.file_id} again` }, "Try again")));
}
