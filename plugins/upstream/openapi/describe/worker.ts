// The worker thread's module for `readDescription`. Parsing and compiling a large description takes much time and
// memory.
import { DescriptionError, type CompiledDescription } from '../plan.ts'
import { compileDescription } from './compile.ts'
import type { ConfiguredParameters } from './configured.ts'
import { parseDocument } from './document.ts'
import { upstreamLimits } from '../../limits.ts'

/** What the worker thread is to read. */
export interface ReadTask {
  /** The bytes of the document, in JSON or YAML. */
  readonly document: Uint8Array
  /** The URL against which relative server URLs are resolved. */
  readonly baseUrl: string | undefined
  /** The parameters that the configuration sets, which are not arguments of the tools; default: none. */
  readonly configured?: ConfiguredParameters
}

/** The compiled description, or the reason why the document cannot be used. */
export type ReadResult = { readonly compiled: CompiledDescription } | { readonly problem: string }

const { values, characters, depth, schema, plan, operations, total, warnings, instructions } = upstreamLimits.openapi
const compileLimits = {
  schema, plan, operations, total, warnings, instructions, description: upstreamLimits.description
}

/** Parses and compiles a description. Called by the worker pool. */
export function run ({ document, baseUrl, configured }: ReadTask): ReadResult {
  try {
    const parsed = parseDocument(new TextDecoder().decode(document), { values, characters, depth })
    const { tools, ...compiled } = compileDescription(parsed, { baseUrl, configured, ...compileLimits })
    return { compiled: { ...compiled, pages: pagesOf(tools) } }
  } catch (error) {
    if (error instanceof DescriptionError) return { problem: error.message }
    if (error instanceof RangeError) return { problem: 'it is nested too deeply to be read' }
    throw error
  }
}

/**
 * Divides tools into pages: results of `tools/list`, as JSON texts. Pages are small, since each is read in one step.
 */
function pagesOf (tools: readonly string[]): string[] {
  const pages: string[][] = []
  let size = Infinity
  for (const tool of tools) {
    if (size >= upstreamLimits.openapi.page) {
      pages.push([])
      size = 0
    }
    pages.at(-1)?.push(tool)
    size += tool.length
  }
  return pages.map((page, at) =>
    `{"tools":[${page.join(',')}]${at + 1 < pages.length ? `,"nextCursor":"${at + 1}"` : ''}}`)
}
