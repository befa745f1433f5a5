// Drawings: colours that the colour-blind can tell apart, and what stands around them.
import { count, grow, h, number, onFrame, penOf, percent, quiet, save, saveCsv, table, tool } from './core.js';
import { t } from './strings.js';

const { ceil, floor, log10, max, min, round } = Math;

/** OKLCH to sRGB bytes.
 * @returns {[number, number, number]} */
function oklch(l, c, hue) {
  const a = c * Math.cos((hue * Math.PI) / 180);
  const b = c * Math.sin((hue * Math.PI) / 180);
  const [x, y, z] = [l + 0.3963377774 * a + 0.2158037573 * b, l - 0.1055613458 * a - 0.0638541728 * b, l - 0.0894841775 * a - 1.291485548 * b].map((v) => v ** 3);
  const linear = [4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z, -1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z,
    -0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z];
  return /** @type {[number, number, number]} */ (linear.map((v) => {
    const clear = min(1, max(0, v));
    return round(255 * (clear <= 0.0031308 ? 12.92 * clear : 1.055 * clear ** (1 / 2.4) - 0.055));
  }));
}

/** 256 colours between given stations [place, lightness, chroma, hue].
 * @param {number[][]} stations */
function ramp(stations) {
  const colours = new Uint32Array(256);
  for (let i = 0; i < 256; ++i) {
    const place = i / 255;
    const next = max(1, stations.findIndex(([at]) => at >= place));
    const [from, to] = [stations[next - 1], stations[next]];
    const part = (place - from[0]) / (to[0] - from[0]);
    const [l, c, hue] = [1, 2, 3].map((k) => from[k] + part * (to[k] - from[k]));
    const [red, green, blue] = oklch(l, c, hue);
    colours[i] = 0xff000000 | (blue << 16) | (green << 8) | red;
  }
  return colours;
}

// Lightness rises evenly: the order is kept without colour vision.
const sequential = ramp([[0, 0.2, 0.06, 285], [0.35, 0.43, 0.11, 265], [0.65, 0.66, 0.1, 200], [1, 0.95, 0.13, 105]]);
// Blue below zero, orange above; zero is the page's own paper.
const divergingLight = ramp([[0, 0.34, 0.14, 262], [0.25, 0.62, 0.13, 250], [0.5, 0.975, 0.0, 250], [0.5001, 0.975, 0.0, 60], [0.75, 0.72, 0.14, 60], [1, 0.42, 0.13, 40]]);
const divergingDark = ramp([[0, 0.88, 0.08, 235], [0.25, 0.6, 0.13, 250], [0.5, 0.25, 0.0, 250], [0.5001, 0.25, 0.0, 60], [0.75, 0.64, 0.14, 55], [1, 0.92, 0.1, 80]]);

export const isDark = () => document.documentElement.dataset.theme === 'dark';
export const colourMap = (signed) => (signed ? (isDark() ? divergingDark : divergingLight) : sequential);

