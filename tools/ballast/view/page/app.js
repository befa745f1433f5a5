// The frame of the page, and the way from the address to what is shown.
import { ApiError, baseName, button, bytes, choice, count, get, grow, h, onError, openSession, penOf, percent, query, quiet, report, request, say, shapeText, short, tool } from './core.js';
import { isDark, redrawAll } from './charts.js';
import { changesPage } from './changes.js';
import { glance, overview } from './overview.js';
import { filePage, objectsPage, onnxPage, picklePage } from './panes.js';
import { tensorPage } from './tensor.js';
import { Grid, nameCell } from './tree.js';
import { lang, setLang, t } from './strings.js';

/** @type {FileFacts[]} */
let files = [];
let current = 0;      // the file shown
let tab = 'overview';
/** @type {Map<number, number>} the tensor last looked at, per file */
const lastTensor = new Map();
let stop = new AbortController();

/** @type {Context} */
const context = {
  files: () => files,
  file: () => files[current],
  base: () => `files/${current}`,
  signal: () => stop.signal,
  ask: (what, values = {}, signal = stop.signal) => get(`files/${current}/${what}${query(values)}`, signal),
  go: (hash) => { if (location.hash === hash) route(); else location.hash = hash; },
  tensorLink: (n) => `#/f${current}/t${n}`,
  remember: (state) => {
    const [path, old] = location.hash.split('?');
    const merged = new URLSearchParams(old);
    if (!('level' in state)) for (const key of ['level', 'x', 'y']) merged.delete(key);
    for (const [key, value] of Object.entries(state)) if (value === '') merged.delete(key); else merged.set(key, value);
    const text = merged.toString().replaceAll('%2C', ',');
    history.replaceState(null, '', path + (text ? `?${text}` : ''));
  },
  title: (text) => { document.title = `${text} · ballast view`; grid.choose(text); },
};

/** @param {string} key @param {string} [value] what is kept between visits; a browser may refuse to keep anything */
function kept(key, value) {
  try {
    if (value !== undefined) localStorage.setItem(key, value);
    return localStorage.getItem(key) ?? '';
  } catch {
    return '';
  }
}

const asked = { q: '', mode: 'text', dtype: '', sort: 'file', fold: 1 };

/** @param {any} row */
const itemOf = (row) => ({ path: row.path, parent: row.kind === 'group', data: row });

const makeGrid = () => new Grid({
  label: t('tensors'), name: (row) => row.label, sorted: () => asked.sort,
  sort: (key) => { asked.sort = asked.sort === key ? 'file' : key; refreshTree(); },
  columns: [
    { key: 'name', label: t('name'), sort: 'name', fill: (cell, row) => {
      const text = (searching() ? row.path : row.label) ?? row.path;
      nameCell(cell, row.kind === 'group', text, row.count > 1 ? ` ×${row.count}` : row.tied?.length ? ' ⧉' : '', row.kind === 'tensor');
      cell.title = row.path + (row.tied?.length ? `\n${t('tied')}: ${row.tied.join(', ')}` : '');
    } },
    { key: 'what', label: t('shape'), numeric: true, text: (row) => row.kind === 'tensor' ? `${row.dtype} ${shapeText(row.shape)}` : short(row.parameters) },
    { key: 'size', label: t('size'), numeric: true, sort: 'bytes', fill: (cell, row) => {
      cell.textContent = bytes(row.bytes);
      cell.style.setProperty('--share', String(row.bytes > 0.03 * files[current].bytes ? Math.min(1, row.bytes / files[current].bytes) : 0));
      cell.title = `${count(row.parameters)} · ${percent(row.bytes, files[current].bytes)}`;
    } },
  ],
  load: async (path, offset, limit, signal) => {
    const { q, mode, dtype, sort, fold } = asked;
    const answer = searching() ? await context.ask('find', { q, mode, dtype, sort, offset, limit }, signal)
      : await context.ask('tree', { path, offset, limit, sort, fold }, signal);
    if (path === '') {
      found.textContent = searching() ? t('found', count(answer.total)) : '';
      found.classList.remove('bad');
    }
    return { total: answer.total, rows: answer.rows.map(itemOf) };
  },
  failed: (error) => {
    if (!(error instanceof ApiError) || error.status !== 400) return report(error);
    found.textContent = error.message;
    found.classList.add('bad');
  },
  open: (item) => {
    if (item.data.kind === 'tensor') {
      shell.classList.remove('tree-open');
      context.go(context.tensorLink(item.data.n));
    }
  },
});

