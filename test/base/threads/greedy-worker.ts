import { parentPort } from 'node:worker_threads'

// Some 300 MiB of objects, step by step.
const kept: unknown[] = []
for (let step = 0; step < 20; step++) kept.push(JSON.parse(`[${'{"a":[1,2,3],"b":{"c":"ddddd"}},'.repeat(100_000)}1]`))
parentPort?.postMessage(kept.length)
