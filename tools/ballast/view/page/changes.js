// Two files: which tensors changed, and by how much, along the layers.
import { baseName, button, bytes, choice, count, get, grow, h, number, part, patient, percent, query, quiet, report, request, saveCsv, say, tool, watch } from './core.js';
import { figure, legend, linesDrawing } from './charts.js';
import { Heatmap } from './heatmap.js';
import { Axes } from './tensor.js';
import { Grid, nameCell } from './tree.js';
import { t } from './strings.js';

const PAGE = 500;
const MOST_LINES = 2000;
const MOST_KINDS = 16;
const KINDS = ['changed', 'equal', 'only_a', 'only_b', 'shape', 'dtype', 'renamed'];

/** @type {Show} */
export async function changesPage(context, pane, parameters, chosen = -1) {
  const signal = context.signal();
  const [a, b] = context.files().map((file) => baseName(file.name));
  const waiting = h('div', { class: 'status' });
  pane.append(h('header', { class: 'tensor-head' }, h('h2', null, `${a} → ${b}`)), waiting);
  const ask = (more) => `diff${query(more)}`;
  const first = await patient(ask({ sort: 'file', offset: 0, limit: PAGE }), waiting, t('comparing'), signal);
  if (!first) {
    waiting.replaceChildren(t('cancelled'));
    return;
  }
  while (first.rows.length < Math.min(first.total, MOST_LINES)) {
    const { rows } = await get(ask({ sort: 'file', offset: first.rows.length, limit: PAGE }), signal);
    if (!rows?.length) break;
    first.rows.push(...rows);
  }
  const all = async () => {
    await patient(ask({ exact: 1, limit: 1 }), waiting, t('comparing'), signal);
    pane.replaceChildren();
    await changesPage(context, pane, parameters, chosen);
  };
  waiting.replaceChildren(...(first.sampled ? [h('span', { class: 'badge' }, t('sampled')), ' '] : []),
    t('changesCount', ...KINDS.slice(0, 4).map((kind) => count(first[kind])), count(first.renamed)), ' ',
    ...(first.sampled ? [button(t('readAll', bytes(first.bytes)), () => { all().catch(report); }, { class: 'primary' })] : []));
  const open = (i) => context.go(`#/changes/t${i}`);
  const delta = h('div', null);
  pane.append(lines(first.rows, chosen, open), delta, grid(ask, open, chosen));
  if (chosen >= 0) {
    const row = first.rows.find((each) => each.i === chosen) ?? (await get(ask({ sort: 'file', offset: chosen, limit: 1 }), signal)).rows[0];
    if (row) await showDelta(context, delta, row, parameters).catch(report);
  }
}

/** rel-L2 along the layers, one line per kind of weight.
 * @param {any[]} rows */
function lines(rows, chosen, open) {
  /** @type {Map<string, Series>} */
  const kinds = new Map();
  for (const row of rows) {
    const name = row.role || t('other');
    const y = row.kind === 'equal' ? 0 : Number(row.rel_l2 ?? NaN);
    if (row.layer == null || !Number.isFinite(y)) continue;
    if (!kinds.has(name)) kinds.set(name, { name, points: [] });
    kinds.get(name)?.points.push({ x: row.layer, y, id: row.i, label: row.name });
  }
  const series = [...kinds.values()].filter((one) => one.points.length > 1).sort((p, q) => mean(q) - mean(p)).slice(0, MOST_KINDS);
  if (!series.length) return quiet(t('noLayers'));
  for (const one of series) one.points.sort((p, q) => p.x - q.x);
  const { drawing, nearest } = linesDrawing(() => series, () => chosen);
  const { canvas } = drawing;
  canvas.className = 'lines';
  const told = h('output', { class: 'readout' });
  canvas.addEventListener('pointermove', (event) => {
    const hit = nearest(event.offsetX, event.offsetY);
    told.textContent = hit?.label ?? '';
    canvas.classList.toggle('hit', !!hit);
  });
  canvas.addEventListener('click', (event) => {
    const hit = nearest(event.offsetX, event.offsetY);
    if (hit) open(hit.id);
  });
  const frame = figure({ title: t('lines'), content: h('div', null, canvas, h('div', { class: 'under' }, told), legend(series.map((one) => one.name))), canvas, cls: 'wide', name: () => 'changes-by-layer',
    data: () => ({ columns: [t('kind'), `#${t('layer')}`, t('name'), `#${t('relL2')}`], rows: series.flatMap((one) => one.points.map((p) => [one.name, p.x, p.label, p.y])) }) });
  const top = series.flatMap((one) => one.points).sort((p, q) => q.y - p.y)[0];
  frame.summary.textContent = t('linesSummary', series.length, top.label, number(top.y, 3));
  canvas.setAttribute('aria-label', `${t('lines')}. ${frame.summary.textContent}`);
  return frame.element;
}

/** @param {Series} one */
const mean = (one) => one.points.reduce((sum, p) => sum + p.y, 0) / one.points.length;

