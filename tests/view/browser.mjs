// SPDX-License-Identifier: Apache-2.0
// A running `ballast view` and a browser that looks at it. BALLAST is the command; BALLAST_PAGE, a folder whose files are shown instead of those built in.
import { spawn, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
export const root = path.resolve(here, '../..');
export const ballast = process.env.BALLAST || path.join(root, 'build/dev/bin/ballast');
export const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'ballast-view-'));
process.on('exit', () => fs.rmSync(scratch, { recursive: true, force: true }));

/** Ends as skipped where what the tests need is not installed. */
export function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(77);
}

const require = createRequire(path.join(process.env.BALLAST_VIEW_NODE || here, 'package.json'));
const load = (name) => {
  try {
    return require(name);
  } catch {
    return skip(`no ${name}; scripts/deps test installs it where npm can be reached`);
  }
};

export const axeSource = () => load('axe-core').source;

export async function launch() {
  const { chromium } = load('playwright-core');
  const executablePath = ['chromium-headless-shell', 'chromium'].map((name) => `/usr/bin/${name}`).find((each) => fs.existsSync(each));
  if (!executablePath) skip('no chromium-headless-shell; scripts/deps test installs it');
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}

/** JSON of a command that may find something, which is exit 1. */
export function json(...words) {
  try {
    return JSON.parse(execFileSync(ballast, [...words, '--json'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 2 ** 28 }));
  } catch (error) {
    if (error.status === 1) return JSON.parse(error.stdout);
    throw error;
  }
}

/** Starts the server. @returns {Promise<{url: string, pid: number, end: () => Promise<void>}>} */
export const serve = (...files) => serveWith({}, ...files);

export function serveWith({ open = false, env = process.env }, ...files) {
  const child = spawn(ballast, ['view', ...(open ? [] : ['--no-open']), '--json', ...files], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  return new Promise((resolve, reject) => {
    let [out, err] = ['', ''];
    child.stderr.on('data', (text) => { err += text; });
    child.stdout.on('data', (text) => {
      out += text;
      const url = /"url":"([^"]+)"/.exec(out)?.[1];
      if (url) resolve({ url, pid: child.pid, end: async () => { child.kill('SIGINT'); await ended; } });
    });
    ended.then((code) => reject(new Error(`ballast view ended with ${code}: ${err}`)));
  });
}

const TYPES = { html: 'text/html; charset=utf-8', js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' };

/** A page on the server, that keeps what was said and asked; `first` is run before anything of its own. */
export async function visit(browser, url, options = {}, then = '', first = null) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', locale: 'en-US', ...options });
  const page = await context.newPage();
  const seen = { said: [], requests: [], violations: 0 };
  page.on('console', (message) => seen.said.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => seen.said.push(`error: ${error.message}`));
  page.on('request', (request) => { seen.requests.push(request.url()); pending.set(page, (pending.get(page) ?? 0) + 1); });
  for (const end of ['requestfinished', 'requestfailed']) page.on(end, () => pending.set(page, (pending.get(page) ?? 0) - 1));
  await page.exposeFunction('countViolation', () => { ++seen.violations; });
  await page.addInitScript(() => document.addEventListener('securitypolicyviolation', () => window.countViolation()));
  if (first) await page.addInitScript(first);
  if (process.env.BALLAST_PAGE) {
    await page.route((each) => !each.pathname.startsWith('/api/'), async (route) => {
      const name = new URL(route.request().url()).pathname.slice(1) || 'index.html';
      const answer = await route.fetch({ url: url.split('#')[0] });
      await route.fulfill({ headers: { ...answer.headers(), 'content-type': TYPES[name.split('.').pop()], 'content-length': undefined }, body: fs.readFileSync(path.join(process.env.BALLAST_PAGE, name)) });
    });
  }
  await page.goto(url);
  if (then) await go(page, then);
  else await settled(page);
  return { page, seen, close: () => context.close() };
}

/** Requests that are under way, per page. */
const pending = new WeakMap();

/** Until the pane is filled and nothing more is asked for. */
export async function settled(page) {
  await page.waitForSelector('.pane[data-ready=true], .banner:not([hidden])', { state: 'attached' });
  for (let quiet = 0; quiet < 4;) {
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 15))));
    quiet = (pending.get(page) ?? 0) > 0 ? 0 : quiet + 1;
  }
}

export async function go(page, hash) {
  await page.waitForSelector('.pane[data-ready=true]', { state: 'attached' });
  await page.evaluate((to) => { location.hash = to; }, hash);
  await page.waitForFunction((to) => location.hash.startsWith(to.split('?')[0]), hash);
  await settled(page);
}

const SIZES = { F32: 4, BF16: 2, F16: 2, I64: 8, U8: 1 };

/** The bytes of a Safetensors file of [name, dtype, shape, data or nothing for zeros], in that order. */
export function safetensors(tensors, metadata) {
  let offset = 0;
  const parts = [];
  const entries = tensors.map(([name, dtype, shape, data]) => {
    const bytes = data ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.alloc(SIZES[dtype] * shape.reduce((a, b) => a * b, 1));
    parts.push(bytes);
    offset += bytes.length;
    return `${JSON.stringify(name)}:${JSON.stringify({ dtype, shape, data_offsets: [offset - bytes.length, offset] })}`;
  });
  if (metadata) entries.unshift(`"__metadata__":${JSON.stringify(metadata)}`);
  let text = `{${entries.join(',')}}`;
  text += ' '.repeat((8 - (Buffer.byteLength(text) % 8)) % 8);
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
  return Buffer.concat([head, Buffer.from(text), ...parts]);
}

/** Numbers that look like weights, the same ones every time. */
export function weights(count, seed, scale = 0.02) {
  const values = new Float32Array(count);
  let state = (seed * 2654435761) >>> 0 || 1;
  const next = () => {
    state ^= state << 13; state >>>= 0; state ^= state >>> 17; state ^= state << 5; state >>>= 0;
    return (state + 1) / 4294967297;
  };
  for (let i = 0; i < count; ++i) values[i] = scale * Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next());
  return values;
}

export function put(name, bytes) {
  const file = path.join(scratch, name);
  fs.writeFileSync(file, bytes);
  return file;
}

/** What the Summary table of a tensor's page shows. */
export const shownSummary = (page) => page.$$eval('.summary-part section:first-child tr', (rows) => Object.fromEntries(rows.slice(1).map((row) => [row.children[0].textContent, row.children[1].firstChild?.textContent ?? ''])));

export const asNumber = (text) => Number(text.replaceAll('−', '-').replaceAll(',', ''));
export const close = (shown, told) => (typeof told !== 'number' || !Number.isFinite(told) ? true : Math.abs(asNumber(shown) - told) <= 1e-5 * Math.abs(told) + 1e-12);
