// The worker thread that reads descriptions: parsing and compiling a large one takes long, and much memory.
import { parentPort } from 'node:worker_threads'
import { limits } from '../../../base/limits/index.ts'
import { giveWay } from '../../../base/threads/index.ts'
import type { CompiledDescription } from '../plan.ts'
import { DescriptionError } from '../problems.ts'
import { compile, type Compiled } from './compile.ts'
import { parseDocument } from './document.ts'
import { joined, type JoinedTexts } from './joined-texts.ts'

/** A document to read. */
export interface ThreadTask {
  document: Uint8Array
  /** The URL that relative servers are resolved against. */
  baseUrl: string | undefined
}

/** A part of the result, which may have megabytes: the next page, and the plans of its tools. */
export interface ReadPart { page: string, plans: JoinedTexts }
/** The first answer to a task: the description without its pages and plans, which come in parts, each when it is asked for. */
export type ReadResult = { compiled: CompiledDescription } | { problem: string }
/** Asks for the next part. */
export const more = 'more'

giveWay()

const { values, depth, schema, plan, operations, total, warnings, instructions } = limits.openapi
const documentLimits = { values, depth }
const compileLimits = { schema, plan, operations, total, warnings, instructions, description: limits.description }

function read ({ document, baseUrl }: ThreadTask): Compiled {
  return compile(parseDocument(new TextDecoder().decode(document), documentLimits), { baseUrl, ...compileLimits })
}

function resultOf (task: ThreadTask): { compiled: Compiled } | { problem: string } {
  try {
    return { compiled: read(task) }
  } catch (error) {
    if (error instanceof DescriptionError) return { problem: error.message }
    if (error instanceof RangeError) return { problem: 'it is nested too deeply to be read' }
    throw error
  }
}

/** The tools and plans that the gateway has not asked for yet, and the index of the page that was sent last. */
let left: { tools: string[], plans: string[], index: number } = { tools: [], plans: [], index: 0 }

/** The next page of `tools/list`, and the plans of its tools. The gateway reads each page in one step, so pages are small. */
function nextPart (): ReadPart {
  const { tools, plans } = left
  let size = 0
  let count = 0
  while (count < tools.length && (count === 0 || size < limits.openapi.page)) {
    size += (tools[count]?.length ?? 0) + (plans[count]?.length ?? 0)
    count++
  }
  const elements = tools.splice(0, count).join(',')
  const next = tools.length === 0 ? '' : `,"nextCursor":"${++left.index}"`
  return { page: `{"tools":[${elements}]${next}}`, plans: joined(plans.splice(0, count)) }
}

function firstAnswer (task: ThreadTask): ReadResult {
  const result = resultOf(task)
  if ('problem' in result) return result
  const { tools, plans, ...compiled } = result.compiled
  left = { tools, plans, index: 0 }
  return { compiled: { ...compiled, plans: [], pages: [] } }
}

parentPort?.on('message', (task: ThreadTask | typeof more) => {
  parentPort?.postMessage(task === more ? nextPart() : firstAnswer(task))
})
