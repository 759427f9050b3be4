import { isObject, elementsOf, memberOf, parseSmallMember, withMembers } from '../json.ts'
import { headerNames } from './envelope.ts'

// Tool arguments that are repeated in HTTP headers (MCP 2026-07-28, "Custom Headers from Tool Parameters").

/** An HTTP header that repeats an argument. */
export interface ParamHeader {
  /** The header's name, in lower case. */
  readonly header: string
  /** The path to the argument: a chain of `properties` keys. */
  readonly path: readonly string[]
}

const noHeaders: readonly ParamHeader[] = []
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const types = new Set(['string', 'integer', 'boolean'])
/** Keywords whose values are data, not schemas. */
const dataKeywords = new Set(['default', 'const', 'enum', 'examples'])
/** Keywords whose values are maps of schemas. */
const mapKeywords = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])
const annotation = 'x-mcp-header'
/** Max nesting depth of a schema with annotations. A deeper schema is treated like an invalid annotation. */
const maxDepth = 200

/**
 * Reads which headers repeat a tool's arguments.
 * @param toolText the tool, as JSON text
 * @returns undefined for an invalid annotation: clients must not use the tool over HTTP
 */
export function parseParamHeaders (toolText: string): readonly ParamHeader[] | undefined {
  if (!toolText.includes(annotation)) return noHeaders
  const { inputSchema } = JSON.parse(toolText) as { inputSchema?: unknown }
  const found: ParamHeader[] = []
  if (!collect(inputSchema, [], found)) return undefined
  return new Set(found.map(({ header }) => header)).size === found.length ? found : undefined
}

/**
 * Collects the annotated parameters of a schema.
 * @param path the path to this schema; undefined if it is not reachable through `properties` alone
 * @returns false for an invalid annotation
 */
function collect (schema: unknown, path: readonly string[] | undefined, found: ParamHeader[], depth = 0): boolean {
  if (Array.isArray(schema)) return schema.every((each) => collect(each, undefined, found, depth + 1))
  if (!isObject(schema)) return true
  if (depth > maxDepth) return false
  if (Object.hasOwn(schema, annotation) && schema[annotation] !== null) {
    const name = schema[annotation]
    if (path === undefined || path.length === 0 || typeof name !== 'string' || !token.test(name)) return false
    if (typeof schema.type !== 'string' || !types.has(schema.type)) return false
    found.push({ header: `${headerNames.param}${name.toLowerCase()}`, path })
  }
  return Object.entries(schema).every(([keyword, value]) => {
    if (keyword === annotation || dataKeywords.has(keyword)) return true
    if (!mapKeywords.has(keyword) || !isObject(value)) return collect(value, undefined, found, depth + 1)
    const isReachable = keyword === 'properties' && path !== undefined
    return Object.entries(value).every(([key, each]) =>
      collect(each, isReachable ? [...path, key] : undefined, found, depth + 1))
  })
}

/** An argument value that a header can repeat. */
export type ParamHeaderValue = string | boolean | number

/** Returns an argument as text, not yet encoded for a header; undefined if a header cannot repeat it. */
export function argumentText (args: unknown, path: readonly string[]): string | undefined {
  const value = argumentAt(args, path)
  return value === undefined ? undefined : String(value)
}

/** Returns the value of an argument; undefined if it is missing or a header cannot repeat it. */
export function argumentAt (args: unknown, path: readonly string[]): ParamHeaderValue | undefined {
  let value = args
  for (const key of path) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined
    value = value[key]
  }
  if (typeof value === 'string' || typeof value === 'boolean') return value
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined
}

/**
 * The headers that repeat arguments, for all tools of one server. All connections to the server share this object,
 * since not every connection reads the lists. While the tools are read again, the former headers apply to tools that
 * have not been read yet.
 */
export class ToolParamHeaders {
  #current = new Map<string, readonly ParamHeader[]>()
  #previous = this.#current

  /** Returns the headers that repeat the arguments of a tool; undefined if it has none. */
  of (tool: string): readonly ParamHeader[] | undefined { return this.#current.get(tool) ?? this.#previous.get(tool) }

  /**
   * Records the tools of one page.
   * @param result the result of `tools/list`, as JSON text
   * @param isFirst whether it is the first page of a read
   * @param warn called with a sentence for each tool that is removed
   * @returns the result without tools that must not be used over HTTP ("Custom Headers from Tool Parameters")
   */
  record (result: string, isFirst: boolean, warn: (sentence: string) => void): string {
    if (isFirst) {
      this.#previous = this.#current
      this.#current = new Map()
    }
    const shown = result.includes(annotation) ? this.#recordPage(result, warn) : result
    const isLast = this.#previous.size > 0 && (memberOf(result, 'nextCursor') ?? 'null') === 'null'
    if (isLast) this.#previous = this.#current
    return shown
  }

  #recordPage (result: string, warn: (sentence: string) => void): string {
    const tools = elementsOf(memberOf(result, 'tools') ?? '[]')
    const valid = tools.filter((tool) => {
      if (!tool.includes(annotation)) return true
      const name = String(parseSmallMember(tool, 'name'))
      const headers = parseParamHeaders(tool)
      if (headers) this.#current.set(name, headers)
      else warn(`tools: ${JSON.stringify(name)} was omitted: an ${annotation} in its inputSchema is not valid`)
      return headers !== undefined
    })
    return valid.length === tools.length ? result : withMembers(result, { tools: `[${valid.join(',')}]` })
  }
}