/** @param {Ask} ask @param {(i: number) => void} open */
function grid(ask, open, chosen) {
  const asked = { sort: 'rel_l2', q: '', kind: '' };
  const value = (key) => (row) => number(row[key], 4);
  const again = (more) => { Object.assign(asked, more); made.reset(); };
  const made = new Grid({
    label: t('changes'), tree: false, sorted: () => asked.sort, sort: (key) => again({ sort: key }), name: (row) => row.name,
    columns: [
      { key: 'name', label: t('name'), sort: 'name', fill: (cell, row) => nameCell(cell, false, row.name_b && row.name_b !== row.name ? `${row.name} → ${row.name_b}` : row.name, '', true) },
      { key: 'kind', label: t('change'), fill: (cell, row) => { cell.textContent = (row.sampled ? '≈ ' : '') + t(`kind_${row.kind}`); cell.dataset.kind = row.kind; } },
      { key: 'value', label: t('relL2'), numeric: true, sort: 'rel_l2', text: value('rel_l2') },
      { key: 'value', label: t('cosine'), numeric: true, text: value('cosine') },
      { key: 'value', label: 'max |Δ|', numeric: true, sort: 'max_abs', text: value('max_abs') },
      { key: 'value', label: t('differing'), numeric: true, text: (row) => row.differing == null ? '–' : percent(row.differing, row.elements) },
    ],
    load: async (_path, offset, limit, signal) => {
      const answer = await get(ask({ ...asked, offset, limit }), signal);
      return { total: answer.total, rows: answer.rows.map((row) => ({ path: String(row.i), parent: false, data: row })) };
    },
    open: (item) => open(item.data.i),
  });
  if (chosen >= 0) made.choose(String(chosen));
  made.reset();
  return h('section', { class: 'changes-table' }, h('div', { class: 'bar' }, h('h3', null, t('tensors')), grow(),
    h('input', { type: 'search', placeholder: t('filter'), 'aria-label': t('filter'), input: (event) => again({ q: event.target.value }) }),
    choice(t('change'), [['', t('all')], ...KINDS.map((kind) => [kind, t(`kind_${kind}`)])], '', (kind) => again({ kind })), tool('CSV', () => exportAll(ask).catch(report), `CSV: ${t('changes')}`)), made.element);
}

/** @param {Ask} ask */
async function exportAll(ask) {
  const keys = ['name', 'name_b', 'kind', 'rel_l2', 'cosine', 'max_abs', 'differing', 'elements', 'sampled'];
  /** @type {unknown[][]} */
  const rows = [keys];
  for (let offset = 0, total = 1; offset < total;) {
    const answer = await get(ask({ sort: 'file', offset, limit: PAGE }));
    total = answer.total;
    if (!answer.rows.length) break;
    offset += answer.rows.length;
    for (const row of answer.rows) rows.push(keys.map((key) => row[key]));
  }
  saveCsv(rows, 'changes.csv');
}

const STATS = ['delta', 'ratio', 'sign', 'absmax'];

/** The difference of one pair as a heatmap.
 * @param {Context} context @param {HTMLElement} place @param {any} row */
async function showDelta(context, place, row, parameters) {
  const signal = context.signal();
  const title = t('deltaOf', row.name);
  if (row.n_a === null || row.n_b === null || row.kind === 'shape') {
    place.replaceChildren(part(title, quiet(t('noDelta', t(`kind_${row.kind}`)))));
    return;
  }
  const tensor = await get(`files/0/t/${row.n_a}`, signal);
  let stat = parameters.get('stat') ?? 'delta';
  const axes = new Axes(tensor.shape, parameters, (keep) => { show(keep).catch(report); });
  const base = `diff/t/${row.i}`;
  const heat = new Heatmap({ base, changed: (state) => context.remember(state), signed: (shown) => shown !== 'absmax', strips: false, numbers: true, signal });
  const show = async (keep) => {
    const { rows, cols, levels, fold = null } = await get(`${base}/plane${axes.where()}`, signal);
    heat.show({ ...axes.plane(), stat }, { rows, cols, levels: Math.max(1, levels), fold }, keep);
  };
  const status = h('div', { class: 'status' });
  const all = async () => {
    const { job } = await request('POST', `${base}/exact${query({ ...axes.plane(), stat })}`, {}, signal);
    await watch(job, status, t('comparing'), signal);
    offer();
    await show(true);
  };
  const offer = () => status.replaceChildren(button(t('readAll', bytes(2 * tensor.bytes)), () => { all().catch(report); }, { class: 'tool' }));
  if (tensor.bytes > 2 ** 23) offer();
  const frame = figure({ title, content: h('div', null, status, heat.element), canvas: heat.canvas, name: () => `${row.name}-delta`, data: () => heat.data(), cls: 'heat-figure wide',
    tools: [choice(t('stat'), STATS.map((key) => [key, t(`stat_${key}`)]), stat, (value) => { stat = value; show(true).catch(report); }),
      heat.tools()] });
  frame.element.insertBefore(axes.element, frame.element.children[1]);
  frame.summary.textContent = (row.sampled ? '≈ ' : '') + t('deltaSummary', number(row.rel_l2, 4), number(row.cosine, 6), number(row.max_abs, 4), percent(row.differing, row.elements));
  place.replaceChildren(frame.element);
  await show(false);
  if (parameters.has('level')) heat.place(Number(parameters.get('level')), Number(parameters.get('x')), Number(parameters.get('y')));
  say(frame.summary.textContent);
}
