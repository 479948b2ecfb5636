// Ask: a question, a streamed answer, its citations.
import { call, stream } from "./api.js";
import { address, copyButton, duration, empty, field, fill, h, problem, tick, unique } from "./dom.js";
import { scope, state } from "./state.js";
import { showAnswer, sourceList } from "./answer.js";
import { asCurl, asPython, options } from "./options.js";
import { QUESTIONS, loadSample } from "./sample.js";
import { tell } from "./told.js";

/** @typedef {import("./answer.js").Told} Told */

/** Turns of the conversation by tenant: they stay while the page is open. */
/** @type {Map<string, {session: string, turns: HTMLElement[]}>} */
const conversations = new Map();

function conversation() {
  const name = `${state.tenant}/${state.subTenant}`;
  let one = conversations.get(name);
  if (!one) {
    one = { session: `console-${unique()}`, turns: [] };
    conversations.set(name, one);
  }
  return one;
}

/**
 * The page.
 * @param {URLSearchParams} params
 * @param {AbortSignal} leaving
 */
export async function ask(params, leaving) {
  const { source_count: sources } = await call("GET", "tenant/stats", { query: scope(), signal: leaving });
  const talk = conversation();
  const turns = h("div", { class: "turns" }, talk.turns);
  const box = h("textarea", { rows: "2", required: true, maxlength: "16384", placeholder: "Ask about your documents" });
  const button = h("button", { class: "primary", type: "submit" }, "Ask");
  const chosen = options("qna");
  const follows = h("input", { type: "checkbox", checked: true });
  const form = h("form", { class: "card ask", onsubmit: submit },
    h("div", { class: "ask-row" }, field("Question", box), button),
    h("details", {}, h("summary", {}, "Options"), chosen.node, tick("Follow the conversation", follows)));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  const begin = h("div");

  /** @param {Event} event */
  function submit(event) {
    event.preventDefault();
    const question = box.value.trim();
    const parameters = chosen.read();
    if (!question || !parameters) return;
    box.value = "";
    const request = { question, ...scope(), ...parameters, session_id: follows.checked ? talk.session : undefined };
    const turn = makeTurn(request);
    talk.turns.unshift(turn.node);
    turns.prepend(turn.node);
    fill(begin);
    turn.run();
  }
  /** @param {string} question */
  function put(question) {
    box.value = question;
    form.requestSubmit();
  }
  const questions = () => fill(begin, h("div", { class: "card" }, h("h2", {}, "Three questions for the sample"),
    h("ul", { class: "plain stack" }, QUESTIONS.map((text) => h("li", {}, h("button", { type: "button", onclick: () => put(text) }, text))))));
  const sample = params.get("sample");
  if (sources === 0) fill(begin, noDocuments(questions, sample === "load", leaving));
  else if (sample) questions();
  const asked = params.get("q");
  if (asked) queueMicrotask(() => put(asked));
  else queueMicrotask(() => box.focus());
  const forget = () => {
    conversations.delete(`${state.tenant}/${state.subTenant}`);
    fill(turns);
    talk.turns.length = 0;
    talk.session = `console-${unique()}`;
    conversations.set(`${state.tenant}/${state.subTenant}`, talk);
  };
  return h("div", {}, h("div", { class: "row between" }, h("h1", {}, "Ask"),
    h("button", { class: "quiet", type: "button", onclick: forget }, "New conversation")), form, begin, turns);
}

/**
 * @param {() => void} then
 * @param {boolean} isWanted whether the sample is loaded unasked
 * @param {AbortSignal} leaving
 */
function noDocuments(then, isWanted, leaving) {
  const message = h("p", { "aria-live": "polite", class: "muted" });
  const load = h("button", { type: "button", onclick: run }, "Load a small sample");
  async function run() {
    load.disabled = true;
    try {
      await loadSample((text) => (message.textContent = text), leaving);
      then();
    } catch (error) {
      if (!leaving.aborted) fill(message, problem(error));
      load.disabled = false;
    }
  }
  if (isWanted) void run();
  return empty("No documents yet",
    h("p", {}, "Add your own, or try five short documents about a product that does not exist."),
    h("div", { class: "row" }, h("a", { class: "button primary", href: address("sources") }, "Add documents"), load), message);
}

/**
 * One question with its answer.
 * @param {any} request
 */
function makeTurn(request) {
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  const notes = h("div", { role: "status" });
  const below = h("div");
  const stop = new AbortController();
  const stopButton = h("button", { class: "quiet", type: "button", onclick: () => stop.abort() }, "Stop");
  const head = h("div", { class: "row between" }, h("h2", {}, request.question));
  const node = h("article", { class: "card turn" }, head, answer, notes, below);

  async function run() {
    answer.setAttribute("aria-busy", "true");
    fill(answer, h("span", { class: "muted" }, "Reading…"));
    head.append(stopButton);
    /** @type {Told} */
    let told = { answer: "", sources: [], chunks: [] };
    let isDrawn = true;
    const draw = () => {
      isDrawn = true;
      showAnswer(answer, told);
    };
    try {
      for await (const { event, data } of stream("search/qna", { ...request, stream: true }, stop.signal)) {
        if (event === "sources") told = { ...told, sources: data.sources, chunks: data.chunks };
        if (event === "token") told.answer += data.delta;
        if (event === "token" && isDrawn) {
          isDrawn = false;
          requestAnimationFrame(draw);
        }
        if (event === "error") throw new Error(data.message);
        if (event === "done") {
          told = data;
          isDrawn = true;
          tell(notes, data.metadata);
          fill(below, foot(data, request));
        }
      }
      showAnswer(answer, told);
      // Below stands what came with the end.
      if (!below.hasChildNodes()) throw new Error("The answer ended early. Ask again.");
    } catch (error) {
      if (told.answer === "") fill(answer);
      if (stop.signal.aborted) fill(below, h("p", { class: "muted" }, "Stopped."));
      else fill(below, problem(error), h("button", { type: "button", onclick: again }, "Ask again"));
    } finally {
      answer.setAttribute("aria-busy", "false");
      stopButton.remove();
    }
  }
  function again() {
    fill(below);
    run();
  }
  return { node, run };
}

/**
 * @param {any} told
 * @param {any} request
 */
function foot(told, request) {
  const { metadata } = told;
  const how = told.model_used === "extractive" ? "quoted from the documents" : told.model_used ? `written by ${told.model_used}` : "";
  const facts = [how, `alpha ${Number(metadata.alpha.toFixed(2))}${metadata.alpha_reason ? ` (${metadata.alpha_reason})` : ""}`,
    duration(metadata.timings_ms.total)].filter(Boolean).join(" · ");
  const { session_id: _, ...plain } = request;
  return [
    told.sources.length > 0 && h("h3", {}, "Sources"), sourceList(told),
    h("div", { class: "row between foot" }, h("span", { class: "muted small" }, facts),
      h("span", { class: "row" }, copyButton("Copy as curl", () => asCurl("search/qna", plain)),
        copyButton("Copy as Python", () => asPython("search/qna", plain)))),
  ];
}
