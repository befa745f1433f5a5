// The heatmap: tiles at the level that fits, down to the numbers; norms at its sides.
import { ARROWS, get, getBytes, h, number, onFrame, parse, query, report, say, tool } from './core.js';
import { colourMap, css, Drawing, ink, limits, paintOdd, squeeze, stripBars, tileImage } from './charts.js';
import { t } from './strings.js';

const { ceil, floor, max, min } = Math;
const SIDE = 256;
const NUMBERS_FROM = 24;  // pixels a cell
const LARGEST = 112;
const BLOCK = 32;
const TILES_KEPT = 96;
const STRIP = 44;

export class Heatmap {
  /** @param {HeatmapOptions} options */
  constructor(options) {
    this.options = options;
    options.signal.addEventListener('abort', () => this.stop.abort());
    this.axes = this.at = '';
    this.stat = 'absmax';
    this.full = false;
    /** @type {Plane} */
    this.plane = { rows: 0, cols: 0, levels: 1, fold: null };
    this.scale = 1;  // CSS pixels an element
    this.x = this.y = 0;  // the element in the middle of the view
    /** @type {Map<string, Tile | null>} null: on its way */
    this.tiles = new Map();
    /** @type {Map<string, string[][] | null>} */
    this.blocks = new Map();
    /** @type {{row: number, col: number} | null} */
    this.cursor = null;
    this.stop = new AbortController();
    /** @type {{step: number, values: Float32Array}[]} */
    this.lines = [];
    this.drawing = new Drawing(t('heatmap'), (pen, w, tall) => this.#paint(pen, w, tall));
    this.readout = h('output', { class: 'readout' });
    this.scaleBar = h('div', { class: 'scalebar' });
    const canvas = this.canvas = this.drawing.canvas;
    Object.assign(canvas, { tabIndex: 0, className: 'heatmap', role: 'application', ariaRoleDescription: t('heatmap') });
    this.element = h('div', { class: 'heat' }, canvas, h('div', { class: 'under' }, this.readout, this.scaleBar));
    this.tell = onFrame(() => this.#tell());
    this.#listen();
    this.fitted = true;
    new ResizeObserver(() => { if (this.fitted) this.fit(); }).observe(canvas);
  }

  tools() {
    return h('span', { class: 'group' }, tool('−', () => this.zoom(1 / 1.5), t('zoomOut')), tool('+', () => this.zoom(1.5), t('zoomIn')), tool(t('fit'), () => this.fit()));
  }

  get area() {
    const strips = this.options.strips && this.plane.fold === null;
    const left = strips ? STRIP : 0;
    const { clientWidth, clientHeight } = this.canvas;
    return { left, top: left, width: max(1, clientWidth - left), height: max(1, clientHeight - left) };
  }

  get x0() { return this.area.left + this.area.width / 2 - this.x * this.scale; }
  get y0() { return this.area.top + this.area.height / 2 - this.y * this.scale; }

  /** Another tensor, other axes or another statistic.
   * @param {{axes: string, at: string, stat: string, base?: string}} what @param {Plane} plane @param {boolean} [keep] the view */
  show(what, plane, keep = false) {
    this.stop.abort();
    this.stop = new AbortController();
    Object.assign(this, { axes: what.axes, at: what.at, stat: what.stat, plane });
    if (what.base) this.options.base = what.base;
    this.tiles.clear();
    this.blocks.clear();
    this.cursor = null;
    const { canvas } = this;
    canvas.style.height = '';  // as tall as the page gives, or as a wide plane needs
    canvas.style.height = `${min(canvas.clientHeight, max(260, (this.area.width * plane.rows) / max(1, plane.cols) + this.area.top))}px`;
    if (!keep) this.fit();
    this.#loadLines();
    this.drawing.draw();
  }

  fit() {
    const { area: { width, height }, plane: { rows, cols } } = this;
    if (!this.canvas.clientWidth) return;
    this.scale = min(LARGEST / 2, min(width / max(1, cols), height / max(1, rows)));
    [this.x, this.y] = [cols / 2, rows / 2];
    this.fitted = true;
    this.drawing.draw();
    this.tell();
  }

  place(level, x, y) {
    Object.assign(this, { scale: 2 ** -level, x, y, fitted: false });
    this.drawing.draw();
  }

  #tell() {
    if (!this.canvas.isConnected) return;
    const view = this.fitted ? {} : { level: (-Math.log2(this.scale)).toFixed(2), x: this.x.toFixed(1), y: this.y.toFixed(1) };
    this.options.changed({ axes: this.axes, at: this.at, stat: this.stat, .../** @type {any} */ (view) });
  }

  get level() {
    const wanted = ceil(-Math.log2(this.scale * (devicePixelRatio || 1)) - 0.01);
    return max(0, min(this.plane.levels - 1, wanted));
  }

  /** The point px, py of the canvas stays where it is. */
  zoom(by, px, py) {
    const { left, top, width, height } = this.area;
    const [dx, dy] = [(px ?? left + width / 2) - left - width / 2, (py ?? top + height / 2) - top - height / 2];
    const least = min(1, min(width / this.plane.cols, height / this.plane.rows)) / 1.5;
    const scale = max(least, min(LARGEST, this.scale * by));
    this.x += dx / this.scale - dx / scale;
    this.y += dy / this.scale - dy / scale;
    this.scale = scale;
    this.#settle();
  }

  pan(dx, dy) {
    this.x += dx / this.scale;
    this.y += dy / this.scale;
    this.#settle();
  }

  #settle() {
    this.x = max(0, min(this.plane.cols, this.x));
    this.y = max(0, min(this.plane.rows, this.y));
    this.fitted = false;
    this.drawing.draw();
    this.tell();
  }