const searching = () => asked.q.trim() !== '' || asked.dtype !== '';
const found = h('span', { class: 'found', role: 'status' });
/** @type {Grid} */
let grid;

async function refreshTree() {
  await grid.reset();
  if (!searching()) await grid.unfold();
  if (searching()) say(found.textContent ?? '');
}

function treePanel() {
  grid = makeGrid();
  let timer = 0;
  const search = h('input', { type: 'search', id: 'search', value: asked.q, placeholder: t('searchHint'), 'aria-label': t('search'), spellcheck: false, autocomplete: 'off',
    input: () => { clearTimeout(timer); timer = setTimeout(() => { asked.q = search.value; refreshTree(); }, 120); },
    keydown: (event) => {
      if (event.key === 'ArrowDown' || event.key === 'Enter') { event.preventDefault(); grid.moveTo(0); }
      if (event.key === 'Escape' && search.value) { search.value = asked.q = ''; refreshTree(); }
    } });
  const dtypes = [['', t('anyDtype')], ...files[current].dtypes.map((row) => [row.dtype, row.dtype])];
  const fold = h('input', { type: 'checkbox', checked: asked.fold === 1, change: () => { asked.fold = fold.checked ? 1 : 0; refreshTree(); } });
  return h('aside', { class: 'tree', 'aria-label': t('tensors') },
    h('div', { class: 'search', role: 'search' }, search, h('div', { class: 'filters' },
      choice(t('mode'), [['text', t('mode_text')], ['regex', t('mode_regex')], ['fuzzy', t('mode_fuzzy')]], asked.mode, (value) => { asked.mode = value; refreshTree(); }),
      choice(t('dtype'), dtypes, asked.dtype, (value) => { asked.dtype = value; refreshTree(); }),
      h('label', { class: 'choice', title: t('foldTip') }, fold, h('span', null, t('fold')))), found),
    grid.element);
}

const shell = h('div', { class: 'shell' });
const banner = h('div', { class: 'banner', role: 'alert', hidden: true });
let pane = h('main', null);
let tabs = h('div', null);

onError((error) => {
  banner.replaceChildren(h('strong', null, error.status ? t('errorTitle') : t('goneTitle')), ' ', h('span', null, error.message),
    ...(error.where ? [' ', h('code', null, error.where)] : []), ...(error.code && error.status ? [' ', h('span', { class: 'quiet' }, error.code)] : []),
    grow(), tool(t('retry'), () => { banner.hidden = true; if (files.length) { refreshTree(); route(); } else start(); }),
    tool('×', () => { banner.hidden = true; }, t('close')));
  banner.hidden = false;
});

/** @returns {{key: string, hash: string}[]} the tabs this file has */
function tabList() {
  const file = files[current];
  const n = lastTensor.get(current);
  /** @type {[boolean, string, string][]} */
  const all = [[true, 'overview', ''], [true, 'tensor', n === undefined ? '' : `#/f${current}/t${n}`], [files.length > 1, 'changes', '#/changes'], [file.has_objects, 'objects', ''],
    [file.has_pickle, 'pickle', ''], [true, 'file', ''], [file.has_onnx, 'onnx', '']];
  return all.filter(([there]) => there).map(([, key, hash]) => ({ key, hash: hash || `#/f${current}/${key}` }));
}

function drawTabs() {
  const made = tabList().map(({ key, hash }, i) => h('button', { type: 'button', role: 'tab', id: `tab-${key}`, 'aria-selected': String(key === tab), 'aria-controls': 'pane', tabIndex: key === tab ? 0 : -1,
    title: `${t('key')} ${i + 1}`, click: () => context.go(hash) }, t(`tab_${key}`)));
  tabs.replaceChildren(...made);
  pane.setAttribute('aria-labelledby', `tab-${tab}`);
}

