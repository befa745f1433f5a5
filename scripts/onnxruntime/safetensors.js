// SPDX-License-Identifier: Apache-2.0
// Reads a Safetensors file: {name: {type, dims, data}}, type as ONNX Runtime calls it. Small on purpose: it is the tests' second opinion.
const fs = require('fs');

const KINDS = {
  F32: ['float32', Float32Array],
  F64: ['float64', Float64Array],
  F16: ['float16', Uint16Array],  // bits; compare.js reads them
  I64: ['int64', BigInt64Array],
  U64: ['uint64', BigUint64Array],
  I32: ['int32', Int32Array],
  U32: ['uint32', Uint32Array],
  I16: ['int16', Int16Array],
  U16: ['uint16', Uint16Array],
  I8: ['int8', Int8Array],
  U8: ['uint8', Uint8Array],
  BOOL: ['bool', Uint8Array],
};

function readSafetensors(path) {
  const file = fs.readFileSync(path);
  if (file.length < 8) throw new Error(`${path}: no Safetensors file: ${file.length} bytes`);
  const size = Number(file.readBigUInt64LE(0));
  if (size > file.length - 8) throw new Error(`${path}: the header has ${size} bytes, the file has ${file.length} (cut?)`);
  const result = {};
  for (const [name, entry] of Object.entries(JSON.parse(file.toString('utf8', 8, 8 + size)))) {
    if (name === '__metadata__') continue;
    if (!(entry.dtype in KINDS)) throw new Error(`${path}: "${name}": dtype ${entry.dtype} is not one of ${Object.keys(KINDS).join(' ')}`);
    const [type, View] = KINDS[entry.dtype];
    const [begin, end] = entry.data_offsets.map((offset) => 8 + size + offset);
    const count = entry.shape.reduce((a, b) => a * b, 1);
    if (end > file.length || end - begin !== count * View.BYTES_PER_ELEMENT) {
      throw new Error(`${path}: "${name}": ${entry.dtype} ${JSON.stringify(entry.shape)} needs ${count * View.BYTES_PER_ELEMENT} bytes, the file gives ${Math.min(end, file.length) - begin}`);
    }
    const aligned = new Uint8Array(file.subarray(begin, end));  // a copy: views need alignment
    result[name] = {type, dims: entry.shape, data: new View(aligned.buffer, 0, count)};
  }
  return result;
}

module.exports = {readSafetensors};