  #listen() {
    const { canvas } = this;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.zoom(2 ** (-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener('pointerdown', (event) => canvas.setPointerCapture(event.pointerId));
    canvas.addEventListener('pointermove', (event) => {
      if (event.buttons & 1) this.pan(-event.movementX, -event.movementY);
      this.#point(event.offsetX, event.offsetY);
    });
    canvas.addEventListener('pointerleave', () => { this.cursor = null; this.readout.textContent = ''; this.drawing.draw(); });
    canvas.addEventListener('dblclick', (event) => this.zoom(4, event.offsetX, event.offsetY));
    canvas.addEventListener('keydown', (event) => this.#key(event));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROWS) {
      const [dx, dy] = ARROWS[event.key];
      if (event.shiftKey) this.#step(dx, dy);
      else this.pan((dx * this.area.width) / 8, (dy * this.area.height) / 8);
    } else if (event.key === '+' || event.key === '=') this.zoom(1.5);
    else if (event.key === '-' || event.key === '−') this.zoom(1 / 1.5);
    else if (event.key === '0' || event.key === 'Home') this.fit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #step(dx, dy) {
    const cell = 2 ** this.level;
    const { row, col } = this.cursor ?? { row: floor(this.y), col: floor(this.x) };
    const keep = (value, size) => max(0, min(size - 1, value));
    this.cursor = { row: keep(row + dy * cell, this.plane.rows), col: keep(col + dx * cell, this.plane.cols) };
    this.#read();
    say(this.readout.textContent ?? '');
    this.drawing.draw();
  }

  #point(px, py) {
    const col = floor((px - this.x0) / this.scale);
    const row = floor((py - this.y0) / this.scale);
    const inside = px >= this.area.left && py >= this.area.top && col >= 0 && row >= 0 && col < this.plane.cols && row < this.plane.rows;
    this.cursor = inside ? { row, col } : null;
    this.#read();
    this.drawing.draw();
  }

