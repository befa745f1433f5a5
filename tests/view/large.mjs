// SPDX-License-Identifier: Apache-2.0
// Large files in a real browser: what is sampled says so, what is asked for is exact, and what it costs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { asNumber, close, go, put, root, safetensors, serve, settled, shownSummary, visit, weights } from './browser.mjs';

const fixture = (name) => path.join(root, 'tests/fixtures', name);

/** The beginning of a file with some tensors, whose bytes are a hole. */
function sparseHeader(count, shape) {
  const bytes = 4 * shape[0] * shape[1];
  const text = JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`w${i}`, { dtype: 'F32', shape, data_offsets: [i * bytes, (i + 1) * bytes] }]))).padEnd(96 * count);
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([head, Buffer.from(text)]);
}

/** Milliseconds of a fixed loop, here and now: times are printed in it too, which says more than milliseconds of an unknown machine. */
export function calibration() {
  const start = performance.now();
  let state = 1;
  for (let i = 0; i < 20_000_000; ++i) state = (state * 48_271) % 2_147_483_647;
  return state ? performance.now() - start : NaN;
}
const inLoops = (milliseconds) => `${milliseconds.toFixed(milliseconds < 20 ? 1 : 0)} ms, ${(milliseconds / calibration()).toFixed(2)} of a loop of 20 million steps`;
export const median = (times) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)];

/** Milliseconds from a change of the address until the summary and the first tile of the heatmap are there. */
export const drawn = (page, hash) => page.evaluate(async (to) => {
  const start = performance.now();
  location.hash = to;
  const there = () => location.hash.startsWith(to) && document.querySelector('.pane .summary-part table') && document.querySelector('.pane .heat[data-tiles]');
  do await new Promise(requestAnimationFrame); while (!there());
  return performance.now() - start;
}, hash);

/** Milliseconds from the navigation to the first row of the tree; asked of a page that noteTree() was put into. */
export const noteTree = () => {
  const look = () => {
    if (document.querySelector('.tree .rows .row:not([hidden]) .name, .tree .rows .row:not([hidden]) [role=gridcell]')?.textContent?.trim()) window.treeAt = performance.now();
    else requestAnimationFrame(look);
  };
  look();
};

/** Milliseconds of work in each frame while 100 rows a frame go by, in order. */
export const scrolled = (page) => page.evaluate(async () => {
  const body = document.querySelector('.tree .rows');
  const all = [];
  for (let i = 0; i < 60; ++i) {
    body.scrollTop += 2600;
    await new Promise((resolve) => requestAnimationFrame(() => {  // the tree's own work comes after this, in the same frame
      const start = performance.now();
      setTimeout(() => resolve(all.push(performance.now() - start)));
    }));
  }
  return all.sort((a, b) => a - b);
});

