// Objects, opcodes, the layout of the bytes, the nodes of a graph.
import { baseName, bytes, count, facts, grow, h, part, percent, quiet, report, table, tool } from './core.js';
import { Drawing, figure, ink, legend } from './charts.js';
import { Grid, nameCell } from './tree.js';
import { t } from './strings.js';

/** @type {Show} */
export function objectsPage(context, pane, parameters) {
  const grid = new Grid({
    label: t('objects'), name: (row) => row.key,
    columns: [
      { key: 'name', label: t('key'), fill: (cell, row) => nameCell(cell, row.children > 0, row.key, row.children ? ` ${count(row.children)}` : '') },
      { key: 'kind', label: t('type'), text: (row) => row.type || row.kind },
      { key: 'text', label: t('value'), fill: (cell, row) => { cell.textContent = row.text ?? ''; cell.title = row.text ?? ''; cell.classList.toggle('link', row.n != null); } },
    ],
    load: async (path, offset, limit, signal) => {
      const answer = await context.ask('objects', { path, offset, limit }, signal);
      return { total: answer.total, rows: answer.rows.map((row) => ({ path: row.path, parent: row.children > 0, data: row })) };
    },
    open: ({ data }) => { if (data.n != null) context.go(context.tensorLink(data.n)); else context.remember({ path: data.path }); },
  });
  pane.append(quiet(t('objectsSummary')), h('div', { class: 'fill' }, grid.element));
  const steps = JSON.parse(parameters.get('path') || '[]');
  grid.reset().then(() => (steps.length ? grid.reveal(steps.map((_, i) => JSON.stringify(steps.slice(0, i + 1)))) : grid.unfold()));
}

/** @type {Show} */
export async function picklePage(context, pane, parameters) {
  const scan = await context.ask('scan');
  const entries = scan.entries ?? [];
  let entry = Number(parameters.get('entry') ?? 0);
  const offset = Number(parameters.get('offset') ?? 0);
  const list = h('div', null);
  const jump = (finding) => {
    entry = finding.entry ?? 0;
    context.remember({ entry: String(entry), offset: String(finding.offset ?? 0) });
    opcodes(context, list, entry, finding.offset ?? 0, entries, scan.findings).catch(report);
    list.scrollIntoView({ block: 'nearest' });
  };
  const findings = scan.findings ?? [];
  pane.append(
    h('section', null, h('div', { class: 'verdict' }, h('span', { class: `badge ${scan.verdict}` }, t(`verdict_${scan.verdict}`)), ' ', t(`verdictTold_${scan.verdict}`)),
      findings.length ? table(t('findings'), [t('level'), t('what'), t('where'), `#${t('offset')}`], findings.map((each) => [
        h('span', { class: `badge ${each.level}` }, t(`level_${each.level}`)), h('span', { class: 'wrap' }, each.what), h('span', { class: 'wrap' }, each.where ?? ''),
        each.offset == null ? '' : tool(count(each.offset), () => jump(each), t('jumpTo', count(each.offset)))]))
        : quiet(t('noFindings'))),
    list);
  if (entries.length) await opcodes(context, list, Math.min(entry, entries.length - 1), offset, entries, findings);
}