  #read() {
    this.readout.textContent = '';
    if (!this.cursor) return;
    const { cursor: { row, col }, level } = this;
    const block = this.blocks.get(`${floor(col / BLOCK)},${floor(row / BLOCK)}`);
    const cell = 2 ** level;
    let value = '…';
    if (level === 0 && this.scale >= NUMBERS_FROM && block) value = block[row % BLOCK]?.[col % BLOCK] ?? '…';
    else value = number(this.#cell(level, floor(row / cell), floor(col / cell)), 7);
    const end = (from, size) => min(size, (floor(from / cell) + 1) * cell) - 1;
    const span = (from, size) => (level ? `${floor(from / cell) * cell}–${end(from, size)}` : String(from));
    const where = this.plane.fold === null ? `[${span(row, this.plane.rows)}, ${span(col, this.plane.cols)}]` : `[${row * this.plane.cols + col}]`;
    this.readout.textContent = `${where}  ${level ? `${t(`stat_${this.stat}`)} ` : ''}${value}`;
  }

  async #loadLines() {
    this.lines = [];
    if (!this.options.strips || this.plane.fold !== null) return;
    const of = this.stat === 'absmax' ? 'absmax' : 'norm';
    try {
      this.lines = await Promise.all([0, 1].map(async (axis) => {
        const buffer = await getBytes(`${this.options.base}/lines${query({ axis, axes: this.axes, at: this.at, of })}`, this.stop.signal);
        const head = new Uint32Array(buffer, 0, 4);
        return { step: max(1, head[3]), values: new Float32Array(buffer, 16, head[1]) };
      }));
    } catch (error) {
      report(error);
    }
    this.drawing.draw();
  }

  async #fetch(key, level, x, y) {
    this.tiles.set(key, null);
    const { signal } = this.stop;
    try {
      const buffer = await getBytes(`${this.options.base}/tile${query({ axes: this.axes, at: this.at, level, x, y, stat: this.stat })}`, signal);
      const head = new DataView(buffer);
      const [w, tall] = [head.getUint32(8, true), head.getUint32(12, true)];
      const cells = new Float32Array(buffer, 32, w * tall);
      this.tiles.set(key, { w, h: tall, cells, exact: head.getUint32(24, true) === 1, limits: limits(cells), image: null, painted: '' });
      for (const old of this.tiles.keys()) {
        if (this.tiles.size <= TILES_KEPT) break;
        if (old !== key && this.tiles.get(old)) this.tiles.delete(old);
      }
      this.element.dataset.tiles = String(this.tiles.size);
      this.drawing.draw();
    } catch (error) {
      if (!signal.aborted) this.tiles.delete(key);
      report(error);
    }
  }

  /** What the colours' ends stand for, over the tiles that are here.
   * @param {number} level @returns {[number, number]} */
  #range(level) {
    let [low, high] = [Infinity, -Infinity];
    for (const [key, tile] of this.tiles) {
      if (!tile || !key.startsWith(`${level},`)) continue;
      const [a, b, least, most] = tile.limits;
      [low, high] = this.full ? [min(low, least), max(high, most)] : [min(low, a), max(high, b)];
    }
    if (!(low <= high)) return [0, 1];
    const far = max(Math.abs(low), Math.abs(high)) || 1;
    if (this.options.signed(this.stat)) return [-far, far];
    if (this.full || this.stat === 'nan') low = min(0, low);
    return low < high ? [low, high] : [min(0, low), high || 1];
  }

  #paint(pen, width, height) {
    const { left, top, width: w, height: tall } = this.area;
    const { level, scale, plane } = this;
    const { x0, y0 } = this;
    pen.save();
    pen.beginPath();
    pen.rect(left, top, w, tall);
    pen.clip();
    pen.fillStyle = ink('sunk');
    pen.fillRect(left, top, w, tall);
    pen.imageSmoothingEnabled = false;
    this.#paintTiles(pen, level, x0, y0);
    if (scale >= NUMBERS_FROM && level === 0) this.#paintNumbers(pen, x0, y0);
    pen.strokeStyle = ink('edge');
    pen.strokeRect(x0 - 0.5, y0 - 0.5, plane.cols * scale + 1, plane.rows * scale + 1);
    if (this.cursor) {
      const size = max(2, scale * 2 ** level);
      const cell = 2 ** level;
      pen.strokeStyle = ink('ink');
      pen.lineWidth = 2;
      pen.strokeRect(x0 + floor(this.cursor.col / cell) * cell * scale, y0 + floor(this.cursor.row / cell) * cell * scale, size, size);
    }
    pen.restore();
    if (this.lines.length) this.#paintStrips(pen, x0, y0, width, height);
    this.#paintScale(level);
    this.canvas.setAttribute('aria-label', t('heatmapLabel', plane.rows, plane.cols, Math.round(this.y), Math.round(this.x), t(`stat_${this.stat}`), 2 ** level));
  }

  /** The first and last columns and rows in sight, in units of so many elements. @returns {[number, number, number, number]} */
  #sight(unit) {
    const { left, top, width, height } = this.area;
    const side = unit * this.scale;
    const span = (from, size, origin, all) => [max(0, floor((from - origin) / side)), min(ceil(all / unit), ceil((from + size - origin) / side)) - 1];
    return /** @type {any} */ ([...span(left, width, this.x0, this.plane.cols), ...span(top, height, this.y0, this.plane.rows)]);
  }

  #cell(level, row, col) {
    const tile = this.tiles.get(`${level},${floor(col / SIDE)},${floor(row / SIDE)}`);
    return tile?.cells[(row % SIDE) * tile.w + (col % SIDE)];
  }

  #paintTiles(pen, level, x0, y0) {
    pen.save();
    pen.beginPath();  // the border cuts the last cells, which may stand for fewer elements
    pen.rect(x0, y0, this.plane.cols * this.scale, this.plane.rows * this.scale);
    pen.clip();
    for (const at of new Set([this.plane.levels - 1, level])) {  // the whole plane below, so that nothing flashes empty
      const [low, high] = this.#range(at);
      const [xa, xb, ya, yb] = this.#sight(SIDE * 2 ** at);
      const cell = this.scale * 2 ** at;
      for (let y = ya; y <= yb; ++y) for (let x = xa; x <= xb; ++x) {
        const key = `${at},${x},${y}`;
        const tile = this.tiles.get(key);
        if (tile === undefined) this.#fetch(key, at, x, y);
        if (!tile) continue;
        const [px, py] = [x0 + x * SIDE * cell, y0 + y * SIDE * cell];
        pen.drawImage(tileImage(tile, low, high, this.options.signed(this.stat)), px, py, tile.w * cell, tile.h * cell);
        if (at === level && cell >= 6) paintOdd(pen, tile, px, py, cell);
      }
    }
    pen.restore();
  }

  #paintNumbers(pen, x0, y0) {
    if (!this.options.numbers) return;
    const { scale } = this;
    const [ca, cb, ra, rb] = this.#sight(1);
    for (let by = floor(ra / BLOCK); by <= floor(rb / BLOCK); ++by) for (let bx = floor(ca / BLOCK); bx <= floor(cb / BLOCK); ++bx) this.#wantBlock(bx, by);
    const size = scale < 34 ? 8.5 : scale < 60 ? 10 : 12;
    pen.font = `${size}px ${ink('mono')}`;
    pen.textAlign = 'center';
    const room = floor((scale - 3) / (size * 0.6));
    const [low, high] = this.#range(0);
    const map = colourMap(this.options.signed(this.stat));
    for (let row = ra; row <= rb; ++row) for (let col = ca; col <= cb; ++col) {
      const block = this.blocks.get(`${floor(col / BLOCK)},${floor(row / BLOCK)}`);
      const text = block?.[row % BLOCK]?.[col % BLOCK];
      if (text === undefined) continue;
      const value = parse(text);
      const shown = max(low, min(high, this.stat === 'absmax' ? Math.abs(value) : value));
      const colour = map[Math.round(((shown - low) / (high - low || 1)) * 255)] ?? 0xffffff;
      const light = 0.299 * (colour & 255) + 0.587 * ((colour >> 8) & 255) + 0.114 * ((colour >> 16) & 255);
      const [x, y] = [x0 + (col + 0.5) * scale, y0 + (row + 0.5) * scale];
      const fitted = squeeze(text, value, room);
      if (!Number.isFinite(value)) {  // on a hatched ground
        pen.fillStyle = '#ffffff';
        const wide = pen.measureText(fitted).width + 4;
        pen.fillRect(x - wide / 2, y - size * 0.65, wide, size * 1.3);
      }
      pen.fillStyle = !Number.isFinite(value) || light > 140 ? '#000000' : '#ffffff';
      pen.fillText(fitted, x, y);
    }
  }

  async #wantBlock(bx, by) {
    const key = `${bx},${by}`;
    if (this.blocks.has(key)) return;
    this.blocks.set(key, null);
    const [x, y] = [bx * BLOCK, by * BLOCK];
    const [w, tall] = [min(BLOCK, this.plane.cols - x), min(BLOCK, this.plane.rows - y)];
    const { signal } = this.stop;
    try {
      const answer = await get(`${this.options.base}/values${query({ axes: this.axes, at: this.at, x, y, w, h: tall })}`, signal);
      this.blocks.set(key, answer.rows);
      this.drawing.draw();
    } catch (error) {
      if (!signal.aborted) this.blocks.delete(key);
      report(error);
    }
  }

  #paintStrips(pen, x0, y0, width, height) {
    const { area: { left, top }, scale } = this;
    pen.fillStyle = ink('bars');
    stripBars(this.lines[0], scale, y0, top, height, (at, wide, part) => pen.fillRect(left - 4 - part * (STRIP - 8), at, part * (STRIP - 8), wide - (wide > 3 ? 1 : 0)));
    stripBars(this.lines[1], scale, x0, left, width, (at, wide, part) => pen.fillRect(at, top - 4 - part * (STRIP - 8), wide - (wide > 3 ? 1 : 0), part * (STRIP - 8)));
  }

  #paintScale(level) {
    const [low, high] = this.#range(level);
    const signed = this.options.signed(this.stat);
    const exact = [...this.tiles].every(([key, tile]) => !tile || tile.exact || !key.startsWith(`${level},`));
    const key = `${low},${high},${signed},${exact},${level},${ink('paper')}`;
    if (this.scaleBar.dataset.key === key) return;
    this.scaleBar.dataset.key = key;
    const map = colourMap(signed);
    const swatch = h('span', { class: 'ramp' });
    swatch.style.background = `linear-gradient(to right, ${[0, 32, 64, 96, 128, 160, 192, 224, 255].map((i) => css(map[i])).join(', ')})`;
    const end = (sign, value) => h('span', { class: 'n' }, (this.full ? '' : sign) + number(value, 3));
    this.scaleBar.replaceChildren(end('≤ ', low), swatch, end('≥ ', high),
      h('span', { class: 'quiet' }, [t('cellIs', 2 ** level), exact ? t('exact') : t('sampled')].join(' · ')));
    this.element.dataset.exact = String(exact);
    this.element.dataset.level = String(level);
  }

  /** The cells in sight, and the norms beside and above them. */
  data() {
    const { level, lines } = this;
    const size = 2 ** level;
    const [ca, cb, ra, rb] = this.#sight(size);
    const columns = Array.from({ length: max(0, min(cb - ca + 1, 64)) }, (_, i) => ca + i);
    const norm = ({ step, values }, at) => max(...values.slice(floor((at * size) / step), ceil(((at + 1) * size) / step)));
    const title = this.stat === 'absmax' ? t('stat_absmax') : 'L2';
    const rows = Array.from({ length: max(0, rb - ra + 1) }, (_, i) => [String((ra + i) * size), ...lines.slice(1).map(() => norm(lines[0], ra + i)), ...columns.map((col) => this.#cell(level, ra + i, col) ?? '')]);
    if (lines.length) rows.unshift([title, '', ...columns.map((col) => norm(lines[1], col))]);
    return { columns: [t('row'), ...lines.slice(1).map(() => `#${title}`), ...columns.map((col) => `#${col * size}`)], rows };
  }
}
