// Times one model after another with ONNX Runtime: reads "model.onnx inputs.json" lines, prints wall and CPU seconds.
//   node ort.js THREADS
const fs = require('fs');
const readline = require('readline');
const ort = require('onnxruntime-node');

const threads = Number(process.argv[2]);
const sessions = new Map();

async function session(model) {
  if (!sessions.has(model)) {
    sessions.clear();  // one at a time: they are large
    sessions.set(model, await ort.InferenceSession.create(model, {intraOpNumThreads: threads, interOpNumThreads: 1}));
  }
  return sessions.get(model);
}

function feeds(path, one) {
  const result = {};
  JSON.parse(fs.readFileSync(path)).forEach((input, i) => {
    const count = input.shape.reduce((a, b) => a * b, 1);
    const data = input.dtype === 'int64' ? new BigInt64Array(count) : new Float32Array(count).map((_, k) => Math.sin(k));
    result[one.inputNames[i]] = new ort.Tensor(input.dtype, data, input.shape);
  });
  return result;
}

async function main() {
  for await (const line of readline.createInterface({input: process.stdin})) {
    const [model, inputs] = line.split(' ');
    const one = await session(model);
    const given = feeds(inputs, one);
    const times = [];
    const cpu = [];
    await one.run(given);
    for (let total = 0; total < 0.1 || times.length < 3;) {
      const start = process.hrtime.bigint();
      const before = process.cpuUsage();
      await one.run(given);
      const used = process.cpuUsage(before);
      cpu.push((used.user + used.system) * 1e-6);
      times.push(Number(process.hrtime.bigint() - start) * 1e-9);
      total += times[times.length - 1];
    }
    const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
    console.log(median(times), median(cpu));
  }
}

main();
