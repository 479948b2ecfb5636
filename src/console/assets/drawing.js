// A drawing of statements on a canvas: entities as points, pushed apart, pulled together by lines.

/** @typedef {import("./graph.js").Statement} Statement */
/** @typedef {{name: string, x: number, y: number, dx: number, dy: number, degree: number}} Point */

const POINTS_MAX = 500;
const STEPS = 160;
const HEIGHT = 460;
/** Distance that a line pulls its ends to, in pixels at 100 points or fewer. */
const LENGTH = 90;
const RADIUS = 5;
/** Space left and right of the points, in pixels; names stand at the right. */
const MARGIN = 40;
const LABEL = 150;
const LABELS_MAX = 40;

/**
 * @param {HTMLCanvasElement} canvas
 * @param {(name: string) => void} choose called with the entity that was clicked
 * @param {AbortSignal} leaving
 */
export function draw(canvas, choose, leaving) {
  /** @type {Point[]} */
  let points = [];
  /** @type {[Point, Point][]} */
  let lines = [];
  let wanted = "";
  let step = STEPS;

  /**
   * @param {Statement[]} statements
   * @param {string} entity
   */
  function show(statements, entity) {
    wanted = entity;
    const kept = new Map(points.map((point) => [point.name, point]));
    /** @type {Map<string, Point>} */
    const named = new Map();
    lines = [];
    for (const { source, target } of statements) {
      const ends = [source.name, target.name].map((name) => named.get(name) ?? place(name, kept, named));
      const [from, to] = ends;
      if (!from || !to || from === to) continue;
      from.degree += 1;
      to.degree += 1;
      lines.push([from, to]);
    }
    points = [...named.values()];
    const isRunning = step < STEPS;
    step = 0;
    if (!isRunning) requestAnimationFrame(frame);
  }
  /**
   * @param {string} name
   * @param {Map<string, Point>} kept
   * @param {Map<string, Point>} named
   */
  function place(name, kept, named) {
    if (named.size >= POINTS_MAX) return undefined;
    // On a spiral, in order: the same statements make the same drawing.
    const turn = named.size * 2.4;
    const far = 14 * Math.sqrt(named.size + 1);
    const old = kept.get(name);
    const point = { name, x: old?.x ?? far * Math.cos(turn), y: old?.y ?? far * Math.sin(turn), dx: 0, dy: 0, degree: 0 };
    named.set(name, point);
    return point;
  }
  function frame() {
    if (leaving.aborted || !canvas.isConnected) return;
    const until = performance.now() + 8;
    do {
      move();
      step += 1;
    } while (step < STEPS && performance.now() < until);
    paint();
    if (step < STEPS) requestAnimationFrame(frame);
  }
  function move() {
    const heat = 12 * (1 - step / STEPS);
    const length = LENGTH / Math.max(1, Math.sqrt(points.length / 100));
    for (let i = 0; i < points.length; i += 1) {
      const one = points[i];
      one.dx -= one.x * 0.012;
      one.dy -= one.y * 0.02;
      for (let j = i + 1; j < points.length; j += 1) {
        const other = points[j];
        const [x, y] = [one.x - other.x, one.y - other.y];
        const force = (length * length) / (x * x + y * y + 40) / 4;
        one.dx += x * force * 0.1;
        one.dy += y * force * 0.1;
        other.dx -= x * force * 0.1;
        other.dy -= y * force * 0.1;
      }
    }
    for (const [from, to] of lines) {
      const [x, y] = [to.x - from.x, to.y - from.y];
      const far = Math.hypot(x, y) || 1;
      const force = ((far - length) / far) * 0.06;
      from.dx += x * force;
      from.dy += y * force;
      to.dx -= x * force;
      to.dy -= y * force;
    }
    for (const point of points) {
      const far = Math.hypot(point.dx, point.dy) || 1;
      const share = Math.min(far, heat) / far;
      point.x += point.dx * share;
      point.y += point.dy * share;
      point.dx = point.dy = 0;
    }
  }
  /** What maps a place of the drawing to one of the canvas. */
  function frameOf() {
    const width = canvas.clientWidth || 600;
    const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const scale = Math.min((width - MARGIN - LABEL) / Math.max(right - left, 1), (HEIGHT - 2 * MARGIN) / Math.max(bottom - top, 1), 1.6);
    const [cx, cy] = [(left + right) / 2, (top + bottom) / 2];
    return (/** @type {Point} */ { x, y }) => [(width + MARGIN - LABEL) / 2 + (x - cx) * scale, HEIGHT / 2 + (y - cy) * scale];
  }
  function paint() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = (canvas.clientWidth || 600) * ratio;
    canvas.height = HEIGHT * ratio;
    const context = canvas.getContext("2d");
    if (!context || points.length === 0) return;
    context.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const [ink, line, accent] = [style.color, style.caretColor, style.accentColor];
    const at = frameOf();
    context.strokeStyle = line;
    for (const [from, to] of lines) {
      context.beginPath();
      context.moveTo(.../** @type {[number, number]} */ (at(from)));
      context.lineTo(.../** @type {[number, number]} */ (at(to)));
      context.stroke();
    }
    context.font = "12px system-ui, sans-serif";
    const labelled = new Set([...points].sort((a, b) => b.degree - a.degree).slice(0, LABELS_MAX));
    for (const point of points) {
      const [x, y] = at(point);
      const isWanted = wanted !== "" && point.name.toLowerCase().includes(wanted);
      context.fillStyle = isWanted ? accent : ink;
      context.beginPath();
      context.arc(x, y, RADIUS + Math.min(point.degree, 8) / 2, 0, 7);
      context.fill();
      if (!isWanted && !labelled.has(point)) continue;
      context.fillStyle = ink;
      context.fillText(point.name.length > 24 ? `${point.name.slice(0, 23)}…` : point.name, x + 9, y + 4);
    }
  }
  canvas.addEventListener("click", (event) => {
    const at = frameOf();
    const hit = points.find((point) => {
      const [x, y] = at(point);
      return Math.hypot(x - event.offsetX, y - event.offsetY) < 14;
    });
    if (hit) choose(hit.name);
  });
  window.addEventListener("resize", paint, { signal: leaving });
  return { show };
}
