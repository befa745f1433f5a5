// SPDX-License-Identifier: Apache-2.0
// What `ballast view` costs, beside what it may cost: `node tests/view/budgets.mjs [--gigabytes 10] [--clicks 10000]`, after `cmake --preset release` was built.
// Times are printed in milliseconds and in loops of this machine, here and now; a loop takes 390 ms on the machine whose milliseconds the limits are. Nothing is asserted.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { ballast, go, launch, put, root, safetensors, scratch, serve, settled, visit, weights } from './browser.mjs';
import { calibration, drawn, median, noteTree, scrolled } from './large.mjs';

const wanted = (name, otherwise) => Number(process.argv[process.argv.indexOf(`--${name}`) + 1]) || otherwise;
const [gigabytes, clicks] = [wanted('gigabytes', 10), wanted('clicks', 10_000)];
const LOOP = 390;
const browser = await launch();
const ordered = (times, share) => times.slice().sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))];

const tell = (what, limit, found) => console.log(`| ${what} | ${limit} | ${found} |`);
/** A time, in loops too; `loop` is the machine's speed around it. */
const inLoops = (milliseconds, loop) => `${milliseconds.toFixed(milliseconds < 20 ? 1 : 0)} ms, ${(milliseconds / loop).toFixed(2)} loops`;
const told = (what, limit, times, share = 0.5) => tell(what, `${limit} ms, ${(limit / LOOP).toFixed(2)} loops`, inLoops(ordered(times.map(([time]) => time), share), median(times.map(([, loop]) => loop))));

/** @returns {Promise<[number, number]>} of the work, and of a loop beside it */
async function timed(work) {
  const start = performance.now();
  const own = await work();
  return [typeof own === 'number' ? own : performance.now() - start, calibration()];
}

async function repeated(times, work) {
  const all = [];
  for (let i = 0; i < times; ++i) all.push(await timed(() => work(i)));
  return all;
}

/** Out of this machine's page cache. */
const evict = (file) => execFileSync('python3', ['-c', 'import os, sys; f = os.open(sys.argv[1], 0); os.fsync(f); os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)', file]);

/** A file of `count` tensors of values that look like weights, all of it on the disk. */
function realFile(count, rows = 4096, cols = 8192) {
  const bytes = 4 * rows * cols;
  const header = JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`layers.${i}.weight`, { dtype: 'F32', shape: [rows, cols], data_offsets: [i * bytes, (i + 1) * bytes] }])));
  const text = header.padEnd(Math.ceil(header.length / 8) * 8);
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(BigInt(text.length));
  const file = put('real.safetensors', Buffer.concat([head, Buffer.from(text)]));
  const block = Buffer.from(weights((rows * cols) / 8, 7).buffer);
  const handle = fs.openSync(file, 'a');
  for (let i = 0; i < 8 * count; ++i) fs.writeSync(handle, block);
  fs.fsyncSync(handle);
  fs.closeSync(handle);
  return file;
}

