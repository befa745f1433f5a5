// SPDX-License-Identifier: Apache-2.0
// A screenshot with 256 colours: a picture of a page is a third as large so, and the eye sees no difference.
import zlib from 'node:zlib';

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(zlib.crc32 ? zlib.crc32(body) : crc32(body), body.length + 4);
  return out;
}

function crc32(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; ++bit) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}

/** The pixels of an 8-bit PNG without interlacing, as Chromium writes them. */
function pixelsOf(png) {
  const [width, height, step] = [png.readUInt32BE(16), png.readUInt32BE(20), png[25] === 6 ? 4 : 3];
  const parts = [];
  for (let at = 8; at < png.length;) {
    const size = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + size));
    at += size + 12;
  }
  const raw = zlib.inflateSync(Buffer.concat(parts));
  const row = width * step;
  const out = Buffer.alloc(row * height);
  for (let y = 0; y < height; ++y) {
    const filter = raw[y * (row + 1)];
    for (let x = 0; x < row; ++x) {
      const left = x >= step ? out[y * row + x - step] : 0;
      const up = y ? out[(y - 1) * row + x] : 0;
      const corner = x >= step && y ? out[(y - 1) * row + x - step] : 0;
      const guess = left + up - corner;
      const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
      const paeth = a <= b && a <= c ? left : b <= c ? up : corner;
      out[y * row + x] = raw[y * (row + 1) + 1 + x] + [0, left, up, (left + up) >> 1, paeth][filter];
    }
  }
  return { width, height, step, out };
}

export function withPalette(png) {
  const { width, height, step, out } = pixelsOf(png);
  const counts = new Map();
  const colourAt = (i) => (out[i] << 16) | (out[i + 1] << 8) | out[i + 2];
  for (let i = 0; i < out.length; i += step) counts.set(colourAt(i), (counts.get(colourAt(i)) ?? 0) + 1);
  // The most frequent colours that are no near neighbours of one already taken.
  const far = (p, q) => Math.abs((p >> 16) - (q >> 16)) + Math.abs(((p >> 8) & 255) - ((q >> 8) & 255)) + Math.abs((p & 255) - (q & 255));
  const order = [...counts].sort((p, q) => q[1] - p[1]).map(([colour]) => colour);
  const palette = [];
  for (let least = 24; palette.length < 256 && least >= 1; least /= 2) for (const colour of order) if (palette.length < 256 && palette.every((taken) => far(taken, colour) >= least)) palette.push(colour);
  const nearest = new Map();
  for (const colour of order) nearest.set(colour, palette.reduce((best, each, i) => (far(each, colour) < far(palette[best], colour) ? i : best), 0));
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; ++y) for (let x = 0; x < width; ++x) lines[y * (width + 1) + 1 + x] = nearest.get(colourAt((y * width + x) * step)) ?? 0;
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  return Buffer.concat([png.subarray(0, 8), chunk('IHDR', head), chunk('PLTE', Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]))),
    chunk('IDAT', zlib.deflateSync(lines, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}