export const css = (colour) => `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;

export const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export const kindColour = (index) => ink(`kind${((index % 8) + 8) % 8}`);

/** A canvas as sharp as the screen; draw() gets the size in CSS pixels. */
export class Drawing {
  /** @param {string} label @param {Paint} paint */
  constructor(label, paint) {
    this.canvas = h('canvas', { role: 'img', 'aria-label': label });
    this.paint = paint;
    this.draw = onFrame(() => this.now());
    const watch = new ResizeObserver(() => this.draw());
    watch.observe(this.canvas);
    redrawn.add(new WeakRef(this));
  }

  now() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const ratio = devicePixelRatio || 1;
    const [w, tall] = [round(width * ratio), round(height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== tall) [this.canvas.width, this.canvas.height] = [w, tall];
    const pen = penOf(this.canvas);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `11px ${ink('font')}`;
    pen.textBaseline = 'middle';
    this.paint(pen, width, height);
  }
}

/** @type {Set<WeakRef<Drawing>>} */
const redrawn = new Set();
export function redrawAll() {
  for (const reference of redrawn) {
    const drawing = reference.deref();
    if (drawing) drawing.draw();
    else redrawn.delete(reference);
  }
}

function rule(pen, left, width, y, text) {
  pen.fillStyle = ink('line');
  pen.fillRect(left, round(y), width, 1);
  pen.fillStyle = ink('quiet');
  pen.textAlign = 'right';
  pen.fillText(text, left - 6, y);
}

export function savePng(canvas, name) {
  const copy = h('canvas', { width: canvas.width, height: canvas.height });
  const pen = penOf(copy);
  pen.fillStyle = ink('paper');
  pen.fillRect(0, 0, copy.width, copy.height);
  pen.drawImage(canvas, 0, 0);
  copy.toBlob((blob) => { if (blob) save(blob, name); }, 'image/png');
}

const TABLE_ROWS = 500;

/** A drawing with its title, summary, [Data], [PNG] and [CSV].
 * @param {FigureOptions} options */
export function figure(options) {
  const summary = h('figcaption', { class: 'summary' });
  const holder = h('div', { class: 'data', hidden: true });
  const toggle = tool(t('data'), async () => {
    const show = holder.hidden;
    toggle.setAttribute('aria-pressed', String(show));
    if (show) {
      const { columns, rows } = await options.data();
      const more = rows.length > TABLE_ROWS ? quiet(t('firstRows', count(TABLE_ROWS), count(rows.length))) : null;
      holder.replaceChildren(table(options.title, columns, rows.slice(0, TABLE_ROWS).map((row) => row.map((value) => (typeof value === 'number' ? number(value) : value)))), ...(more ? [more] : []));
    }
    holder.hidden = !show;
    options.content.hidden = show;
  }, `${t('data')}: ${options.title}`);
  toggle.setAttribute('aria-pressed', 'false');
  const png = tool('PNG', () => savePng(options.canvas, `${options.name()}.png`), `PNG: ${options.title}`);
  const csv = tool('CSV', async () => {
    const { columns, rows } = await options.data();
    saveCsv([columns.map((column) => column.replace(/^#/, '')), ...rows], `${options.name()}.csv`);
  }, `CSV: ${options.title}`);
  const element = h('figure', { class: `figure ${options.cls ?? ''}` },
    h('div', { class: 'bar' }, h('h3', null, options.title), grow(), options.tools ?? [], h('span', { class: 'group' }, toggle, png, csv)), options.content, holder, summary);
  return { element, summary };
}

function place(edges, value) {
  let [low, high] = [0, edges.length - 1];
  if (value <= edges[0]) return 0;
  if (value >= edges[high]) return high;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (edges[middle] <= value) low = middle;
    else high = middle;
  }
  const width = edges[high] - edges[low];
  return low + (width > 0 ? (value - edges[low]) / width : 0);
}

/** Powers of ten of both signs and zero, those that lie within, far enough from each other. */
function valueTicks(edges, width) {
  const bins = edges.length - 1;
  const [least, most] = [edges[0], edges[bins]];
  /** @type {number[]} */
  const wanted = least <= 0 && most >= 0 ? [0] : [];
  const largest = max(Math.abs(least), Math.abs(most));
  for (let power = floor(log10(largest || 1)); power > log10(largest || 1) - 14; --power) {
    for (const value of [10 ** power, -(10 ** power)]) if (value >= least && value <= most) wanted.push(value);
  }
  wanted.push(least, most);
  /** @type {{value: number, x: number}[]} */
  const kept = [];
  for (const value of wanted) {
    const x = (place(edges, value) / bins) * width;
    if (kept.every((other) => Math.abs(other.x - x) > 46)) kept.push({ value, x });
  }
  return kept;
}

/** @param {() => Histogram | null} histogram @param {() => [number, string][]} quantiles */
export function histogramDrawing(histogram, quantiles) {
  return new Drawing(t('histogram'), (pen, width, height) => {
    const shown = histogram();
    if (!shown || !shown.counts.length) return;
    const [left, bottom, top, right] = [46, 34, 8, 8];
    const [w, tall] = [width - left - right, height - bottom - top];
    const bins = shown.counts.length;
    const most = max(1, ...shown.counts);
    const decades = max(1, ceil(log10(most + 1)));
    const y = (value) => top + tall - (value > 0 ? (log10(value) + 0.3) / (decades + 0.3) : 0) * tall;
    const every = max(1, ceil(decades / max(1, tall / 28)));
    for (let power = 0; power <= decades; power += every) {
      rule(pen, left, w, y(10 ** power), power < 4 ? String(10 ** power) : `10${[...String(power)].map((d) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(d)]).join('')}`);
    }
    pen.fillStyle = ink('accent');
    const ratio = devicePixelRatio || 1;  // bars begin and end on whole pixels, or their edges would shimmer
    const edge = (i) => round((left + (i / bins) * w) * ratio) / ratio;
    for (let i = 0; i < bins; ++i) {
      const line = y(shown.counts[i]);
      if (shown.counts[i]) pen.fillRect(edge(i), line, max(1 / ratio, edge(i + 1) - edge(i) - (w / bins > 3 ? 0.5 : 0)), top + tall - line);
    }
    pen.fillStyle = ink('quiet');
    pen.textAlign = 'center';
    for (const { value, x } of valueTicks(shown.edges, w)) {
      pen.fillRect(round(left + x), top + tall, 1, 5);
      pen.textAlign = x < 24 ? 'left' : x > w - 24 ? 'right' : 'center';
      pen.fillText(number(value, 2), left + x, top + tall + 24);
    }
    pen.fillStyle = ink('ink');
    for (const [share, value] of quantiles()) {
      if (share <= 0 || share >= 1) continue;
      const x = left + (place(shown.edges, Number(value)) / bins) * w;
      pen.fillRect(round(x), top + tall + 6, 1, share === 0.5 ? 9 : 5);
    }
  });
}

/** @param {Histogram} histogram */
export function histogramData({ edges, counts, below, above }) {
  const rows = counts.map((value, i) => [edges[i], edges[i + 1], value]).filter(([, , value]) => value);
  if (below) rows.unshift([-Infinity, edges[0], below]);
  if (above) rows.push([edges[edges.length - 1], Infinity, above]);
  return { columns: [`#${t('from')}`, `#${t('to')}`, `#${t('values')}`], rows };
}

