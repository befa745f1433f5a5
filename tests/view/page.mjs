// SPDX-License-Identifier: Apache-2.0
// The page in a real browser: what it shows is what the command says, with the keyboard alone, at every size, whatever the names are.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { asNumber, axeSource, ballast, close, go, json, launch, put, root, safetensors, serve, serveWith, settled, shownSummary, visit, weights } from './browser.mjs';
import { largeTests } from './large.mjs';

const browser = await launch();
const fixture = (name) => path.join(root, 'tests/fixtures', name);

const tests = {
  async nothingIsCutOffAtAnySize() {
    const server = await serve(fixture('import/layers.pt'), fixture('import/autoencoder.pt'));
    const panes = ['#/f0/overview', '#/f0/t0', '#/changes/t0', '#/f0/objects', '#/f0/pickle', '#/f0/file'];
    const plain = { width: 1280, height: 800, colorScheme: 'light', forcedColors: 'none' };
    const sizes = { '1280': plain, '1920': { ...plain, width: 1920, height: 1080 }, '360': { ...plain, width: 360, height: 740 }, '200%': { ...plain, width: 640, height: 400 },
      dark: { ...plain, colorScheme: 'dark' }, forced: { ...plain, forcedColors: 'active' } };
    const axe = axeSource();
    let [checks, audits] = [0, 0];
    for (const locale of ['en-US', 'zh-CN']) {
      const { page, seen, close: leave } = await visit(browser, server.url, { locale });
      await page.evaluate(axe);
      for (const hash of panes) {
        await go(page, hash);
        for (const [name, { width, height, ...media }] of Object.entries(sizes)) {
          if (locale === 'zh-CN' && !['1280', '360'].includes(name)) continue;
          await page.emulateMedia(media);
          await page.setViewportSize({ width, height });
          await settled(page);
          const where = `${locale} ${name} ${hash}`;
          const wide = await page.evaluate(() => Math.max(document.documentElement.scrollWidth - innerWidth, document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth));
          assert.ok(wide <= 0, `${where}: ${wide} pixels too wide`);
          if (process.env.BALLAST_SHOTS) await page.screenshot({ path: path.join(process.env.BALLAST_SHOTS, `${where.replaceAll(/[#/ ]+/g, '-')}.png`) });
          ++checks;
          if (locale !== 'en-US' || !['1280', 'dark', ...(hash.endsWith('t0') ? ['360'] : [])].includes(name)) continue;
          const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'], resultTypes: ['violations'] }));
          assert.deepEqual(violations.map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`), [], where);
          ++audits;
        }
        await page.setViewportSize({ width: 1280, height: 800 });
      }
      assert.deepEqual(seen.said, [], locale);
      assert.equal(seen.violations, 0);
      await leave();
    }
    await server.end();
    return `${checks} views, ${audits} audits by axe`;
  },

  async theSameCountsAndValuesAsTheCommand() {
    const files = ['import/autoencoder.safetensors', 'import/layers.pt', 'import/mixed_dtypes.safetensors', 'burn/files/net.mpk', 'burn/files/net.mpk.gz', 'burn/files/net.bpk', 'burn/files/quantized.bpk',
      'onnx/files/torch.onnx', 'onnx/files/external.onnx', 'torch/files/big_endian_float16.pt', 'torch/files/big_endian_complex64.pt', 'torch/files/device_cuda_legacy.pth'].map(fixture);
    for (let i = 0; i < files.length; i += 2) {
      const pair = files.slice(i, i + 2);
      const server = await serve(...pair);
      const { page, seen, close: leave } = await visit(browser, server.url);
      for (const [f, file] of pair.entries()) {
        const [list, stats] = [json('ls', file), json('stats', file)];
        await go(page, `#/f${f}/overview`);
        assert.equal(asNumber(await page.textContent('.glance dd:nth-of-type(3)')), list.tensors.length, file);
        const told = stats.tensors.find((each) => typeof each.min === 'number' && each.dtype[0] !== 'C');
        if (!told) continue;
        await go(page, `#/f${f}/t${list.tensors.findIndex((each) => each.name === told.name)}`);
        const shown = await shownSummary(page);
        for (const key of ['min', 'max', 'mean', 'std']) assert.ok(close(shown[key], told[key]), `${file}: ${key} is ${shown[key]}, not ${told[key]}`);
        for (const [key, name] of [['NaN', 'nan'], ['zeros', 'zeros']]) assert.equal(asNumber(shown[key]), told[name], file);
      }
      assert.deepEqual(seen.said, [], pair.join());
      await leave();
      await server.end();
    }
    return `${files.length} files`;
  },

  async theHeatmapsTableHasTheFilesNumbers() {
    const values = weights(12 * 9, 7);
    [values[5], values[40], values[41]] = [NaN, Infinity, -Infinity];
    const server = await serve(put('values.safetensors', safetensors([['w', 'F32', [12, 9], values], ['conv.weight', 'F32', [4, 3, 2, 2], weights(48, 3)]])));
    const { page, seen, close: leave } = await visit(browser, server.url, {}, '#/f0/t0?stat=value');
    await page.click('[aria-label="Data: Heatmap"]');
    const rows = await page.$$eval('.heat-figure tbody tr', (all) => all.map((row) => [...row.children].slice(1).map((cell) => cell.textContent)));
    const read = (text) => (text === 'NaN' ? NaN : /Inf|∞/.test(text) ? (text[0] === '−' ? -Infinity : Infinity) : asNumber(text));
    const [above, ...lines] = rows;
    assert.equal(lines.length, 12);
    const norm = (picked) => Math.sqrt(picked.reduce((sum, value) => sum + (Number.isNaN(value) ? 0 : value * value), 0));
    const near = (text, wanted, where) => assert.ok(read(text) === wanted || Math.abs(read(text) - wanted) < 1e-5 * wanted, `${where} is ${text}, not ${wanted}`);
    above.slice(1).forEach((text, col) => near(text, norm(values.filter((_, i) => i % 9 === col)), `the norm of column ${col}`));
    lines.forEach(([text], row) => near(text, norm(values.slice(9 * row, 9 * row + 9)), `the norm of row ${row}`));
    const cells = lines.flatMap((line) => line.slice(1));
    cells.forEach((text, i) => assert.ok(Object.is(read(text), values[i]) || Math.abs(read(text) - values[i]) < 1e-5 * Math.abs(values[i]), `cell ${i} is ${text}, not ${values[i]}`));
    await go(page, '#/f0/t1?axes=2,1&at=3,1');
    assert.equal(await page.$eval('.axes select', (select) => select.value), '2');
    assert.deepEqual(await page.$$eval('.axes input[type=number]', (all) => all.map((input) => input.value)), ['3', '1']);
    assert.deepEqual(seen.said, []);
    await leave();
    await server.end();
    return `${cells.length} cells, ${above.length - 1 + lines.length} norms`;
  },

  async everyKindOfTensorOpens() {
    let tensors = 0;
    for (const [file, other] of [['torch/files/dtype_all_in_one.pt', 'onnx/files/small_types.onnx'], ['torch/files/dtype_bfloat16_empty_middle.pt', 'torch/files/dtype_complex128_contiguous.pt'],
      ['torch/files/dtype_bool_scalar_at_offset.pt', 'onnx/files/sparse.onnx']]) {
      const pair = [fixture(file), fixture(other)];
      const server = await serve(...pair);
      const { page, seen, close: leave } = await visit(browser, server.url);
      for (const [f, each] of pair.entries()) {
        for (let n = 0; n < Math.min(12, json('ls', each).tensors.length); ++n, ++tensors) {
          await go(page, `#/f${f}/t${n}`);
          assert.ok(await page.isHidden('.banner'), `${each} ${n}: ${await page.textContent('.banner')}`);
          assert.ok(await page.isVisible('.summary-part table'), `${each} ${n}`);
        }
      }
      assert.deepEqual(seen.said, [], file);
      await leave();
      await server.end();
    }
    return `${tensors} tensors`;
  },

  async theKeyboardAloneIsEnough() {
    const server = await serve(put('keys.safetensors', safetensors(Array.from({ length: 40 }, (_, i) => [`layers.${i}.proj.weight`, 'F32', [64, 48], weights(3072, i + 1)]))));
    const { page, seen, close: leave } = await visit(browser, server.url);
    const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
    await press('/');
    await page.keyboard.type('31.proj');
    await page.waitForFunction(() => document.querySelector('.found')?.textContent?.startsWith('1 '));
    await press('ArrowDown', 'Enter');
    await page.waitForFunction(() => /\/t31/.test(location.hash));
    await settled(page);
    assert.equal(await page.textContent('h2.name'), 'layers.31.proj.weight');
    for (let i = 0; i < 60 && !(await page.evaluate(() => document.activeElement?.classList.contains('heatmap'))); ++i) await press('Tab');
    assert.ok(await page.evaluate(() => document.activeElement?.classList.contains('heatmap')), 'Tab reaches the heatmap');
    for (let i = 0; i < 12; ++i) await press('+');
    await press('ArrowRight', 'ArrowDown', 'Shift+ArrowRight');
    await page.waitForFunction(() => /^\[\d+, \d+\]/.test(document.querySelector('.heat .readout')?.textContent ?? ''));
    await settled(page);
    assert.ok(seen.requests.some((each) => /\/values\?.*w=\d\d/.test(each)), 'the numbers were asked for');
    const level = Number(/level=([-\d.]+)/.exec(await page.evaluate(() => location.hash))?.[1]);
    assert.ok(2 ** -level > 24, `a cell has ${2 ** -level} pixels after twelve steps`);
    await press('0');
    const download = page.waitForEvent('download');
    for (let i = 0; i < 60 && (await page.evaluate(() => document.activeElement?.textContent)) !== 'CSV'; ++i) await press('Shift+Tab');
    await press('Enter');
    assert.match((await download).suggestedFilename(), /\.csv$/);
    await press('1');
    await page.waitForFunction(() => location.hash.includes('/overview'));
    await press('Escape', 't', 'Home', 'End', 'ArrowUp', 'PageUp', 'PageDown');
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('role')), 'row');
    await press('?');
    assert.ok(await page.isVisible('dialog'));
    await press('Escape');
    assert.deepEqual(seen.said, []);
    await leave();
    await server.end();
    return 'search, open, zoom, read, export, tabs, tree, help';
  },

  async hostileNamesAreText() {
    const names = ['<script>window.hit=1</script>', '<img src=x onerror="window.hit=1">', '\u202egnp.exe', 'x'.repeat(1_000_000), 'a\x1b[31mb', 'a\r\nb', '__proto__', 'constructor.prototype', '=cmd|calc', '"><svg onload=hit()>',
      'javascript:hit()', '${hit()}', '{{hit}}', '..', '.', '../../etc', 'a..b', '%00', '\\', '\u2066x\u2069', '😀', '&lt;b&gt;'];
    const file = put('hostile.safetensors', safetensors(names.map((name) => [name, 'F32', [2, 2], weights(4, 1)]), { '<b>key</b>': '<script>window.hit=1</script>' }));
    await assert.rejects(serve(put('nul.safetensors', safetensors([['a\0b', 'F32', [1], weights(1, 1)]]))), /NUL/);
    // JSON cannot say half a surrogate pair, pickles can: two names are given one.
    const plain = put('plain.safetensors', safetensors([['\u2600.weight', 'F32', [2, 2], weights(4, 1)], ['x.\u2601', 'F32', [2, 2], weights(4, 2)]]));
    const halves = put('halves.pt', '');
    execFileSync(ballast, ['convert', plain, halves, '--to', 'torch-legacy', '-f'], { stdio: 'ignore' });
    fs.writeFileSync(halves, Buffer.from(fs.readFileSync(halves, 'latin1').replaceAll('\xe2\x98\x80', '\xed\xa0\x80').replaceAll('\xe2\x98\x81', '\xed\xbf\xbf'), 'latin1'));
    assert.equal(json('ls', halves).tensors.length, 2);
    const server = await serve(file, halves);
    const { page, seen, close: leave } = await visit(browser, server.url);
    for (const hash of ['#/f0/overview', '#/f0/file', ...names.map((_, i) => `#/f0/t${i}`), '#/f1/overview', '#/f1/objects', '#/f1/pickle', '#/f1/t0', '#/f1/t1', '#/changes']) {
      await go(page, hash);
      assert.ok(await page.isHidden('.banner'), `${hash.slice(0, 40)}: ${await page.textContent('.banner')}`);
      assert.doesNotMatch(await page.textContent('body'), /[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u001b\ud800-\udfff\ufffd]/u, `${hash}: control, bidi and broken characters are shown escaped`);
    }
    assert.equal(await page.evaluate(() => window.hit), undefined);
    assert.equal(await page.$$eval('main img, main script, main svg, .tree img', (all) => all.length), 0);
    assert.equal(seen.violations, 0);
    assert.deepEqual(seen.said, []);
    await leave();
    await server.end();
    return `${names.length + 2} names, 0 violations, 0 messages`;
  },

  async errorsAreToldOnce() {
    const server = await serve(fixture('import/layers.pt'));
    const { page, close: leave } = await visit(browser, server.url);
    await page.selectOption('.filters select', 'regex');
    await page.fill('#search', '(');
    await page.waitForSelector('.found.bad');
    assert.ok(await page.isHidden('.banner'), 'a regex that does not compile is told beside the box');
    await page.fill('#search', '');
    await go(page, '#/f0/t999999');
    assert.match(await page.textContent('.banner'), /could not/);
    await page.click('.banner [aria-label=Close]');
    await go(page, '#/f0/overview');
    await server.end();
    await page.evaluate(() => { location.hash = '#/f0/file'; });
    await page.waitForSelector('.banner:not([hidden])');
    assert.match(await page.textContent('.banner'), /gone/);
    assert.equal(await page.$$eval('.banner', (all) => all.length), 1);
    await leave();
    return 'beside the box, in the banner, and when the server is gone';
  },

  async aFileThatIsCutOffIsAMessage() {
    const file = put('cut.safetensors', safetensors([['w', 'F32', [700, 900], weights(630_000, 3)], ['v', 'F32', [4, 4], weights(16, 1)]]));
    const server = await serve(file);
    const { page, seen, close: leave } = await visit(browser, server.url);
    fs.truncateSync(file, 4096);
    await go(page, '#/f0/t0');
    assert.match(await page.textContent('.banner'), /could not.*cut\.safetensors/s);
    await page.click('.banner [aria-label=Close]');
    await go(page, '#/f0/overview');
    assert.ok(await page.isVisible('.glance'), 'the server lives');
    assert.equal(seen.violations, 0);
    await leave();
    await server.end();
    return 'told in the banner, and the rest goes on';
  },

  async tokensLeaveTheAddress() {
    const server = await serve(fixture('import/layers.pt'));
    const { page, seen, close: leave } = await visit(browser, server.url);
    const [token] = /[0-9a-f]{32}/.exec(server.url);
    assert.ok(!(await page.evaluate(() => location.href)).includes(token));
    assert.ok(seen.requests.every((each) => !each.replace(/#.*/, '').includes(token)));
    await go(page, '#/f0/t0');
    await page.reload();
    await settled(page);
    assert.ok(await page.isVisible('h2.name'), 'a deep link survives a reload');
    await go(page, '#/f0/objects?path=[2]');
    await page.waitForSelector('.pane-objects .row[aria-selected=true]');
    assert.equal(await page.getAttribute('.pane-objects .row[aria-selected=true]', 'aria-posinset'), '3');
    const stranger = await visit(browser, server.url.replace(/#.*/, '#/f0/overview')).catch((error) => error);
    assert.match(await stranger.page.textContent('.banner'), /token/);
    await stranger.close();
    await leave();
    await server.end();
    return 'erased, kept for the tab, asked for elsewhere';
  },

  async anotherOriginReadsNothing() {
    const server = await serve(fixture('import/layers.pt'));
    const [token] = /[0-9a-f]{32}/.exec(server.url);
    const stranger = http.createServer((_, answer) => answer.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>stranger</title>')).listen(0, '127.0.0.1');
    await new Promise((resolve) => stranger.once('listening', resolve));
    const context = await browser.newContext();
    const page = await context.newPage();
    const outcomes = {};
    for (const name of ['127.0.0.1', 'localhost']) {
      await page.goto(`http://${name}:${stranger.address().port}/`);
      outcomes[name] = await page.evaluate(async ([base, bearer]) => {
        const read = async (options) => fetch(`${base}api/1/files`, options).then(async (answer) => `${answer.type} ${(await answer.text()).length}`, () => 'refused');
        const element = (tag, more) => new Promise((resolve) => {
          const made = Object.assign(document.createElement(tag), more, { onload: () => resolve('loaded'), onerror: () => resolve('refused') });
          document.body.append(made);
        });
        return [await read({ headers: { Authorization: `Bearer ${bearer}` } }), await read({}), await read({ mode: 'no-cors' }), await import(`${base}core.js`).then(() => 'loaded', () => 'refused'),
          await element('script', { src: `${base}core.js`, type: 'module' }), await element('script', { src: `${base}strings.js` }), await element('img', { src: `${base}app.css` })];
      }, [server.url.replace(/#.*/, ''), token]);
    }
    for (const [name, each] of Object.entries(outcomes)) assert.ok(each.every((outcome) => outcome === 'refused' || outcome === 'opaque 0'), `${name}: ${each}`);
    await context.close();
    stranger.close();
    await server.end();
    return `${Object.values(outcomes).flat().length} ways, not a byte`;
  },

  async theChangesAreThoseOfDiff() {
    const layers = (seed) => Array.from({ length: 6 }, (_, i) => [`model.layers.${i}.self_attn.out_proj.weight`, 'F32', [32, 32], weights(1024, i + 1).map((v, k) => v * (1 + (seed * i * ((k % 7) - 3)) / 300))]);
    const [a, b] = [put('a.safetensors', safetensors([...layers(0), ['old', 'F32', [2]]])), put('b.safetensors', safetensors([...layers(1), ['new', 'F32', [3]]]))];
    const told = json('diff', a, b);
    const server = await serve(a, b);
    const { page, seen, close: leave } = await visit(browser, server.url, {}, '#/changes');
    const text = await page.textContent('.pane-changes .status');
    const changed = told.tensors.filter((each) => /^(values|changed|within)$/.test(each.change ?? each.kind ?? '')).length;
    if (changed) assert.match(text, new RegExp(`\\b${changed} changed`));
    await page.click('[aria-label^="Data: Change by layer"]');
    const rows = await page.$$eval('.pane-changes .figure tbody tr', (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    assert.equal(rows.length, 6);
    await go(page, '#/changes/t5');
    assert.ok(await page.isVisible('.pane-changes canvas.heatmap'));
    await page.setViewportSize({ width: 360, height: 740 });
    await settled(page);
    const beyond = await page.$$eval('main h2, main h3, main button, main select, .changes-table .after', (all) => all.filter((each) => each.getBoundingClientRect().right > 350).map((each) => each.textContent));
    assert.deepEqual(beyond, [], 'nothing stands out to the right');
    assert.match(await page.$eval('.changes-table .rows .row:not([hidden]) .after', (end) => (end.clientWidth > 120 ? end.textContent : 'too narrow')), /^\d\.self_attn\.out_proj\.weight$/, 'of a name, the end is seen');
    assert.deepEqual(seen.said, []);
    await leave();
    await server.end();
    return text;
  },

  async coloursOdditiesAndAxesOfDifferences() {
    const odd = weights(64, 1);
    odd[3] = NaN;
    const tensors = (seed) => [['a.weight', 'F32', [8, 8], weights(64, seed)], ['conv', 'F32', [4, 3, 2, 5], weights(120, seed)], ['odd', 'F32', [64], odd], ['zero', 'F32', [4]]];
    const server = await serve(put('first.safetensors', safetensors(tensors(3))), put('second.safetensors', safetensors(tensors(4))));
    const { page, seen, close: leave } = await visit(browser, server.url, {}, '#/f0/overview');
    await page.waitForSelector('.odd table');
    const told = await page.$$eval('.odd tbody tr', (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    assert.deepEqual(told, [['odd', '1 × NaN'], ['zero', 'all zeros']]);
    const colours = page.locator('.figure .bar label', { hasText: 'colour' }).locator('select');
    const pictures = new Set();
    for (const colour of ['dtype', 'std', 'absmax', 'change']) {
      await colours.selectOption(colour);
      await settled(page);
      if (colour !== 'dtype') await page.waitForFunction(() => /From .* to /.test(document.querySelector('.figure .summary')?.textContent ?? ''));
      pictures.add(await page.$eval('canvas.treemap', (canvas) => canvas.toDataURL()));
      if (process.env.BALLAST_SHOTS) await page.screenshot({ path: path.join(process.env.BALLAST_SHOTS, `colour-${colour}.png`) });
    }
    assert.equal(pictures.size, 4, 'each colour draws another picture');
    const conv = json('diff', ...['first', 'second'].map((name) => put(`${name}.safetensors`, safetensors(tensors(name === 'first' ? 3 : 4))))).tensors.findIndex((each) => each.name === 'conv');
    await go(page, `#/changes/t${conv}`);
    assert.deepEqual(await page.$$eval('.axes select', (all) => all.map((select) => select.value)), ['0', '3']);
    await page.locator('.axes select').nth(1).selectOption('1');
    await settled(page);
    await page.locator('.axes input[type=number]').nth(1).fill('2');
    await page.keyboard.press('Enter');
    await settled(page);
    assert.ok(seen.requests.some((each) => each.includes('/diff/t/') && each.includes('/tile?axes=0,1&at=0,2&')), 'tiles of the plane that was chosen');
    assert.deepEqual(seen.said, []);
    if (process.env.BALLAST_SHOTS) await page.screenshot({ path: path.join(process.env.BALLAST_SHOTS, 'delta-axes.png') });
    await leave();
    await server.end();
    return '3 colours, 2 oddities, a plane of a difference';
  },

  async theCodeOfTheOpenedPageWorksOnce() {
    const bin = path.join(path.dirname(put('unused', '')), 'bin');
    fs.mkdirSync(bin);
    const note = path.join(bin, 'url');
    fs.writeFileSync(path.join(bin, 'xdg-open'), `#!/bin/sh\nprintf %s "$1" > '${note}.tmp' && mv '${note}.tmp' '${note}'\n`, { mode: 0o755 });
    const server = await serveWith({ open: true, env: { ...process.env, DISPLAY: ':0', PATH: `${bin}:${process.env.PATH}` } }, fixture('import/layers.pt'));
    for (let i = 0; i < 200 && !fs.existsSync(note); ++i) await new Promise((resolve) => setTimeout(resolve, 20));
    const url = fs.readFileSync(note, 'utf8');
    assert.match(url, /#code=[0-9a-f]{32}$/);
    const opened = await visit(browser, url);
    assert.ok(await opened.page.isVisible('.glance'));
    assert.doesNotMatch(await opened.page.evaluate(() => location.href), /code=/);
    await opened.close();
    const again = await visit(browser, url);
    assert.ok(await again.page.isVisible('.banner'), 'a second use is refused');
    await again.close();
    await server.end();
    return 'exchanged, then refused';
  },

  async everyWordIsThereInBothLanguages() {
    const folder = path.join(root, 'tools/ballast/view/page');
    const words = fs.readFileSync(path.join(folder, 'strings.js'), 'utf8');
    const known = new Map([...words.matchAll(/^  (\w+): \['((?:[^'\\]|\\.)*)', '((?:[^'\\]|\\.)*)'\],$/gm)].map(([, key, english, chinese]) => [key, [english, chinese]]));
    const code = fs.readdirSync(folder).filter((name) => name.endsWith('.js') && name !== 'strings.js').map((name) => fs.readFileSync(path.join(folder, name), 'utf8')).join('\n');
    const used = [...code.matchAll(/\bt\('(\w+)'/g)].map(([, key]) => key);
    assert.deepEqual(used.filter((key) => !known.has(key)), []);
    for (const [key, [english, chinese]] of known) {
      assert.ok(english && chinese, key);
      const places = (text) => [...new Set(text.match(/\{\d\}/g) ?? [])].sort().join();
      assert.equal(places(english), places(chinese), key);
    }
    return `${known.size} texts`;
  },
};

Object.assign(tests, largeTests(browser));

let failed = 0;
const waiting = Object.entries(tests).filter(([name]) => !process.argv[2] || name.includes(process.argv[2]));
const again = [];  // alone, once: a browser on a busy machine may lose a tab's answer, the page may not lose it twice
// Three side by side: each has a server and a tab of its own.
await Promise.all([0, 1, 2].map(async () => {
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const [name, test] = next;
    const start = performance.now();
    try {
      console.log(`ok   ${name} (${await test()}) ${((performance.now() - start) / 1000).toFixed(1)} s`);
    } catch (error) {
      again.push(next);
      console.log(`once more: ${name}: ${error.stack}`);
    }
  }
}));
for (const [name, test] of again) {
  try {
    console.log(`ok   ${name} (${await test()})`);
  } catch (error) {
    ++failed;
    console.log(`FAIL ${name}: ${error.stack}`);
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
