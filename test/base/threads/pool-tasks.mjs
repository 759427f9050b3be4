// Tasks of pool.test.ts.
import { resourceLimits, threadId } from 'node:worker_threads'

export async function run (task) {
  if (task === 'thread') return threadId
  if (task === 'limits') return resourceLimits
  if (task === 'endless') for (;;);
  if (task === 'throws') throw new Error('of its own')
  if (task === 'later') {
    setImmediate(() => { throw new Error('not caught') })
    await new Promise(() => {})
  }
  if (task === 'greedy') {
    const kept = []
    for (;;) kept.push(JSON.parse(`[${'{"a":[1,2,3],"b":{"c":"ddddd"}},'.repeat(100_000)}1]`))
  }
  // Waits until the gate is open.
  if (task instanceof Int32Array) Atomics.wait(task, 0, 0)
  return task
}