export const largeTests = (browser) => ({
  async hundredThousandTensorsScroll() {
    const server = await serve(put('many.safetensors', safetensors(Array.from({ length: 100_000 }, (_, i) => [`block${i % 7}x${i}.weight`, 'U8', [1 + (i % 5)]]))));
    const trees = [];
    const paints = [];
    for (let i = 0; i < 5; ++i) {
      const once = await visit(browser, server.url, {}, '', noteTree);
      trees.push(await once.page.evaluate(() => window.treeAt));
      paints.push(await once.page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0));
      await once.close();
    }
    const { page, seen, close: leave } = await visit(browser, server.url);
    await page.fill('#search', 'weight');
    await page.waitForFunction(() => document.querySelector('.found')?.textContent?.includes('100,000'));
    const times = await scrolled(page);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('End');
    await settled(page);
    await page.waitForFunction(() => document.activeElement?.getAttribute('aria-rowindex') === '100001');
    assert.equal(await page.getAttribute('.tree .grid', 'aria-rowcount'), '100001');
    const rows = await page.$$eval('.tree .rows .row', (all) => all.length);
    assert.ok(rows < 120, `${rows} rows are kept`);
    const heap = await page.evaluate(() => performance.memory.usedJSHeapSize / 2 ** 20);
    assert.ok(heap < 60, `${heap} MiB of JavaScript`);
    assert.deepEqual(seen.said, []);
    await leave();
    await server.end();
    return `${rows} elements, ${heap.toFixed(0)} MiB; painted after ${inLoops(median(paints))}, the tree after ${inLoops(median(trees))}; a frame took ${inLoops(times[30])} at the median, ${inLoops(times[59])} at most`;
  },

  async largeFilesAreComparedByASampleFirst() {
    const shape = [12_000, 12_001];
    const files = [1, 2].map((value) => {
      const file = put(`large${value}.safetensors`, sparseHeader(1, shape));
      const size = fs.statSync(file).size;
      fs.truncateSync(file, size + 4 * shape[0] * shape[1]);
      const handle = fs.openSync(file, 'r+');
      fs.writeSync(handle, Buffer.from(Float32Array.of(value).buffer), 0, 4, size + 4 * shape[0] * shape[1] - 4);  // the last one, which no sample has
      fs.closeSync(handle);
      return file;
    });
    const server = await serve(...files);
    const { page, seen, close: leave } = await visit(browser, server.url, {}, '#/changes/t0');
    assert.match(await page.textContent('.pane-changes .status'), /sampled .*0 changed, 1 equal/);
    assert.equal(await page.textContent('.changes-table .row:not([hidden]) [data-kind]'), '≈ equal');
    if (process.env.BALLAST_SHOTS) await page.screenshot({ path: path.join(process.env.BALLAST_SHOTS, 'sampled-changes.png') });
    await page.click('.pane-changes .status .primary');
    await page.waitForFunction(() => /1 changed, 0 equal/.test(document.querySelector('.pane-changes .status')?.textContent ?? ''));
    await settled(page);
    assert.doesNotMatch(await page.textContent('.pane-changes .status'), /sampled/);
    assert.equal(await page.textContent('.changes-table .row:not([hidden]) [data-kind]'), 'changed');
    assert.equal(await page.$eval('.pane-changes .heat', (heat) => heat.dataset.exact), 'false');
    await page.click('.heat-figure .status button');
    await page.waitForFunction(() => document.querySelector('.pane-changes .heat')?.dataset.exact === 'true');
    assert.deepEqual(seen.said, []);
    await leave();
    await server.end();
    return 'equal in the sample, changed in all values, drawn from all values';
  },

  async readingAllMakesItExact() {
    const values = weights(6_000_000, 9);
    values[4_321_987] = 7.5;  // one in six million
    const server = await serve(put('large.safetensors', safetensors([['w', 'F32', [2000, 3000], values]])));
    const { page, seen, close: leave } = await visit(browser, server.url, {}, '#/f0/t0');
    assert.match(await page.textContent('.status'), /sampled/);
    const norm = Math.hypot(...[0, 1, 2, 3, 4, 5].map((part) => Math.sqrt(values.subarray(part * 1e6, (part + 1) * 1e6).reduce((sum, value) => sum + value * value, 0))));
    const guessed = asNumber((await shownSummary(page)).L2.replace('≈', ''));
    assert.ok(Math.abs(guessed / norm - 1) < 0.1, `the norm is ${norm}, guessed ${guessed}`);
    await page.click('.status .primary');
    await page.waitForSelector('.status .good');
    await settled(page);
    const shown = await shownSummary(page);
    assert.equal(asNumber(shown.max), 7.5);
    assert.ok(close(shown.L2, norm), `the norm is ${norm}, not ${shown.L2}`);
    await page.selectOption('.heat-figure .bar select', 'mean');
    await page.selectOption('.heat-figure .bar select', 'absmax');  // the tiles of the first choice are given up
    await settled(page);
    await page.selectOption('.heat-figure .bar label:nth-of-type(2) select', 'full');
    await page.waitForFunction(() => document.querySelector('.scalebar')?.textContent?.includes('7.5'));
    assert.equal(await page.$eval('.heat', (heat) => heat.dataset.exact), 'true');
    assert.deepEqual(seen.said, []);
    await leave();
    await server.end();
    return 'one outlier in 6,000,000 is in the summary and in the heatmap';
  },

  async cancellingKeepsTheSample() {
    const shape = [32_768, 65_536];
    const file = put('sparse.safetensors', sparseHeader(4, shape));
    fs.truncateSync(file, fs.statSync(file).size + 4 * 4 * shape[0] * shape[1]);
    const server = await serve(file);
    const { page, seen, close: leave } = await visit(browser, server.url);
    const shown = [];
    for (let n = 0; n < 4; ++n) {
      await go(page, '#/f0/overview');
      shown.push(await drawn(page, `#/f0/t${n}`));
    }
    await settled(page);
    await page.click('.status .primary');
    await page.waitForSelector('.status progress');
    await page.keyboard.press('Enter');  // Cancel has the focus
    await page.waitForSelector('.status .primary');
    assert.match(await page.textContent('.status'), /sampled/);
    await go(page, '#/f0/overview');
    assert.deepEqual(seen.said, []);
    await leave();
    await server.end();
    return `8 GiB each, drawn after ${inLoops(median(shown))}`;
  },

  async theBudgetOfBytesAndRequests() {
    const folder = path.join(root, 'tools/ballast/view/page');
    const files = fs.readdirSync(folder);
    const bytes = files.reduce((sum, name) => sum + fs.statSync(path.join(folder, name)).size, 0);
    assert.ok(bytes <= 150_000 && files.length <= 12, `${files.length} files, ${bytes} bytes`);
    const server = await serve(fixture('import/layers.pt'));
    const { seen, close: leave } = await visit(browser, server.url);
    const origin = new URL(server.url).origin;
    assert.ok(seen.requests.every((each) => each.startsWith(origin) || each.startsWith(`blob:${origin}`)), 'no request leaves the machine');
    const assets = new Set(seen.requests.filter((each) => !each.includes('/api/') && !each.startsWith('blob:')).map((each) => each.replace(/#.*/, '')));
    assert.ok(assets.size <= 12, [...assets].join(' '));
    await leave();
    await server.end();
    return `${bytes} bytes in ${assets.size} requests`;
  },
});
