// A page of a source as a picture, with rectangles drawn over it.
import { open } from "./api.js";
import { fill, h, problem, svg } from "./dom.js";
import { scope } from "./state.js";

/** @typedef {{page: number, x: number, y: number, width: number, height: number}} Box points from the top left corner */

/** Pixels of a picture: a multiple of a step, so that pictures are found again on the server. */
const WIDTH_STEP = 256;
const WIDTH_MAX = 2048;
/** Points between a box and what it is around. */
const MARGIN = 2;

/**
 * Shows pages of a source, one at a time.
 * @param {any} record
 * @param {HTMLElement} place an element that is on the page and as wide as the picture will be
 * @param {AbortSignal} signal
 */
export function pageView(record, place, signal) {
  const sheet = h("div", { class: "sheet" });
  const told = h("span", { class: "small", "aria-live": "polite" });
  const back = h("button", { type: "button", onclick: () => turn(-1), "aria-label": "Previous page" }, "‹");
  const on = h("button", { type: "button", onclick: () => turn(1), "aria-label": "Next page" }, "›");
  const node = h("div", { class: "pages", onkeydown: keys }, h("div", { class: "row page-tools" }, back, told, on), sheet);
  /** @type {Box[]} */
  let boxes = [];
  let [current, pages, asked] = [0, 0, 0];

  /** @param {number} by */
  function turn(by) {
    if (current + by < 1 || current + by > pages) return;
    draw(current + by).catch((error) => {
      if (!signal.aborted) fill(sheet, problem(error));
    });
  }
  /** @param {KeyboardEvent} event */
  function keys(event) {
    if (event.key === "ArrowLeft") turn(-1);
    if (event.key === "ArrowRight") turn(1);
  }
  /** @param {number} page */
  async function draw(page) {
    const mine = ++asked;
    current = page;
    label();
    sheet.setAttribute("aria-busy", "true");
    const wanted = Math.max(place.clientWidth, 320) * (window.devicePixelRatio || 1);
    const width = Math.min(WIDTH_MAX, Math.ceil(wanted / WIDTH_STEP) * WIDTH_STEP);
    try {
      const response = await open("POST", "fetch/page_image", { json: { ...scope(), file_id: record.id, page, width }, signal, isRepeatable: true });
      const number = (/** @type {string} */ name) => Number(response.headers.get(name));
      const url = URL.createObjectURL(await response.blob());
      const image = h("img", { src: url, alt: `Page ${page} of ${record.title}` });
      await image.decode().finally(() => URL.revokeObjectURL(url));
      // Another page was asked for meanwhile.
      if (mine !== asked) return;
      pages = number("x-page-count");
      label();
      fill(sheet, image, overlay(number("x-page-width"), number("x-page-height")));
    } finally {
      if (mine === asked) sheet.removeAttribute("aria-busy");
    }
  }
  function label() {
    told.textContent = `Page ${current}${pages ? ` of ${pages}` : ""}`;
    // Not disabled: a button that was pressed keeps the focus, and with it the arrow keys.
    back.setAttribute("aria-disabled", String(current <= 1));
    on.setAttribute("aria-disabled", String(current >= pages));
  }
  /**
   * The boxes of this page, in its own points: they scale with the picture.
   * @param {number} width
   * @param {number} height
   */
  function overlay(width, height) {
    const own = boxes.filter(({ page }) => page === current).map((box) => svg("rect", {
      x: box.x - MARGIN, y: box.y - MARGIN, width: box.width + 2 * MARGIN, height: box.height + 2 * MARGIN, rx: 1.5 }));
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, own);
  }
  /**
   * Shows the page of the first box, or another one.
   * @param {Box[]} marked
   * @param {number} otherwise
   */
  async function show(marked, otherwise) {
    boxes = marked;
    await draw(marked[0]?.page ?? otherwise);
  }
  return { node, show };
}