function tabKey(event) {
  const all = tabList();
  const at = all.findIndex(({ key }) => key === tab);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  context.go(all[(to + all.length) % all.length].hash);
  requestAnimationFrame(() => /** @type {HTMLElement | null} */ (tabs.querySelector('[aria-selected=true]'))?.focus());
}

function header() {
  const file = files[current];
  const pick = files.length > 1 ? h('select', { 'aria-label': t('file'), class: 'files', change: () => context.go(`#/f${pick?.value}/overview`) }, files.map((each, i) => h('option', { value: String(i), title: each.name }, baseName(each.name)))) : null;
  if (pick) pick.value = String(current);
  const verdict = file.verdict && file.verdict !== 'none' ? h('a', { class: `badge ${file.verdict}`, href: file.has_pickle ? `#/f${current}/pickle` : `#/f${current}/file` }, h('span', { class: 'prefix' }, `${t('scan')}: `), t(`verdict_${file.verdict}`)) : null;
  return h('header', { class: 'top' },
    button('☰', () => shell.classList.toggle('tree-open'), { class: 'tool menu', 'aria-label': t('tensors') }),
    h('h1', null, 'ballast view'), pick ?? h('span', { class: 'files', title: file.name }, baseName(file.name)), h('span', { class: 'glance-line' }, glance(file)), verdict, grow(),
    button(lang() === 'zh' ? 'EN' : '中文', () => { kept('lang', setLang(lang() === 'zh' ? 'en' : 'zh')); frame(); route(); }, { class: 'tool', 'aria-label': lang() === 'zh' ? 'English' : '中文', lang: lang() === 'zh' ? 'en' : 'zh-CN' }),
    tool('◐', nextTheme, t('theme')),
    tool('?', showKeys, t('keys')),
    tool(t('quit'), () => request('POST', 'quit', {}).then(() => report(new ApiError(0, 'gone', '', t('ended'))), report)));
}

const system = matchMedia('(prefers-color-scheme: dark)');

function setTheme(theme = kept('theme')) {
  document.documentElement.dataset.theme = theme || (system.matches ? 'dark' : 'light');
  requestAnimationFrame(redrawAll);
}

function nextTheme() {
  const next = isDark() ? 'light' : 'dark';
  kept('theme', next);
  setTheme(next);
}

function splitter() {
  let width = Number(kept('side')) || 420;
  const set = (wanted) => {
    width = Math.round(Math.max(220, Math.min(wanted, innerWidth * 0.6)));
    shell.style.setProperty('--side', `${width}px`);
    bar.setAttribute('aria-valuenow', String(width));
    kept('side', String(width));
  };
  const bar = h('div', { class: 'splitter', role: 'separator', tabIndex: 0, 'aria-orientation': 'vertical', 'aria-label': t('resize'), 'aria-valuemin': 220, 'aria-valuemax': 1200,
    keydown: (event) => { if (event.key === 'ArrowLeft') set(width - 16); if (event.key === 'ArrowRight') set(width + 16); },
    pointerdown: (event) => bar.setPointerCapture(event.pointerId),
    pointermove: (event) => { if (bar.hasPointerCapture(event.pointerId)) set(event.clientX); } });
  set(width);
  return bar;
}

function frame() {
  document.documentElement.lang = lang() === 'zh' ? 'zh-CN' : 'en';
  tabs = h('div', { class: 'tabs', role: 'tablist', 'aria-label': t('views'), keydown: tabKey });
  pane = h('main', { id: 'pane', role: 'tabpanel', tabIndex: -1 });
  shell.replaceChildren(header(), treePanel(), splitter(), h('div', { class: 'content' }, tabs, pane));
  refreshTree();
}

const KEYS = [['/', 'key_search'], ['↑ ↓ ← →', 'key_tree'], ['Enter', 'key_open'], ['1 … 7', 'key_tabs'], ['t', 'key_focusTree'], ['+ − 0', 'key_zoom'], ['↑ ↓ ← →', 'key_pan'], ['Shift + ↑ ↓ ← →', 'key_cell'], ['Backspace', 'key_up'], ['?', 'keys']];