/** @param {Histogram} histogram @param {[number, string][]} quantiles */
export function histogramSummary({ counts }, quantiles) {
  const all = counts.reduce((sum, value) => sum + value, 0);
  const fullest = counts.indexOf(max(...counts));
  const at = (share) => number(quantiles.find(([q]) => q === share)?.[1], 3);
  return all ? t('histogramSummary', at(0.05), at(0.95), at(0.5), percent(counts[fullest], all)) : t('noFinite');
}

const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

/** Lines over layer numbers; a logarithm above, zero at the bottom.
 * @param {() => Series[]} series @param {() => number} marked */
export function linesDrawing(series, marked) {
  /** @type {{x: number, y: number, id: number, label: string}[]} */
  let hits = [];
  const drawing = new Drawing(t('lines'), (pen, width, height) => {
    const all = series();
    const points = all.flatMap((one) => one.points);
    hits = [];
    if (!points.length) return;
    const [left, bottom, top, right] = [52, 40, 10, 12];
    const [w, tall] = [width - left - right, height - bottom - top];
    const [x0, x1] = [min(...points.map((p) => p.x)), max(...points.map((p) => p.x))];
    const above = points.map((p) => p.y).filter((v) => v > 0);
    const [low, high] = [floor(log10(min(...above, 1))), ceil(log10(max(...above, 1e-9)) + 1e-9)];
    const bottomPower = max(low, high - 6);
    const px = (x) => left + (x1 > x0 ? (x - x0) / (x1 - x0) : 0.5) * w;
    const py = (y) => top + tall + (y > 0 ? -max(0, (log10(y) - bottomPower) / max(1, high - bottomPower)) * tall : 16);  // zero lies below the logarithm
    for (const value of [0, ...Array.from({ length: high - bottomPower + 1 }, (_, i) => 10 ** (bottomPower + i))]) rule(pen, left, w, py(value), number(value, 1));
    pen.textAlign = 'center';
    const step = max(1, ceil((x1 - x0) / max(1, w / 40)));
    for (let x = x0; x <= x1; x += step) pen.fillText(String(x), px(x), top + tall + 31);
    all.forEach((one, i) => {
      pen.strokeStyle = pen.fillStyle = kindColour(i);
      pen.lineWidth = 1.75;
      pen.setLineDash(DASHES[floor(i / 8) % 4]);
      pen.beginPath();
      for (const p of one.points) pen.lineTo(px(p.x), py(p.y));
      pen.stroke();
      pen.setLineDash([]);
      for (const p of one.points) {
        pen.beginPath();
        pen.arc(px(p.x), py(p.y), p.id === marked() ? 5 : 2.5, 0, 7);
        pen.fill();
        hits.push({ x: px(p.x), y: py(p.y), id: p.id, label: `${p.label}: ${number(p.y, 4)}` });
      }
    });
  });
  const nearest = (x, y) => hits.map((hit) => ({ hit, far: Math.hypot(hit.x - x, hit.y - y) })).filter(({ far }) => far < 24).sort((a, b) => a.far - b.far)[0]?.hit;
  return { drawing, nearest };
}

export function legend(names) {
  return h('ul', { class: 'legend' }, names.map((name, i) => {
    const swatch = h('span', { class: `swatch dash${floor(i / 8) % 4}` });
    swatch.style.background = `var(--kind${i % 8})`;
    return h('li', null, swatch, name);
  }));
}

