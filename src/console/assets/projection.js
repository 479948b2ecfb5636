// A sample of vectors on a plane: the two directions in which they differ most.
import { field, h, svg } from "./dom.js";

const STEPS = 30;
const SIDE = 300;
const MARGIN = 12;

/**
 * The places of vectors along their first two principal components, found by power iteration.
 * @param {number[][]} vectors
 * @returns {[number, number][]}
 */
export function project(vectors) {
  const wide = vectors[0]?.length ?? 0;
  const mean = new Float64Array(wide);
  for (const vector of vectors) vector.forEach((value, at) => { mean[at] += value / vectors.length; });
  const rows = vectors.map((vector) => Float64Array.from(vector, (value, at) => value - mean[at]));
  const axes = [component(rows, wide), component(rows, wide)];
  return vectors.map((_, at) => [axes[0][at], axes[1][at]]);
}

/**
 * The shares of rows in their largest component, which is taken out of them.
 * @param {Float64Array[]} rows
 * @param {number} wide
 */
function component(rows, wide) {
  // Not along an axis: data may have nothing there.
  let direction = unit(Float64Array.from({ length: wide }, (_, at) => 1 + Math.sin(at)));
  for (let step = 0; step < STEPS; step += 1) {
    const next = new Float64Array(wide);
    for (const row of rows) {
      const share = dot(row, direction);
      row.forEach((value, at) => { next[at] += share * value; });
    }
    direction = unit(next);
  }
  return rows.map((row) => {
    const share = dot(row, direction);
    direction.forEach((value, at) => { row[at] -= share * value; });
    return share;
  });
}

/** @param {Float64Array} vector */
function unit(vector) {
  const length = Math.sqrt(dot(vector, vector)) || 1;
  return vector.map((value) => value / length);
}

/** @param {Float64Array} one @param {Float64Array} other */
function dot(one, other) {
  return one.reduce((sum, value, at) => sum + value * other[at], 0);
}

/**
 * A drawing of vectors, each a point that can be chosen.
 * @param {{id: string, vector: number[]}[]} sample
 * @param {(id: string) => void} choose
 */
export function drawing(sample, choose) {
  const places = project(sample.map(({ vector }) => vector));
  const scale = (/** @type {0 | 1} */ axis) => {
    const values = places.map((place) => place[axis]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return (/** @type {number} */ value) => MARGIN + (value - low) / (high - low || 1) * (SIDE - 2 * MARGIN);
  };
  const [x, y] = [scale(0), scale(1)];
  const list = h("select", { onchange: () => list.value && choose(list.value) }, h("option", { value: "" }, "choose one, or click its point"), sample.map(({ id }) => h("option", { value: id }, id)));
  return h("figure", { class: "card stack" }, h("figcaption", { class: "muted small" }, `The first ${sample.length} vectors, projected onto their two principal axes.`), field("Near the vector", list),
    svg("svg", { class: "projection", viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img", "aria-label": `${sample.length} vectors on a plane` },
      sample.map(({ id }, at) => svg("circle", { cx: x(places[at][0]).toFixed(1), cy: y(places[at][1]).toFixed(1), r: "3", onclick: () => choose(id) }, svg("title", {}, id)))));
}
