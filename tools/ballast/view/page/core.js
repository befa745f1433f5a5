// Requests to the server, elements, numbers as text, downloads.
import { lang, t } from './strings.js';

export class ApiError extends Error {
  constructor(status, code, where, message) {
    super(message);
    this.status = status;
    this.code = code;
    this.where = where;
  }
}

let token = '';

/** Takes the token out of the address, where it must not stay, or exchanges the one-time code for it. */
export async function openSession() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const code = fragment.get('code');
  const given = fragment.get('token');
  if (code || given) history.replaceState(null, '', location.pathname);
  if (given) token = given;
  else if (code) token = (await request('POST', 'session', { code })).token;
  else token = sessionStorage.getItem('token') ?? '';
  sessionStorage.setItem('token', token);
}

/** @param {string} method @param {string} path @param {unknown} [body] @param {AbortSignal} [signal] @returns {Promise<Response>} */
async function send(method, path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(`/api/1/${path}`, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'gone', '', t('gone'));
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  const { code = String(response.status), where = '', message = response.statusText } = told.error ?? {};
  throw new ApiError(response.status, code, where, response.status === 401 || (response.status === 403 && !sessionStorage.getItem('token')) ? t('noToken') : message);
}

/** @param {string} method @param {string} path @param {unknown} [body] @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function request(method, path, body, signal) {
  const response = await send(method, path, body, signal);
  const answer = await response.json();
  return response.status === 202 ? { ...answer, waiting: true } : answer;
}

export const get = (path, signal) => request('GET', path, undefined, signal);

export const getBytes = async (path, signal) => (await send('GET', path, undefined, signal)).arrayBuffer();

/** @param {Record<string, string | number | undefined>} values @returns {string} */
export function query(values) {
  const kept = Object.entries(values).filter(([, value]) => value !== undefined && value !== '');
  return (kept.length ? '?' : '') + kept.map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`).join('&').replaceAll('%2C', ',');
}

/** A bar in `place` until a job ends, with a button that ends it. @returns {Promise<string>} how it ended
 * @param {number} job @param {HTMLElement} place @param {string} label @param {AbortSignal} signal */
export async function watch(job, place, label, signal) {
  const bar = h('progress', { max: 1, value: 0, 'aria-label': label });
  const told = h('span', { class: 'n' });
  place.replaceChildren(label, ' ', bar, ' ', told, ' ', tool(t('cancel'), () => { request('DELETE', `jobs/${job}`).catch(report); }));
  for (let pause = 60; ; pause = Math.min(500, pause * 1.5)) {
    const { state, done, total, error = {} } = await get(`jobs/${job}`, signal);
    bar.value = total ? done / total : 0;
    told.textContent = `${bytes(done)} / ${bytes(total)}`;
    if (state === 'failed') throw new ApiError(500, error.code ?? 'failed', error.where ?? '', error.message ?? t('failed'));
    if (state !== 'running') return state;
    await new Promise((resolve) => setTimeout(resolve, pause));
    signal.throwIfAborted();
  }
}

/** The answer to a question that may take a job first; null where that was cancelled. */
export async function patient(path, place, label, signal) {
  for (;;) {
    const answer = await get(path, signal);
    if (!answer.waiting) return answer;
    if ((await watch(answer.job, place, label, signal)) === 'cancelled') return null;
  }
}

export const aborted = (error) => error instanceof DOMException && error.name === 'AbortError';

/** An element. Names with a dash, `role` and `for` are attributes, functions are listeners, the rest properties; text is never markup.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Record<string, any> | null} [properties] @param {...(Child | Child[])} children @returns {HTMLElementTagNameMap[K]} */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (name === 'class') element.className = value;
    else if (name.includes('-') || name === 'role' || name === 'for' || name === 'scope' || name === 'lang') element.setAttribute(name, String(value));
    else /** @type {any} */ (element)[name] = value;
  }
  for (const child of children.flat()) if (child != null && child !== false) element.append(child instanceof Node ? child : String(child));
  return element;
}

let serial = 0;
export const newId = () => `id${++serial}`;

/** A labelled choice.
 * @param {string[][]} options @param {(value: string) => void} change */
export function choice(label, options, value, change) {
  const select = h('select', { change: () => change(select.value) }, options.map(([key, text]) => h('option', { value: key }, text)));
  select.value = value;
  return h('label', { class: 'choice' }, h('span', null, label), select);
}

/** @param {string} text @param {() => void} click @param {Record<string, any>} [more] */
export const button = (text, click, more = {}) => h('button', { type: 'button', click, ...more }, text);

export const tool = (text, click, label) => button(text, click, { class: 'tool', 'aria-label': label, title: label });

/** @param {HTMLCanvasElement} canvas */
export const penOf = (canvas) => /** @type {Pen} */ (canvas.getContext('2d'));

export const quiet = (text) => h('p', { class: 'quiet' }, text);
/** @param {Child} title @param {...(Child | Child[])} rest */
export const part = (title, ...rest) => h('section', null, h('h3', null, title), ...rest);
export const grow = () => h('span', { class: 'grow' });

export const dotted = (name) => name.split(/(?<=[._/])/).flatMap((part) => [part, h('wbr')]);

/** A table of text; columns that begin with '#' are numbers.
 * @param {string} caption @param {string[]} columns @param {(Child | Child[])[][]} rows */
export function table(caption, columns, rows) {
  const numeric = columns.map((column) => column.startsWith('#'));
  const cell = (content, i) => h('td', numeric[i] ? { class: 'n' } : null, content);
  return h('div', { class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': caption },
    h('table', null, h('caption', { class: 'sr' }, caption),
      h('thead', null, h('tr', null, columns.map((column, i) => h('th', { scope: 'col', class: numeric[i] ? 'n' : '' }, column.replace(/^#/, ''))))),
      h('tbody', null, rows.map((row) => h('tr', null, row.map(cell))))));
}

/** Name and value pairs, aligned.
 * @param {[string, Child][]} pairs */
export const facts = (pairs) => h('dl', { class: 'facts' }, pairs.flatMap(([name, value]) => [h('dt', null, name), h('dd', null, value)]));

export const count = (value) => value.toLocaleString(lang() === 'zh' ? 'zh-CN' : 'en');

export function bytes(value) {
  if (value < 1024) return `${value} B`;
  const power = Math.min(5, Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** power;
  return `${scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0)} ${'KMGTP'[power - 1]}iB`;
}

/** 8.03 B, 25.6 M; Chinese counts in 万 and 亿.
 * @param {number} value */
export function short(value) {
  /** @type {[number, string][]} */
  const steps = lang() === 'zh' ? [[1e8, '亿'], [1e4, '万']] : [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k']];
  const step = steps.find(([size]) => value >= size);
  if (!step) return String(value);
  const scaled = value / step[0];
  return `${scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0)} ${step[1]}`;
}

/** A value of a tensor: a number, or what JSON has no number for.
 * @param {number | string | null | undefined} value @param {number} [digits] */
export function number(value, digits = 6) {
  if (value == null) return '–';
  const parsed = typeof value === 'number' ? value : Number(value);
  if (typeof value === 'string' && !Number.isFinite(parsed)) return value.replace('-', '−');
  if (Number.isInteger(parsed) && Math.abs(parsed) < 1e15) return count(parsed).replace('-', '−');
  const size = Math.abs(parsed);
  const text = size !== 0 && (size < 1e-3 || size >= 1e7) ? parsed.toExponential(digits - 1).replace(/\.?0+e/, 'e') : String(Number(parsed.toPrecision(digits)));
  return text.replaceAll('-', '−').replace('e+', 'e');
}

/** @param {unknown} value "NaN", "Inf" and "-Inf" are strings in JSON. */
export function parse(value) {
  return value === 'Inf' ? Infinity : value === '-Inf' ? -Infinity : Number(value);
}

export const baseName = (path) => /[^/]*\/?$/.exec(path)?.[0] || path;

export const shapeText = (shape) => (shape.length ? shape.join('×') : t('scalar'));

export function percent(part, whole) {
  if (!whole || !part) return '0 %';
  const share = (100 * part) / whole;
  return share < 0.01 ? '< 0.01 %' : share > 99.99 && part < whole ? '> 99.99 %' : `${Number(share.toPrecision(share > 99 ? 4 : 3))} %`;
}

export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = h('a', { href: url, download: name.replace(/[^\w.\-]+/g, '_').slice(-120) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** What a spreadsheet would run as a formula is kept text.
 * @param {unknown[][]} rows @param {string} name */
export function saveCsv(rows, name) {
  const cell = (value) => {
    const text = String(value ?? '');
    const safe = typeof value === 'string' && /^[=+@\t\r]|^-\D/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  save(new Blob([rows.map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n'], { type: 'text/csv' }), name);
}

export async function saveFrom(path, name, size) {
  const picker = /** @type {any} */ (window).showSaveFilePicker;
  if (size > 2 ** 28 && picker) {
    const target = await picker({ suggestedName: name }).catch(() => null);
    if (!target) return;
    const response = await send('GET', path);
    await response.body?.pipeTo(await target.createWritable());
  } else {
    save(await (await send('GET', path)).blob(), name);
  }
}

/** @type {(error: ApiError) => void} */
let showError = () => {};
/** @param {(error: ApiError) => void} show */
export const onError = (show) => { showError = show; };

export function report(error) {
  if (aborted(error)) return;
  showError(error instanceof ApiError ? error : new ApiError(500, 'page', '', error instanceof Error ? error.message : String(error)));
}

const live = h('div', { class: 'sr', role: 'status', 'aria-live': 'polite' });
export function say(text) {
  if (!live.isConnected) document.body.append(live);
  live.textContent = text;
}

/** @type {Record<string, [number, number]>} */
export const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function onFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; work(); });
  };
}