/** Limits that a few outliers do not stretch; then the least and the greatest.
 * @param {Float32Array} cells */
export function limits(cells) {
  const finite = cells.filter(Number.isFinite);
  const step = max(1, finite.length >> 12);  // thousands tell as much
  const sorted = finite.filter((_, i) => i % step === 0).sort();
  const last = sorted.length - 1;
  return last < 0 ? [0, 0, 0, 0] : [sorted[floor(last * 0.01)], sorted[ceil(last * 0.995)], finite.reduce((a, b) => min(a, b)), finite.reduce((a, b) => max(a, b))];
}

export function tileImage(tile, low, high, signed) {
  const painted = `${low},${high},${ink('paper')}`;
  if (tile.image && tile.painted === painted) return tile.image;
  const map = colourMap(signed);
  const image = tile.image ?? h('canvas', { width: tile.w, height: tile.h });
  const pen = penOf(image);
  const pixels = pen.createImageData(tile.w, tile.h);
  const words = new Uint32Array(pixels.data.buffer);
  const factor = high > low ? 255 / (high - low) : 0;
  const { cells, w } = tile;
  for (let i = 0; i < cells.length; ++i) {
    const value = cells[i];
    if (value - value === 0) words[i] = map[max(0, min(255, round((value - low) * factor)))];
    else if (value !== value) words[i] = (i % w + floor(i / w)) % 2 ? 0xff5a1fd6 : 0xffffffff;  // NaN: a checker of magenta and white, hatched when large
    else words[i] = (i % w) % 2 || floor(i / w) % 2 ? 0xff000000 : 0xff00e5ff;                  // infinite: dots
  }
  pen.putImageData(pixels, 0, 0);
  Object.assign(tile, { image, painted });
  return image;
}

export function paintOdd(pen, tile, px, py, cell) {
  for (let i = 0; i < tile.cells.length; ++i) {
    const value = tile.cells[i];
    if (Number.isFinite(value)) continue;
    const [x, y] = [px + (i % tile.w) * cell, py + floor(i / tile.w) * cell];
    if (x + cell < 0 || y + cell < 0 || x > pen.canvas.clientWidth || y > pen.canvas.clientHeight) continue;
    pen.save();
    pen.beginPath();
    pen.rect(x, y, cell, cell);
    pen.clip();
    pen.fillStyle = Number.isNaN(value) ? '#ffffff' : '#000000';
    pen.fillRect(x, y, cell, cell);
    pen.strokeStyle = '#d61f5a';
    pen.lineWidth = 2;
    pen.fillStyle = '#ffe500';
    if (Number.isNaN(value)) for (let d = -cell; d < cell; d += 6) { pen.beginPath(); pen.moveTo(x + d, y); pen.lineTo(x + d + cell, y + cell); pen.stroke(); }
    else for (let a = 3; a < cell; a += 6) for (let b = 3; b < cell; b += 6) pen.fillRect(x + a - 1, y + b - 1, 2, 2);
    pen.restore();
  }
}

/** Norms as bars: pixel by pixel, or bar by bar where they are wider. */
export function stripBars(line, scale, origin, from, to, bar) {
  let most = 0;
  for (const value of line.values) if (Number.isFinite(value)) most = max(most, value);
  if (!most) return;
  const per = line.step * scale;
  for (let px = max(from, floor(origin)); px < min(to, origin + line.values.length * per);) {
    const first = max(0, floor((px - origin + 0.001) / per));
    const end = max(px + 1, round(origin + (first + 1) * per));
    let value = 0;
    for (let k = first; k === first || origin + k * per < end - 0.5; ++k) value = max(value, line.values[k] || 0);
    bar(px, min(to, end) - px, min(1, value / most));
    px = end;
  }
}

/** As many digits as there is room for.
 * @param {string} text @param {number} value */
export function squeeze(text, value, room) {
  const plain = text.replace('-', '−');
  if (plain.length <= room) return plain;
  if (!Number.isFinite(value)) return plain.length > 4 ? `${plain.slice(0, room - 1)}…` : plain;
  for (let digits = min(8, room); digits >= 1; --digits) {
    for (const tried of [String(Number(value.toPrecision(digits))), value.toExponential(digits - 1).replace('e+', 'e')]) {
      const short = tried.replace(/^(-?)0\./, '$1.').replaceAll('-', '−');
      if (short.length <= room) return short;
    }
  }
  return '·';
}