function showKeys() {
  /** @type {HTMLDialogElement} */
  const dialog = h('dialog', { 'aria-label': t('keys'), close: () => dialog.remove() }, h('h2', null, t('keys')),
    h('dl', { class: 'keys' }, KEYS.flatMap(([key, text]) => [h('dt', null, h('kbd', null, key)), h('dd', null, t(text))])), quiet(t('filterHelp')), button(t('close'), () => dialog.close(), { class: 'primary' }));
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener('keydown', (event) => {
  const typing = event.target instanceof Element && event.target.matches('input, select');
  if (typing || event.ctrlKey || event.altKey || event.metaKey || document.querySelector('dialog[open]') || !files.length) return;
  if (event.key === '/') {
    shell.classList.add('tree-open');
    document.getElementById('search')?.focus();
  } else if (event.key === '?') showKeys();
  else if (event.key === 't') grid.moveTo(grid.active);
  else if (/^[1-9]$/.test(event.key) && tabList()[Number(event.key) - 1]) context.go(tabList()[Number(event.key) - 1].hash);
  else return;
  event.preventDefault();
});

/** @type {Show} */
const noTensor = (_, body) => body.append(quiet(t('chooseTensor')));

async function route() {
  const [path, search] = location.hash.slice(1).split('?');
  const parameters = new URLSearchParams(search);
  const parts = path.split('/').filter(Boolean);
  const inFile = /^f(\d+)$/.exec(parts[0] ?? '');
  if (inFile && Number(inFile[1]) < files.length && Number(inFile[1]) !== current) {
    current = Number(inFile[1]);
    asked.dtype = '';
    frame();
  }
  const what = parts[0] === 'changes' ? 'changes' : parts[1] ?? 'overview';
  const tensor = /^t(\d+)$/.exec(what);
  tab = tensor ? 'tensor' : tabList().some(({ key }) => key === what) ? what : 'overview';
  if (tensor) lastTensor.set(current, Number(tensor[1]));
  stop.abort();
  stop = new AbortController();
  document.title = `${baseName(files[current].name)} · ballast view`;
  drawTabs();
  const body = h('div', { class: `pane pane-${tab}` });
  pane.replaceChildren(body);
  pane.scrollTop = 0;
  try {
    /** @type {Record<string, Show>} */
    const shows = { overview, tensor: noTensor, changes: changesPage, objects: objectsPage, pickle: picklePage, file: filePage, onnx: onnxPage };
    const n = /^t(\d+)$/.exec(tensor?.[0] ?? parts[1] ?? '')?.[1];
    await (tensor ? tensorPage : shows[tab])(context, body, parameters, n === undefined ? undefined : Number(n));
  } catch (error) {
    report(error);
  }
  body.dataset.ready = 'true';
}

/** Drawn, since the page may load nothing but its own files. */
function icon() {
  const canvas = h('canvas', { width: 32, height: 32 });
  const pen = penOf(canvas);
  ['#1f3a6e', '#3b7fc4', '#7fb8e0', '#e0a04a'].forEach((colour, i) => { pen.fillStyle = colour; pen.fillRect(2 + (i % 2) * 15, 2 + (i >> 1) * 15, 13, 13); });
  canvas.toBlob((blob) => { if (blob) document.head.append(h('link', { rel: 'icon', href: URL.createObjectURL(blob) })); });
}

async function start() {
  try {
    await openSession();
    const answer = await get('files');
    files = answer.files;
    banner.hidden = true;
    const inFile = /^#\/f(\d+)/.exec(location.hash);
    if (inFile && Number(inFile[1]) < files.length) current = Number(inFile[1]);
    frame();
    if (!location.hash.startsWith('#/')) history.replaceState(null, '', `${location.pathname}#/f0/overview`);
    route();
    const beat = () => request('POST', 'alive', {}).catch(report);
    setInterval(beat, Math.max(5, answer.heartbeat_s ?? 30) * 1000);
    beat();
  } catch (error) {
    report(error);
  }
}

setTheme();
setLang(kept('lang') || navigator.language);
document.body.replaceChildren(banner, shell);
system.addEventListener('change', () => setTheme());
addEventListener('hashchange', () => {
  if (/^#(token|code)=/.test(location.hash)) location.reload();
  else if (files.length && location.hash.startsWith('#/')) route();
});
icon();
start();