/** @param {Context} context @param {HTMLElement} place */
async function opcodes(context, place, entry, from, entries, findings) {
  const body = h('tbody', null);
  const more = tool(t('showMore'), () => load().catch(report));
  const where = h('span', { class: 'quiet' });
  /** @type {number | null} */
  let next = Math.max(0, from);
  const load = async () => {
    const answer = await context.ask('pickle', { entry, offset: next ?? 0, limit: 200 });
    for (const row of answer.rows) {
      const finding = row.finding == null ? null : findings[row.finding];
      const line = h('tr', finding ? { class: `marked ${finding.level}` } : null, h('td', { class: 'n' }, count(row.offset)), h('td', null, h('code', null, row.opcode)),
        h('td', null, h('span', { class: 'wrap' }, row.argument ?? '')), h('td', null, finding ? [h('span', { class: `badge ${finding.level}` }, t(`level_${finding.level}`)), ' ', finding.what] : ''));
      body.append(line);
    }
    next = answer.next;
    more.hidden = next == null;
    where.textContent = t('bytesOf', count(next ?? answer.total_bytes), count(answer.total_bytes));
  };
  const choose = h('select', { 'aria-label': t('entry'), change: () => opcodes(context, place, Number(choose.value), 0, entries, findings).catch(report) },
    entries.map((each, i) => h('option', { value: String(i) }, `${each.name || baseName(context.file().name)} (${bytes(each.bytes)})`)));
  choose.value = String(entry);
  const start = from > 0 ? tool(t('fromStart'), () => opcodes(context, place, entry, 0, entries, findings).catch(report)) : null;
  place.replaceChildren(h('section', null, h('div', { class: 'bar' }, h('h3', null, t('opcodes')), choose, start, grow(), where),
    h('div', { class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': t('opcodes') }, h('table', { class: 'code' },
      h('thead', null, h('tr', null, h('th', { scope: 'col', class: 'n' }, t('offset')), h('th', { scope: 'col' }, t('opcode')), h('th', { scope: 'col' }, t('argument')), h('th', { scope: 'col' }, t('finding')))), body)), more));
  await load();
}

const PARTS = ['tensor', 'header', 'padding', 'hole', 'other'];

/** @type {Show} */
export async function filePage(context, pane) {
  const layout = await context.ask('layout');
  const parts = /** @type {any[]} */ (layout.parts);
  const names = /** @type {string[]} */ (layout.files?.length ? layout.files : [context.file().name]);
  const kindOf = (part) => Math.max(0, PARTS.indexOf(part.kind === 'tensors' ? 'tensor' : part.kind));
  const lanes = names.map((_, file) => parts.filter((part) => (part.file ?? 0) === file));
  const ends = lanes.map((lane) => lane.reduce((end, part) => Math.max(end, part.offset + part.bytes), 1));
  const LANE = 46;
  /** @type {any} */
  let chosen = null;
  const drawing = new Drawing(t('layoutStrip'), (pen, width) => {
    lanes.forEach((lane, i) => {
      pen.fillStyle = ink('quiet');
      pen.textAlign = 'left';
      pen.fillText(`${names[i]} (${bytes(ends[i])})`, 0, i * LANE + 8);
      const w = width * (ends[i] / Math.max(...ends));
      let shade = 0;
      for (const part of lane) {
        const x = (part.offset / ends[i]) * w;
        const wide = Math.max(part.kind === 'tensor' ? 0.5 : 1, (part.bytes / ends[i]) * w);
        pen.fillStyle = ink(`kind${kindOf(part)}`);
        pen.globalAlpha = part === chosen ? 1 : part.kind === 'tensor' ? (shade++ % 2 ? 0.6 : 0.85) : 0.95;
        pen.fillRect(x, i * LANE + 17, wide, 22);
        pen.globalAlpha = 1;
        if (part === chosen) {
          pen.strokeStyle = ink('ink');
          pen.lineWidth = 2;
          pen.strokeRect(x, i * LANE + 16, Math.max(2, wide), 24);
        }
      }
    });
  });
  const { canvas } = drawing;
  canvas.className = 'layout';
  canvas.style.height = `${lanes.length * LANE}px`;
  const told = h('output', { class: 'readout' });
  const hit = (event) => {
    const lane = Math.floor(event.offsetY / LANE);
    if (!lanes[lane]) return null;
    const at = (event.offsetX / (canvas.clientWidth * (ends[lane] / Math.max(...ends)))) * ends[lane];
    return lanes[lane].find((part) => at >= part.offset && at < part.offset + part.bytes) ?? null;
  };
  canvas.addEventListener('pointermove', (event) => {
    chosen = hit(event);
    told.textContent = chosen ? `${chosen.name || t(`part_${chosen.kind}`)}  ${count(chosen.offset)} + ${count(chosen.bytes)}` : '';
    drawing.draw();
  });
  canvas.addEventListener('click', (event) => {
    const part = hit(event);
    if (part && part.n != null) context.go(context.tensorLink(part.n));
  });
  const frame = figure({ title: t('layoutStrip'), content: h('div', null, canvas, h('div', { class: 'under' }, told), legend(PARTS.map((kind) => t(`part_${kind}`)))), canvas, cls: 'wide', name: () => 'layout',
    data: () => ({ columns: [t('part'), t('name'), t('file'), `#${t('offset')}`, `#${t('size')}`], rows: parts.map((part) => [t(`part_${part.kind}`), part.name ?? '', names[part.file ?? 0], part.offset, part.bytes]) }) });
  const sum = (kinds) => parts.filter((part) => kinds.includes(part.kind)).reduce((total, part) => total + part.bytes, 0);
  const all = layout.bytes || 1;
  frame.summary.textContent = t('layoutSummary', count(names.length), percent(sum(['tensor', 'tensors']), all), bytes(sum(['header'])), bytes(sum(['padding', 'hole']))) + (layout.folded ? ' ' + t('layoutFolded', count(layout.folded)) : '') + (layout.elsewhere ? ' ' + t('layoutElsewhere', count(layout.elsewhere)) : '');
  canvas.setAttribute('aria-label', `${t('layoutStrip')}. ${frame.summary.textContent}`);
  pane.append(frame.element, part(t('byKind'), table(t('byKind'), [t('part'), `#${t('parts')}`, `#${t('size')}`, '#%'],
    PARTS.map((kind) => [kind, parts.filter((part) => PARTS[kindOf(part)] === kind)]).filter(([, own]) => own.length).map(([kind, own]) => {
      const size = /** @type {any[]} */ (own).reduce((total, part) => total + part.bytes, 0);
      return [t(`part_${kind}`), count(own.length), bytes(size), percent(size, all)];
    }))));
}

