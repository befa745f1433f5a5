// SPDX-License-Identifier: Apache-2.0
// Whether two tensors agree. Floating point: the largest difference, relative to the largest expected magnitude (the norm's error, so that a zero
// that should have been 1e-9 does not count); everything else: equal. NaN agrees with NaN, infinities with the same infinity.

function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -14 * (fraction / 1024);
}

/** A function from position to number; newer runtimes hand out Float16Array, older ones bits. */
function reader(type, data) {
  return type === 'float16' && data instanceof Uint16Array ? (i) => halfToNumber(data[i]) : (i) => data[i];
}

function compareFloats(type, got, expected, count) {
  const a = reader(type, got);
  const b = reader(type, expected);
  let difference = 0, scale = 0, where = -1;
  for (let i = 0; i < count; ++i) {
    const x = a(i), y = b(i);
    if (Object.is(x, y) || x === y || (Number.isNaN(x) && Number.isNaN(y))) {
      if (Number.isFinite(y)) scale = Math.max(scale, Math.abs(y));
      continue;
    }
    if (!Number.isFinite(x) || !Number.isFinite(y)) return {error: Infinity, detail: `element ${i} is ${x}, expected ${y}`};
    scale = Math.max(scale, Math.abs(y));
    if (Math.abs(x - y) > difference) {
      difference = Math.abs(x - y);
      where = i;
    }
  }
  const error = difference / (scale || 1);  // nothing but zeros expected: the difference itself
  return {error, detail: where < 0 ? 'equal' : `largest difference ${difference.toExponential(2)} at element ${where}: ${a(where)}, expected ${b(where)}`};
}

function compareExactly(got, expected, count) {
  for (let i = 0; i < count; ++i) {
    if (got[i] !== expected[i]) return {error: Infinity, detail: `element ${i} is ${got[i]}, expected ${expected[i]}`};
  }
  return {error: 0, detail: 'equal'};
}

/** {error, detail}; error is Infinity where no tolerance helps. */
function compare(got, expected) {
  const [ours, theirs] = [got, expected].map((tensor) => `${tensor.type} [${[...tensor.dims].join(', ')}]`);
  if (ours !== theirs) return {error: Infinity, detail: `is ${ours}, expected ${theirs}`};
  const count = expected.data.length;
  return got.type.startsWith('float') ? compareFloats(got.type, got.data, expected.data, count) : compareExactly(got.data, expected.data, count);
}

module.exports = {compare};
