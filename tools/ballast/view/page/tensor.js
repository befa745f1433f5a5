// One tensor: a sample first; everything is read when asked for.
import { button, bytes, choice, count, dotted, facts, get, grow, h, number, parse, part, percent, query, quiet, report, request, saveFrom, say, shapeText, table, tool, watch } from './core.js';
import { figure, histogramData, histogramDrawing, histogramSummary } from './charts.js';
import { Heatmap } from './heatmap.js';
import { t } from './strings.js';

/** @type {Show} */
export async function tensorPage(context, pane, parameters, n) {
  const base = `${context.base()}/t/${n}`;
  const signal = context.signal();
  const tensor = await get(base, signal);
  context.title(tensor.name);
  const summary = new Summary(base, tensor, signal);
  const plane = new PlanePart(context, base, tensor, parameters, signal);
  summary.whenExact = () => plane.show(true);
  /** @type {[string, string][]} */
  const known = [[t('dtype'), tensor.dtype], [t('shape'), shapeText(tensor.shape)], [t('parameters'), count(tensor.parameters)], [t('size'), bytes(tensor.bytes)]];
  if (tensor.file) known.push([t('file'), tensor.file]);
  if (typeof tensor.offset === 'number') known.push([t('offset'), count(tensor.offset)]);
  if (tensor.layout !== 'contiguous' && tensor.strides?.length) known.push([t('strides'), tensor.strides.join(', ')]);
  if (tensor.tied?.length) known.push([t('tied'), tensor.tied.join(', ')]);
  const tools = [
    tool('NPY', () => saveFrom(`${base}/npy`, `${tensor.name}.npy`, tensor.bytes).catch(report), t('npy')),
    tool('CSV', () => saveFrom(`${base}/csv${plane.axes.where()}`, `${tensor.name}.csv`, 0).catch(report), t('csvPlane')),
    tool(t('link'), () => copy(location.href), t('linkTip')),
  ];
  pane.append(
    h('header', { class: 'tensor-head' }, h('h2', { class: 'name' }, dotted(tensor.name)), grow(), tools),
    facts(known),
    ...(tensor.note ? [quiet(tensor.note)] : []),
    summary.status,
    h('div', { class: 'tensor' }, h('div', { class: 'side' }, summary.element), plane.element));
  await Promise.all([summary.load(), plane.load()]);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say(t('copied'));
  } catch {
    say(text);
  }
}

class Summary {
  /** @param {string} base @param {any} tensor @param {AbortSignal} signal */
  constructor(base, tensor, signal) {
    this.base = base;
    this.tensor = tensor;
    this.signal = signal;
    this.whenExact = () => {};
    /** @type {any} */
    this.answer = null;
    this.status = h('div', { class: 'status' });
    this.numbers = h('div', null);
    this.drawing = histogramDrawing(() => this.answer?.histogram ?? null, () => this.answer?.quantiles ?? []);
    this.drawing.canvas.className = 'histogram';
    const frame = figure({ title: t('histogram'), content: h('div', null, this.drawing.canvas), canvas: this.drawing.canvas, name: () => `${tensor.name}-histogram`,
      data: () => histogramData(this.answer?.histogram ?? { edges: [], counts: [], below: 0, above: 0 }) });
    this.caption = frame.summary;
    this.element = h('div', { class: 'summary-part' }, this.numbers, frame.element);
  }

  async load() {
    this.#take(await get(`${this.base}/summary?exact=0`, this.signal));
  }

