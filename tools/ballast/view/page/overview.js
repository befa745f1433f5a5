// One file at a glance.
import { ARROWS, button, bytes, choice, count, dotted, facts, getBytes, h, number, part, patient, percent, query, quiet, report, say, shapeText, short, table } from './core.js';
import { colourMap, css, Drawing, figure, ink, kindColour, legend } from './charts.js';
import { t } from './strings.js';

/** @type {Show} */
export function overview(context, pane, parameters) {
  const file = context.file();
  const treemap = new Treemap(context, parameters.get('path') ?? '');
  const largest = h('section', null);
  pane.append(
    h('section', { class: 'glance' }, facts([[t('format'), file.format], [t('size'), bytes(file.bytes)], [t('tensors'), count(file.tensors)], [t('parameters'), count(file.parameters)]])),
    ...file.notes.length ? [h('section', { class: 'notes' }, h('h3', null, t('notes')), h('ul', null, file.notes.map((note) => h('li', null, note))))] : [],
    ...file.tensors ? [treemap.element] : [],
    h('div', { class: 'columns' },
      part(t('dtypes'), table(t('dtypes'), [t('dtype'), `#${t('tensors')}`, `#${t('parameters')}`, `#${t('size')}`, '#%'],
        file.dtypes.map((row) => [row.dtype, count(row.tensors), count(row.parameters), bytes(row.bytes), percent(row.bytes, file.dtypes.reduce((sum, each) => sum + each.bytes, 0))]))),
      largest, ...file.tensors ? [oddities(context)] : []),
    metadata(file));
  fillLargest(context, largest).catch(report);
}

/** @param {Context} context @param {HTMLElement} section */
async function fillLargest(context, section) {
  const { rows } = await context.ask('find', { sort: 'bytes', offset: 0, limit: 12 });
  section.append(h('h3', null, t('largest')), table(t('largest'), [t('name'), t('dtype'), t('shape'), `#${t('size')}`],
    rows.map((row) => [h('a', { href: context.tensorLink(row.n), class: 'name' }, dotted(row.path)), row.dtype, shapeText(row.shape), bytes(row.bytes)])));
}

/** NaN, infinities, zeros, tied tensors: known when all is read, which a small file is at once.
 * @param {Context} context */
function oddities(context) {
  const place = h('div', { class: 'status' });
  const look = async () => {
    const answer = await patient(`${context.base()}/measures`, place, t('reading'), context.signal());
    if (!answer) return ask();
    const rows = answer.odd.map((row) => [h('a', { href: context.tensorLink(row.n), class: 'name' }, dotted(row.path)), t(`odd_${row.kind}`, typeof row.value === 'number' ? number(row.value) : row.value ?? '')]);
    place.replaceChildren(rows.length ? table(t('odd'), [t('name'), t('what')], rows) : t('nothingOdd'), answer.total > rows.length ? t('more', count(answer.total - rows.length)) : '');
  };
  const ask = () => place.replaceChildren(button(t('readAll', bytes(context.file().bytes)), () => { look().catch(report); }, { class: 'tool' }));
  if (context.file().bytes < 2 ** 26) look().catch(report);
  else ask();
  return h('section', { class: 'odd' }, h('h3', null, t('odd')), place);
}

/** @param {FileFacts} file */
function metadata(file) {
  if (!file.metadata.length) return quiet(t('noMetadata'));
  const more = file.metadata_total - file.metadata.length;
  return part(t('metadata'), table(t('metadata'), [t('key'), t('value')], file.metadata.map(([key, value]) => [h('code', null, key), h('span', { class: 'wrap' }, value)])),
    more > 0 ? quiet(t('more', count(more))) : null);
}

const MEASURES = ['std', 'absmax', 'change'];

