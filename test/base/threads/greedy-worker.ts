import { parentPort } from 'node:worker_threads'

// Some 300 MiB of objects, in small steps: one that takes too much at once ends the process.
const kept: unknown[] = []
for (let step = 0; step < 2_000; step++) kept.push(Array.from({ length: 1_000 }, (_, n) => ({ a: [1, 2, n], b: { c: step } })))
parentPort?.postMessage(kept.length)