const memoryOf = (pid) => Number(/RssAnon:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

async function sizes() {
  const folder = path.join(root, 'tools/ballast/view/page');
  const files = fs.readdirSync(folder);
  tell('assets', '150,000 bytes, 12 requests', `${files.reduce((sum, name) => sum + fs.statSync(path.join(folder, name)).size, 0)} bytes, ${files.length} requests`);
}

async function manyTensors() {
  const file = put('many.safetensors', safetensors(Array.from({ length: 100_000 }, (_, i) => [`model.layers.${Math.floor(i / 20)}.block.part${i % 20}.weight`, 'U8', [1 + (i % 5)]])));
  const [paints, trees] = [[], []];
  for (let i = 0; i < 7; ++i) {
    evict(file);  // opened cold, each time by a new server
    const server = await serve(file);
    const { page, close } = await visit(browser, server.url, {}, '', noteTree);
    paints.push([await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime), calibration()]);
    trees.push([await page.evaluate(() => window.treeAt), calibration()]);
    await close();
    await server.end();
  }
  told('100,000 tensors, opened cold: first paint', 200, paints);
  told('100,000 tensors, opened cold: tree', 400, trees);
  const server = await serve(file);
  const { page, close } = await visit(browser, server.url);
  await page.uncheck('.filters input[type=checkbox]');
  await page.fill('#search', 'weight');
  await page.waitForFunction(() => document.querySelector('.found')?.textContent?.includes('100,000'));
  await scrolled(page);  // warm
  const loop = calibration();
  const frames = (await scrolled(page)).map((time) => [time, loop]);
  told('scrolling 100,000 rows: median frame', 8, frames);
  told('scrolling 100,000 rows: worst frame', 33, frames, 1);
  tell('heap of the page', '60 MiB', `${(await page.evaluate(() => performance.memory.usedJSHeapSize / 2 ** 20)).toFixed(0)} MiB`);
  const random = (n) => Math.floor(Math.random() * n);
  const [token] = /[0-9a-f]{32}/.exec(server.url);
  const ask = (what) => fetch(`${new URL(server.url).origin}/api/1/files/0/${what}`, { headers: { Authorization: `Bearer ${token}` } }).then((answer) => answer.arrayBuffer());
  for (let i = 0; i < clicks; i += 5) {
    const n = random(100_000);
    for (const what of [`t/${n}`, `t/${n}/summary`, `t/${n}/tile?stat=mean`, `tree?path=model.layers.${random(5000)}&fold=0`, `find?q=part${random(20)}&offset=${random(4000)}&limit=50`]) await ask(what);
  }
  tell(`memory with 100,000 tensors after ${clicks} requests`, '200 MB', `${memoryOf(server.pid).toFixed(0)} MB`);
  await close();
  await server.end();
}

async function manyBytes() {
  const count = Math.max(3, Math.round((gigabytes * 1e9) / 2 ** 27));
  const file = realFile(count);
  const starts = await repeated(9, async () => {
    const start = performance.now();
    const server = await serve(file);
    const time = performance.now() - start;
    await server.end();
    return time;
  });
  told(`${(fs.statSync(file).size / 1e9).toFixed(1)} GB: exec to listening, warm`, 30, starts);
  const server = await serve(file);
  const { page, close } = await visit(browser, server.url);
  const shown = await repeated(Math.min(count, 40), async (n) => {
    await go(page, '#/f0/overview');
    evict(file);
    return drawn(page, `#/f0/t${n}`);
  });
  told('tensor of 128 MiB, cold: click to histogram and heatmap, median', 150, shown);
  told('the same, 95 of 100', 400, shown, 0.95);
  await settled(page);
  await close();
  await server.end();
  fs.rmSync(file);
}

/** All values of one tensor, by `stats` and by the exact pass, in turns: from the disk, as the limit means it, and from memory. */
async function exactPass(file, isCold) {
  const [passes, stats] = [[], []];
  for (let i = 0; i < 7; ++i) {
    if (isCold) evict(file);
    let start = performance.now();
    execFileSync(ballast, ['stats', file], { stdio: 'ignore' });
    stats.push(performance.now() - start);
    if (isCold) evict(file);
    const server = await serve(file);
    const [token] = /[0-9a-f]{32}/.exec(server.url);
    const ask = async (method, what) => (await fetch(`${new URL(server.url).origin}/api/1/${what}`, { method, headers: { Authorization: `Bearer ${token}` } })).json();
    start = performance.now();
    const { job } = await ask('POST', 'files/0/t/0/exact');
    while ((await ask('GET', `jobs/${job}`)).state === 'running') await new Promise((resolve) => setTimeout(resolve, 2));
    passes.push(performance.now() - start);
    await server.end();
  }
  tell(`exact pass over 512 MiB, ${isCold ? 'cold' : 'warm'}: rate beside that of \`stats\``, isCold ? '0.8' : '', `${(median(stats) / median(passes)).toFixed(2)} (${median(passes).toFixed(0)} ms, stats ${median(stats).toFixed(0)} ms)`);
}

console.log('| what | limit | found |\n|---|---|---|');
tell('a loop', '', `${calibration().toFixed(0)} ms`);
await sizes();
await manyTensors();
await manyBytes();
const large = realFile(1, 16_384);
for (const isCold of [true, false]) await exactPass(large, isCold);
await browser.close();
fs.rmSync(scratch, { recursive: true, force: true });