class Treemap {
  /** @param {Context} context @param {string} path */
  constructor(context, path) {
    this.context = context;
    this.path = path;
    this.by = 'bytes';
    this.colour = context.file().dtypes.filter((row) => row.bytes > 0.05 * context.file().bytes).length > 1 ? 'dtype' : 'role';
    /** @type {string[]} the kinds that have a colour of their own */
    this.kinds = [];
    /** @type {Rect[]} */
    this.rects = [];
    /** @type {string[]} */
    this.groups = [];
    /** @type {string[]} */
    this.dtypes = [];
    /** @type {Map<number, {path: string, dtype: string, shape: number[], bytes: number}>} */
    this.names = new Map();
    this.chosen = -1;
    this.range = [0, 0];
    this.asked = '';
    this.rest = 0;
    this.drawing = new Drawing(t('treemap'), (pen, w, tall) => this.#paint(pen, w, tall));
    const { canvas } = this.drawing;
    Object.assign(canvas, { tabIndex: 0, className: 'treemap', role: 'application', ariaRoleDescription: t('treemap') });
    canvas.addEventListener('keydown', (event) => this.#key(event));
    canvas.addEventListener('pointermove', (event) => this.#choose(this.#at(event.offsetX, event.offsetY)));
    canvas.addEventListener('pointerleave', () => this.#choose(-1));
    canvas.addEventListener('click', (event) => { this.#choose(this.#at(event.offsetX, event.offsetY)); this.#enter(); });
    this.crumbs = h('nav', { class: 'crumbs', 'aria-label': t('path') });
    this.told = h('output', { class: 'readout' });
    this.key = h('div', null);
    const frame = figure({ title: t('treemap'), content: h('div', null, this.crumbs, canvas, h('div', { class: 'under' }, this.told, this.key)), canvas, cls: 'wide',
      name: () => `treemap${this.path ? '-' + this.path : ''}`, data: () => this.#data(),
      tools: [choice(t('by'), [['bytes', t('size')], ['parameters', t('parameters')]], this.by, (by) => { this.by = by; this.load(); }),
        choice(t('colour'), ['dtype', 'role', ...MEASURES.slice(0, context.files().length > 1 ? 3 : 2)].map((key) => [key, t(key)]), this.colour, (colour) => { this.colour = colour; this.load(); })] });
    this.summary = frame.summary;
    this.element = frame.element;
    new ResizeObserver(() => this.load()).observe(canvas);
  }

  async load() {
    const { clientWidth: w, clientHeight: tall } = this.drawing.canvas;
    const measured = this.#measured();
    const asked = query({ path: this.path, w, h: tall, by: this.by, colour: measured ? this.colour : '' });
    if (asked === this.asked) this.#describe();
    if (!w || asked === this.asked) return;
    this.asked = asked;
    try {
      if (measured && !(await patient(this.colour === 'change' ? 'diff?limit=1' : `${this.context.base()}/measures`, this.key, t('reading'), this.context.signal()))) {
        this.key.replaceChildren(t('cancelled'));
        this.asked = '';
        return;
      }
      const buffer = await getBytes(`${this.context.base()}/treemap${asked}`, this.context.signal());
      if (asked !== this.asked) return;
      const length = new DataView(buffer).getUint32(0, true);
      const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
      const start = 4 + Math.ceil(length / 4) * 4;
      const numbers = new Int32Array(buffer.slice(start));
      const values = new Float32Array(numbers.buffer);
      this.groups = head.groups;
      this.dtypes = head.dtypes;
      this.rects = Array.from({ length: Math.floor(numbers.length / 7) }, (_, i) => {
        const [x, y, width, height, node, dtype] = numbers.subarray(i * 7, i * 7 + 6);
        return { x, y, w: width, h: height, node, dtype, value: values[i * 7 + 6] };
      });
      this.chosen = -1;
      this.#trail();
      await this.#learn();
      this.rest = head.rest ?? 0;
      this.#describe();
    } catch (error) {
      report(error);
    }
  }

  /** Names: of the largest in pages, of others when pointed at. */
  async #learn() {
    for (let offset = 0; offset < 2000 && this.rects.some((rect) => rect.node >= 0 && !this.names.has(rect.node)); offset += 500) {
      const answer = await this.context.ask('find', { sort: this.by, offset, limit: 500 });
      for (const row of answer.rows) this.names.set(row.n, row);
      if (answer.rows.length < 500) break;
    }
  }

  #measured() {
    return MEASURES.includes(this.colour);
  }

  /** Its place between the least and the greatest, in powers of ten; -1 for zero and what has no number. */
  #place(rect) {
    const [low, high] = this.range;
    return rect.value > 0 ? (high > low ? Math.log(rect.value / low) / Math.log(high / low) : 1) : -1;
  }

  #kind(rect) {
    if (this.colour === 'dtype') return this.dtypes[rect.dtype] ?? t('other');
    const name = rect.node < 0 ? this.#name(rect) : this.names.get(rect.node)?.path;
    return name?.split('.').filter((part) => !/^(\d+|#|weight|bias)$/.test(part)).pop() ?? t('other');
  }

  #describe() {
    if (this.#measured()) {
      const values = this.rects.map((rect) => rect.value).filter((value) => value > 0);
      this.range = [Math.min(...values), Math.max(...values)];
      this.summary.textContent = t('treemapSummary', count(this.rects.length), t(this.colour)) + (values.length ? ' ' + t('colourRange', number(this.range[0], 3), number(this.range[1], 3)) : '');
      this.key.replaceChildren();
      this.drawing.draw();
      return;
    }
    /** @type {Map<string, number>} */
    const areas = new Map();
    for (const rect of this.rects) areas.set(this.#kind(rect), (areas.get(this.#kind(rect)) ?? 0) + rect.w * rect.h);
    const all = [...areas].sort((a, b) => b[1] - a[1]).map(([kind]) => kind);
    this.kinds = all.length > 8 ? [...all.slice(0, 7), t('other')] : all;
    this.summary.textContent = t('treemapSummary', count(this.rects.length), t(this.colour)) + (this.rest > 0 ? ' ' + t('treemapRest', count(this.rest)) : '');
    this.key.replaceChildren(legend(this.kinds));
    this.drawing.draw();
    this.drawing.canvas.setAttribute('aria-label', `${t('treemap')}. ${this.summary.textContent} ${t('treemapKeys')}`);
  }

  #trail() {
    const parts = !this.path ? [] : this.path[0] === '@' ? [this.path] : this.path.split('.');
    const link = (text, path) => h('button', { type: 'button', class: 'crumb', click: () => this.go(path) }, text);
    this.crumbs.replaceChildren(link(t('all'), ''), ...parts.map((part, i) => link(part, parts.slice(0, i + 1).join('.'))));
  }

  go(path) {
    this.path = path;
    this.context.remember({ path });
    this.load();
  }

  #name(rect) {
    if (rect.node >= 0) return this.names.get(rect.node)?.path ?? `#${rect.node}`;
    return this.groups[-rect.node - 1] ?? '';
  }

  #label(rect) {
    const name = this.#name(rect);
    return this.path && name.startsWith(`${this.path}.`) ? name.slice(this.path.length + 1) : name;
  }

  #paint(pen, width, height) {
    pen.fillStyle = ink('sunk');
    pen.fillRect(0, 0, width, height);
    this.rects.forEach((rect, i) => {
      const kind = this.kinds.indexOf(this.#kind(rect));
      const place = this.#measured() ? this.#place(rect) : -1;
      pen.fillStyle = place >= 0 ? css(colourMap(false)[Math.round(255 * place)]) : this.#measured() ? ink('line') : kindColour(kind < 0 ? 7 : kind);
      const gap = rect.w > 3 && rect.h > 3 ? 1 : rect.w > 1 && rect.h > 1 ? 0.4 : 0;
      pen.globalAlpha = this.#measured() || i === this.chosen ? 1 : rect.node < 0 ? 0.6 : 0.75;
      pen.fillRect(rect.x, rect.y, rect.w - gap, rect.h - gap);
      pen.globalAlpha = 1;
      if (rect.w < 44 || rect.h < 16) return;
      pen.save();
      pen.beginPath();
      pen.rect(rect.x, rect.y, rect.w - 4, rect.h);
      pen.clip();
      pen.fillStyle = !this.#measured() ? ink('onkind') : place < 0 ? ink('ink') : place < 0.45 ? '#fff' : '#000';
      pen.font = `11px ${ink('font')}`;
      pen.textAlign = 'left';
      pen.fillText(fit(pen, this.#label(rect), rect.w - 10), rect.x + 5, rect.y + 10);
      const known = this.names.get(rect.node);
      if (rect.h > 32 && rect.w > 70) pen.fillText(fit(pen, known ? `${known.dtype} ${shapeText(known.shape)}` : this.dtypes[rect.dtype] ?? '', rect.w - 10), rect.x + 5, rect.y + 24);
      pen.restore();
    });
    const rect = this.rects[this.chosen];
    if (!rect) return;
    pen.strokeStyle = ink('ink');
    pen.lineWidth = 2;
    pen.strokeRect(rect.x + 1, rect.y + 1, Math.max(1, rect.w - 3), Math.max(1, rect.h - 3));
  }

  #at(x, y) {
    return this.rects.findIndex((rect) => x >= rect.x && y >= rect.y && x < rect.x + rect.w && y < rect.y + rect.h);
  }

  #choose(index, aloud = false) {
    if (index === this.chosen) return;
    this.chosen = index;
    const rect = this.rects[index];
    const known = rect && this.names.get(rect.node);
    this.told.textContent = !rect ? '' : [this.#name(rect), known ? `${known.dtype} ${shapeText(known.shape)}, ${bytes(known.bytes)}` : this.dtypes[rect.dtype], this.#measured() && `${t(this.colour)} ${number(rect.value, 4)}`].filter(Boolean).join('  ');
    if (aloud) say(this.told.textContent);
    this.drawing.draw();
    if (rect && rect.node >= 0 && !known) {
      this.context.ask(`t/${rect.node}`).then((answer) => {
        this.names.set(rect.node, { path: answer.name, dtype: answer.dtype, shape: answer.shape, bytes: answer.bytes });
        if (this.chosen !== index) return;
        this.chosen = -1;
        this.#choose(index, aloud);
      }, () => {});
    }
  }

  #enter() {
    const rect = this.rects[this.chosen];
    if (!rect) return;
    if (rect.node >= 0) this.context.go(this.context.tensorLink(rect.node));
    else this.go(this.#name(rect));
  }

  #key(event) {
    if (event.key in ARROWS) this.#step(ARROWS[event.key]);
    else if (event.key === 'Enter') this.#enter();
    else if (event.key === 'Backspace') this.go(this.path.split('.').slice(0, -1).join('.'));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** To the nearest rectangle that way.
   * @param {[number, number]} way */
  #step([dx, dy]) {
    const from = this.rects[this.chosen];
    if (!from) return this.#choose(0, true);
    const middle = (rect) => [rect.x + rect.w / 2, rect.y + rect.h / 2];
    const [x, y] = middle(from);
    let best = this.chosen;
    let least = Infinity;
    this.rects.forEach((rect, i) => {
      const [mx, my] = middle(rect);
      const along = (mx - x) * dx + (my - y) * dy;
      const aside = Math.abs((mx - x) * dy) + Math.abs((my - y) * dx);
      if (i !== this.chosen && along > 0 && along + 2 * aside < least) [least, best] = [along + 2 * aside, i];
    });
    this.#choose(best, true);
  }

  async #data() {
    const answer = await this.context.ask('tree', { path: this.path, offset: 0, limit: 500, sort: this.by, fold: 1 });
    return { columns: [t('name'), t('dtype'), `#${t('tensors')}`, `#${t('parameters')}`, `#${t('size')}`],
      rows: answer.rows.map((row) => [row.path, row.kind === 'tensor' ? row.dtype : Object.keys(row.dtypes ?? {}).join(' '), row.tensors ?? 1, row.parameters, row.bytes]) };
  }
}

/** As many of the last components as there is room for; ".weight" goes first. */
function fit(pen, text, room) {
  const wide = (tried) => pen.measureText(tried).width > room;
  text = text.slice(-200);
  if (!wide(text)) return text;
  let parts = text.replace(/\.weight$/, '').split('.');
  while (parts.length > 1 && wide(parts.join('.'))) parts = parts.slice(1);
  let last = parts.join('.');
  if (!wide(last)) return last;
  while (last && wide(last + '…')) last = last.slice(0, -1);
  return last.length > 1 ? last + '…' : '';
}

/** The line of facts in the header.
 * @param {FileFacts} file */
export const glance = (file) => [file.format, t(file.tensors === 1 ? 'oneTensor' : 'nTensors', count(file.tensors)), short(file.parameters), bytes(file.bytes), file.dtypes.map((row) => row.dtype).slice(0, 3).join(' ')].filter(Boolean).join(' · ');