/** @type {Show} */
export async function onnxPage(context, pane) {
  const first = await context.ask('onnx', { offset: 0, limit: 1 });
  const values = (list) => h('ul', { class: 'plain' }, list.map((each) => h('li', null, h('code', null, [each.name, each.type, each.shape && `[${each.shape.map((size) => size ?? '?').join(', ')}]`].filter(Boolean).join(' ')))));
  const grid = new Grid({
    label: t('nodes'), tree: false, name: (row) => row.op,
    columns: [
      { key: 'kind', label: t('operator'), text: (row) => row.op },
      { key: 'name', label: t('name'), fill: (cell, row) => { cell.textContent = row.name; cell.title = row.name; } },
      { key: 'text', label: t('inputs'), fill: (cell, row) => { cell.textContent = cell.title = row.inputs.join(', '); } },
      { key: 'text', label: t('outputs'), fill: (cell, row) => { cell.textContent = cell.title = row.outputs.join(', '); } },
    ],
    load: async (_path, offset, limit, signal) => {
      const answer = await context.ask('onnx', { offset, limit }, signal);
      return { total: answer.total, rows: answer.nodes.map((row, i) => ({ path: String(offset + i), parent: false, data: row })) };
    },
    open: async ({ data }) => {  // to the first input that is a tensor of the file
      for (const q of data.inputs) {
        const found = (await context.ask('find', { q, limit: 500 }).catch(report))?.rows.find((row) => row.path === q);
        if (found) return context.go(context.tensorLink(found.n));
      }
    },
  });
  pane.append(
    facts([['opset', Object.entries(first.opset).map((pair) => pair.join(' ')).join(', ')], [t('producer'), first.producer || '–'], [t('nodes'), count(first.total)]]),
    h('div', { class: 'columns' },
      part(t('inputs'), values(first.inputs)),
      part(t('outputs'), values(first.outputs)),
      part(t('operators'), table(t('operators'), [t('operator'), `#${t('nodes')}`], first.operators.map((each) => [each.op, count(each.count)])))),
    part(t('nodes'), h('div', { class: 'fill' }, grid.element)));
  grid.reset();
}