  #take(answer) {
    this.answer = answer;
    const { elements } = answer;
    const rough = !/^(B|C32|F[468]|F16|QU[24]|Q?[IU](8|16)$)/.test(this.tensor.dtype);  // wider types are counted by their upper 16 bits
    const share = (part) => [count(part), part ? h('span', { class: 'quiet' }, ` ${percent(part, answer.exact ? elements : answer.sampled)}`) : null];
    const label = (q) => (q === 0 ? t('min') : q === 1 ? t('max') : q === 0.5 ? t('median') : `p${Number((q * 100).toFixed(3))}`);
    this.numbers.replaceChildren(h('div', { class: 'pair' },
      part(t('summary'), table(t('summary'), [t('what'), `#${t('value')}`], [
        [t('min'), number(answer.min)], [t('max'), number(answer.max)], [t('mean'), number(answer.mean)], [t('std'), number(answer.std)], ['L2', answer.exact ? number(answer.l2) : `≈ ${number(parse(answer.l2) * Math.sqrt(elements / answer.sampled), 3)}`],
        ['NaN', share(answer.nan)], ['+Inf', share(answer.pos_inf)], ['−Inf', share(answer.neg_inf)], [t('zeros'), share(answer.zeros)]])),
      part(t('quantiles') + (rough ? ' ± 0.4 %' : ''), table(t('quantiles'), [t('share'), `#${t('value')}`],
        (answer.quantiles ?? []).map(([q, value]) => [label(q), number(value, rough && q > 0 && q < 1 ? 3 : 5)])))));
    this.numbers.dataset.exact = String(answer.exact);
    this.caption.textContent = answer.histogram ? histogramSummary(answer.histogram, answer.quantiles ?? []) : '';
    this.drawing.canvas.setAttribute('aria-label', `${t('histogram')}. ${this.caption.textContent}`);
    this.drawing.draw();
    if (answer.exact) this.status.replaceChildren(h('span', { class: 'badge good' }, t('exact')), ' ', t('readAllDone', count(elements)));
    else this.status.replaceChildren(h('span', { class: 'badge' }, t('sampled')), ' ', t('sampledOf', count(answer.sampled), count(elements)), ' ',
      button(t('readAll', bytes(this.tensor.bytes)), () => this.#readAll().catch((error) => { this.#take(this.answer); report(error); }), { class: 'primary' }));
  }

  async #readAll() {
    const { job } = await request('POST', `${this.base}/exact`, {}, this.signal);
    const ending = watch(job, this.status, t('reading'), this.signal);
    this.status.querySelector('button')?.focus();
    if ((await ending) === 'cancelled') {
      this.#take(this.answer);
      say(t('cancelled'));
      return;
    }
    this.#take(await get(`${this.base}/summary?exact=1`, this.signal));
    say(t('readAllDone', count(this.answer.elements)));
    this.whenExact();
  }
}

const STATS = ['absmax', 'mean', 'value', 'nan'];

class PlanePart {
  /** @param {Context} context @param {string} base @param {any} tensor @param {URLSearchParams} parameters @param {AbortSignal} signal */
  constructor(context, base, tensor, parameters, signal) {
    this.base = base;
    this.signal = signal;
    this.axes = new Axes(tensor.shape, parameters, (keep) => this.show(keep));
    const stat = parameters.get('stat') ?? 'absmax';
    this.stat = STATS.includes(stat) ? stat : 'absmax';
    this.wanted = parameters.has('level') ? ['level', 'x', 'y'].map((key) => Number(parameters.get(key))) : null;
    this.heat = new Heatmap({ base, changed: (state) => context.remember(state), signed: (shown) => shown === 'mean' || shown === 'value', strips: true, numbers: true, signal });
    const empty = tensor.parameters === 0;
    const frame = figure({ title: t('heatmap'), content: empty ? quiet(t('emptyTensor')) : this.heat.element, canvas: this.heat.canvas, name: () => `${tensor.name}-heatmap`, data: () => this.heat.data(),
      tools: [choice(t('stat'), STATS.map((key) => [key, t(`stat_${key}`)]), this.stat, (value) => { this.stat = value; this.show(true); }),
        choice(t('range'), [['robust', '1–99.5 %'], ['full', t('full')]], 'robust', (value) => { this.heat.full = value === 'full'; this.heat.drawing.draw(); }),
        this.heat.tools()], cls: 'heat-figure' });
    frame.summary.textContent = t('heatmapSummary');
    frame.element.insertBefore(this.axes.element, frame.element.children[1]);
    this.element = frame.element;
    this.empty = empty;
  }

