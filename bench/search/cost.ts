import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ToolIndex, type SearchableTool } from '../../plugins/extensions/smart-routing/words/index.ts'
import { rankedBy } from './ranked.ts'
import { quantile } from '../statistics.ts'

/**
 * Times in ms, of CPU but for `build` and the holds: the longest times that the event loop was held. `changed`: an update in which one
 * server changed. `heap`: with the arrays beside it, in MB.
 */
export interface Cost {
  buildCpu: number
  build: number
  hold: number
  p50: number
  p99: number
  changed: number
  changedHold: number
  heap: number
}

/** Measures the CPU time and memory of an index of the tools and of the static model, over all questions in turn. */
export async function measureCost (tools: SearchableTool[], questions: string[], rounds: number): Promise<Cost> {
  const collect = garbageCollector()
  // What is loaded once, and what the compiler learns, is not what an index costs.
  await new ToolIndex().update(tools.slice(0, 500).map((tool) => ({ ...tool })))
  collect()
  const before = memory()
  const index = new ToolIndex()
  const built = await watched(async () => { await index.update(tools) })
  const search = rankedBy(index, tools)
  await search('the first question loads the model', 10)
  collect()
  const heap = (memory() - before) / 2 ** 20
  const times: number[] = []
  for (let round = 0; round < rounds + 1; round++) {
    for (const question of questions) {
      const cpu = cpuTime()
      await search(question, 10)
      if (round > 0) times.push(cpuTime() - cpu)
    }
  }
  times.sort((a, b) => a - b)
  const changes = []
  let current = tools
  for (let round = 0; round < 9; round++) {
    const server = tools[round * 100 % tools.length]?.server
    current = current.map((tool) => tool.server === server ? { ...tool, description: `changed ${tool.description ?? ''}` } : tool)
    changes.push(await watched(async () => { await index.update(current) }))
  }
  const middle = (values: number[]): number => quantile(values.sort((a, b) => a - b), 0.5)
  return {
    buildCpu: built.cpu,
    build: built.wall,
    hold: built.hold,
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    changed: middle(changes.map(({ cpu }) => cpu)),
    changedHold: middle(changes.map(({ hold }) => hold)),
    heap
  }
}

async function watched (work: () => Promise<void>): Promise<{ cpu: number, wall: number, hold: number }> {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  await new Promise((resolve) => { setTimeout(resolve, 20) })
  delays.reset()
  const [cpu, wall] = [cpuTime(), performance.now()]
  await work()
  const took = { cpu: cpuTime() - cpu, wall: performance.now() - wall }
  await new Promise((resolve) => { setTimeout(resolve, 20) })
  delays.disable()
  return { ...took, hold: delays.max / 1e6 }
}

/** The heap and the arrays of numbers outside it, in bytes. */
function memory (): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** CPU of the process so far, in ms. */
function cpuTime (): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

function garbageCollector (): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}
