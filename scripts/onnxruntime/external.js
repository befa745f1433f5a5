// SPDX-License-Identifier: Apache-2.0
// The files a model's tensors lie in: ONNX Runtime for the web has no file system, it wants their bytes with the model's.
const fs = require('fs');
const path = require('path');

// Which field of which message leads to which message, of those that lead to a tensor (the numbers are onnx.proto's).
const LEADS = {
  model: {7: 'graph', 25: 'function'},
  graph: {1: 'node', 5: 'tensor', 15: 'sparse'},
  function: {7: 'node'},
  node: {5: 'attribute'},
  attribute: {5: 'tensor', 6: 'graph', 10: 'tensor', 11: 'graph', 22: 'sparse', 23: 'sparse'},
  sparse: {1: 'tensor', 2: 'tensor'},
  tensor: {13: 'entry'},
  entry: {},
};

function varint(bytes, at) {
  let value = 0n;
  for (let shift = 0n; at < bytes.length && shift < 70n; shift += 7n) {
    const byte = bytes[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
  throw new Error('no ONNX model: a number is cut');
}

/** Calls see(field, bytes) for every field with a length, and steps over the others. */
function fields(bytes, see) {
  for (let at = 0; at < bytes.length;) {
    let tag, value;
    [tag, at] = varint(bytes, at);
    const kind = Number(tag & 7n);
    if (kind === 0) {
      [, at] = varint(bytes, at);
    } else if (kind === 1 || kind === 5) {
      at += kind === 1 ? 8 : 4;
    } else if (kind === 2) {
      [value, at] = varint(bytes, at);
      if (value > BigInt(bytes.length - at)) throw new Error('no ONNX model: a field is longer than what holds it');
      see(Number(tag >> 3n), bytes.subarray(at, at + Number(value)));
      at += Number(value);
    } else {
      throw new Error(`no ONNX model: wire type ${kind}`);
    }
  }
}

function locations(bytes, message, found) {
  if (message === 'entry') {
    const entry = {};
    fields(bytes, (field, text) => { entry[field] = Buffer.from(text).toString(); });
    if (entry[1] === 'location') found.add(entry[2]);
    return found;
  }
  fields(bytes, (field, inner) => {
    if (field in LEADS[message]) locations(inner, LEADS[message][field], found);
  });
  return found;
}

/** What InferenceSession.create takes as externalData. */
function externalData(model, bytes) {
  return [...locations(bytes, 'model', new Set())].map((location) => {
    if (path.isAbsolute(location) || location.split('/').includes('..')) throw new Error(`external data at "${location}" is outside of the model's folder`);
    return {path: location, data: new Uint8Array(fs.readFileSync(path.join(path.dirname(model), location)))};
  });
}

module.exports = {externalData};
