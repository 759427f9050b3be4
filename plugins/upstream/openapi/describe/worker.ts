// The worker thread that reads descriptions: parsing and compiling a large one takes long, and much memory.
import { parentPort } from 'node:worker_threads'
import { limits } from '../../../limits/index.ts'
import { giveWay } from '../../../threads/give-way.ts'
import type { CompiledDescription } from '../plan.ts'
import { DescriptionError } from '../problems.ts'
import { compile } from './compile.ts'
import { checkLimits, parseDocument } from './document.ts'
import { joined, type JoinedTexts } from './joined-texts.ts'

/** A document to read: its bytes or its text, or its value from the configuration. */
export interface ReadTask {
  document: Uint8Array | string | object
  /** The URL that relative servers are resolved against. */
  baseUrl: string | undefined
}

/** Parts of the result: the next of `tools` and `plans`, which may have megabytes. */
export interface ReadPart { tools: JoinedTexts, plans: JoinedTexts }
/** The first answer to a task; of a description without its tools and plans, which come in parts, each when it is asked for. */
export type ReadResult = { compiled: CompiledDescription } | { problem: string }
/** Asks for the next part. */
export const more = 'more'

giveWay()

const { values, depth, schema, operations, total, warnings, instructions } = limits.openapi
const documentLimits = { values, depth }
const compileLimits = { schema, operations, total, warnings, instructions, description: limits.description }

function read ({ document, baseUrl }: ReadTask): CompiledDescription {
  return compile(toValue(document), { baseUrl, ...compileLimits })
}

function toValue (document: ReadTask['document']): Record<string, unknown> {
  if (typeof document === 'string') return parseDocument(document, documentLimits)
  if (document instanceof Uint8Array) return parseDocument(new TextDecoder().decode(document), documentLimits)
  checkLimits(document, documentLimits)
  return document as Record<string, unknown>
}

function resultOf (task: ReadTask): ReadResult {
  try {
    return { compiled: read(task) }
  } catch (error) {
    if (error instanceof DescriptionError) return { problem: error.message }
    if (error instanceof RangeError) return { problem: 'it is nested too deeply to be read' }
    throw error
  }
}

/** Characters of a part: what receives it makes it in one piece. */
const partSize = 256 * 1024
let left: { tools: string[], plans: string[] } = { tools: [], plans: [] }

function nextPart (): ReadPart {
  const { tools, plans } = left
  let size = 0
  let count = 0
  while (count < tools.length && (count === 0 || size < partSize)) size += (tools[count]?.length ?? 0) + (plans[count++]?.length ?? 0)
  return { tools: joined(tools.splice(0, count)), plans: joined(plans.splice(0, count)) }
}

function firstAnswer (task: ReadTask): ReadResult {
  const result = resultOf(task)
  if ('problem' in result) return result
  const { tools, plans, ...compiled } = result.compiled
  left = { tools, plans }
  return { compiled: { ...compiled, tools: [], plans: [] } }
}

parentPort?.on('message', (task: ReadTask | typeof more) => {
  parentPort?.postMessage(task === more ? nextPart() : firstAnswer(task))
})
