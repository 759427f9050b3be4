import { parentPort } from 'node:worker_threads'
import { limits } from '../../../limits/index.ts'
import { compile } from './compile.ts'
import { checkLimits, parseDocument } from './document.ts'
import type { CompiledDescription } from '../plan.ts'
import { DescriptionError } from '../problems.ts'

// Reads descriptions in a thread of its own, where each may take its time and its memory.

/** What is read: the bytes of a document, or a value from the configuration. */
export interface ReadTask { document: Uint8Array | string | object, from: string | undefined }
export type ReadResult = { compiled: CompiledDescription } | { problem: string }

const { values, depth, schema, operations, total, warnings, instructions } = limits.openapi
const bounds = { schema, operations, total, warnings, instructions, description: limits.description }

function read ({ document, from }: ReadTask): CompiledDescription {
  if (typeof document === 'object' && !(document instanceof Uint8Array)) checkLimits(document, { values, depth })
  const value =
    document instanceof Uint8Array
      ? parseDocument(new TextDecoder().decode(document), { values, depth })
      : typeof document === 'string'
        ? parseDocument(document, { values, depth })
        : document
  return compile(value as Record<string, unknown>, { from, ...bounds })
}

function answer (task: ReadTask): ReadResult {
  try {
    return { compiled: read(task) }
  } catch (error) {
    if (error instanceof DescriptionError) return { problem: error.message }
    if (error instanceof RangeError) return { problem: 'it is nested too deeply to be read' }
    throw error
  }
}

parentPort?.on('message', (task: ReadTask) => { parentPort?.postMessage(answer(task)) })