  async load() {
    if (!this.empty) await this.show(false);
  }

  async show(keep) {
    try {
      const plane = await get(`${this.base}/plane${this.axes.where()}`, this.signal);
      this.heat.show({ ...this.axes.plane(), stat: this.stat }, { rows: plane.rows, cols: plane.cols, levels: Math.max(1, plane.levels), fold: plane.fold ?? null }, keep);
      if (this.wanted) this.heat.place(this.wanted[0], this.wanted[1], this.wanted[2]);
      this.wanted = null;
    } catch (error) {
      report(error);
    }
  }
}

/** Which two axes make the picture, and at which indices of the others. */
export class Axes {
  /** @param {number[]} shape @param {URLSearchParams} parameters @param {(keep: boolean) => void} changed */
  constructor(shape, parameters, changed) {
    this.shape = shape;
    this.changed = changed;
    const rank = shape.length;
    const numbers = (key) => (parameters.get(key) ?? '').split(',').filter(Boolean).map(Number);
    const given = numbers('axes').filter((axis) => axis >= 0 && axis < rank);
    // The two longest make the picture of a convolution's kernel; of a matrix, all there is.
    this.axes = given.length === Math.min(2, rank) ? given : rank >= 2 ? bestAxes(shape) : rank === 1 ? [0] : [];
    const at = numbers('at');
    this.others = new Map(this.rest().map((axis, i) => [axis, Math.min(Math.max(0, at[i] || 0), Math.max(0, shape[axis] - 1))]));
    this.element = h('div', { class: 'axes' });
    this.#pick();
  }

  rest() {
    return this.shape.map((_, axis) => axis).filter((axis) => !this.axes.includes(axis));
  }

  plane() {
    return { axes: this.axes.join(','), at: this.rest().map((axis) => this.others.get(axis) ?? 0).join(',') };
  }

  where() {
    return query(this.plane());
  }

  #pick() {
    if (this.shape.length < 2 || this.shape.includes(0)) return;
    const options = this.shape.map((size, axis) => [String(axis), t('dimension', axis, count(size))]);
    const choose = (which) => (value) => {
      const axis = Number(value);
      if (this.axes[1 - which] === axis) this.axes[1 - which] = this.axes[which];
      this.axes[which] = axis;
      for (const other of this.rest()) if (!this.others.has(other)) this.others.set(other, 0);
      this.#pick();
      this.changed(false);
    };
    this.element.replaceChildren(choice(t('rowsAre'), options, String(this.axes[0]), choose(0)), choice(t('colsAre'), options, String(this.axes[1]), choose(1)),
      ...this.rest().map((axis) => this.#index(axis)));
  }

  #index(axis) {
    const max = String(Math.max(0, this.shape[axis] - 1));
    const value = String(this.others.get(axis) ?? 0);
    const change = (event) => {
      const given = Math.min(Number(max), Math.max(0, Math.round(Number(/** @type {HTMLInputElement} */ (event.target).value)) || 0));
      this.others.set(axis, given);
      slider.value = box.value = String(given);
      this.changed(true);
    };
    const input = (type, more) => h('input', { type, min: '0', max, value, 'aria-label': t('indexOf', axis), ...more });
    const slider = input('range', { input: change });
    const box = input('number', { change });
    return h('span', { class: 'index' }, h('span', null, t('dimension', axis, count(this.shape[axis]))), slider, box);
  }
}

/** @param {number[]} shape @returns {[number, number]} */
function bestAxes(shape) {
  if (shape.length === 2) return [0, 1];
  const order = shape.map((size, axis) => ({ size, axis })).sort((a, b) => b.size - a.size || a.axis - b.axis).slice(0, 2).map(({ axis }) => axis);
  return /** @type {[number, number]} */ (order.sort((a, b) => a - b));
}

