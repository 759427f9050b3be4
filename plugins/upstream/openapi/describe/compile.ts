import { isObject } from '../../../../protocol/json.ts'
import { truncate } from '../../../../protocol/text.ts'
import type { CompiledDescription } from '../plan.ts'
import { DescriptionError } from '../problems.ts'
import { ToolNames } from './names.ts'
import { compileOperation, namedOperation, operationsOf, type DescribedOperation } from './operation.ts'
import { References } from './refs.ts'
import { SchemaConverter } from './schema.ts'
import { securityDefaultsOf } from './security.ts'
import { serverUrlOf } from './servers.ts'
import { swaggerSchemes, swaggerServers } from './swagger.ts'
import type { ToolLimits } from './tool.ts'

type Dict = Record<string, unknown>

interface CompileOptions extends ToolLimits {
  /** The URL that relative servers are resolved against. */
  baseUrl: string | undefined
  /** Max operations; the others are left out, with a warning. */
  operations: number
  /** Max characters of what is kept of one operation to call it; beyond: it is left out, with a warning. */
  plan: number
  /** Max characters of all tools and plans together; the tools beyond are left out, with a warning. */
  total: number
  /** Max warnings; the others are counted. */
  warnings: number
  /** Max characters of the instructions. */
  instructions: number
}

/** A description with a tool, as JSON text, for each operation. */
export type Compiled = Omit<CompiledDescription, 'pages'> & { tools: string[] }

/**
 * Compiles a description into tools and plans. An operation that cannot be served is left out with a warning; the others are served.
 * @throws DescriptionError where the document is not a description, or no operation is left
 */
export function compile (document: Dict, options: CompileOptions): Compiled {
  const isSwagger = isSwagger2(document)
  const { paths } = document
  if (!isObject(paths)) throw new DescriptionError('it has no "paths", so there are no operations')
  const refs = new References(document)
  const compiled = emptyDescription(document, options)
  let omittedWarnings = 0
  const warn = (sentence: string): void => {
    if (compiled.warnings.length < options.warnings) compiled.warnings.push(sentence)
    else omittedWarnings++
  }
  try {
    compiled.serverUrl = serverUrlOf(isSwagger ? swaggerServers(document) : serversOf(document), options.baseUrl)
  } catch (error) {
    if (!(error instanceof DescriptionError)) throw error
    warn(error.message)
  }
  const schemes = isSwagger ? swaggerSchemes(document) : securitySchemesOf(document)
  if (isObject(schemes)) {
    compiled.securityDefaults = securityDefaultsOf(schemes, document.security, refs, compiled.serverUrl ?? options.baseUrl)
  }
  const context = {
    document,
    isSwagger,
    refs,
    schemas: new SchemaConverter(refs, !isSwagger && !versionOf(document).startsWith('3.0')),
    names: new ToolNames(Array.from(allOperations(paths, refs, () => {}), namedOperation)),
    toolLimits: options,
    baseUrl: options.baseUrl ?? compiled.serverUrl
  }
  let size = 0
  for (const each of allOperations(paths, refs, warn)) {
    if (compiled.names.length >= options.operations) {
      warn(`only the first ${options.operations} operations are served`)
      break
    }
    try {
      const { plan, tool, name } = compileOperation(context, each)
      const planText = JSON.stringify(plan)
      if (planText.length > options.plan) {
        throw new DescriptionError(`the names and forms of its parameters are longer than ${options.plan} characters`)
      }
      size += tool.length + planText.length
      if (size > options.total) {
        const reason = `the tools of all would be longer than ${options.total} characters`
        warn(`only the first ${compiled.names.length} operations are served: ${reason}`)
        break
      }
      compiled.names.push(name)
      compiled.tools.push(tool)
      compiled.plans.push(planText)
    } catch (error) {
      if (!(error instanceof DescriptionError)) throw error
      warn(`${each.method.toUpperCase()} ${each.path} is left out: ${error.message}`)
    }
  }
  if (compiled.names.length === 0) throw new DescriptionError(compiled.warnings[0] ?? 'it has no operations')
  if (omittedWarnings > 0) compiled.warnings.push(`${omittedWarnings} more such warnings`)
  return compiled
}

/** True for Swagger 2.0, false for OpenAPI 3. @throws DescriptionError for anything else */
function isSwagger2 (document: Dict): boolean {
  const { openapi, swagger } = document
  if (/^3\.\d/.test(versionOf(document))) return false
  if (swagger === '2.0' || swagger === 2) return true
  if (openapi === undefined && swagger === undefined) {
    throw new DescriptionError('it is not an OpenAPI description: it has neither "openapi" nor "swagger"')
  }
  throw new DescriptionError(`it is of version ${JSON.stringify(openapi ?? swagger)}; OpenAPI 3.0, 3.1 and Swagger 2.0 are understood`)
}

/** The OpenAPI version; empty: there is none. In YAML 3.1 and 3.0 without quotes are numbers, and the second one is 3. */
const versionOf = ({ openapi }: Dict): string =>
  typeof openapi === 'number' ? openapi.toFixed(1) : typeof openapi === 'string' ? openapi.trim() : ''

/** A compiled description with the Info Object of the document, and without operations. */
function emptyDescription (document: Dict, options: CompileOptions): Compiled {
  const info = isObject(document.info) ? document.info : {}
  const description = typeof info.description === 'string' ? info.description.trim() : ''
  return {
    title: textOf(info.title),
    version: textOf(info.version),
    instructions: description === '' ? undefined : truncate(description, options.instructions),
    serverUrl: undefined,
    securityDefaults: {},
    names: [],
    tools: [],
    plans: [],
    warnings: []
  }
}

/** In YAML a version such as 1.0 is a number, and so is a title such as 2024. */
const textOf = (value: unknown): string => typeof value === 'string' || typeof value === 'number' ? String(value) : ''

const serversOf = ({ servers }: Dict): unknown[] => Array.isArray(servers) && servers.length > 0 ? servers : [{ url: '/' }]

const securitySchemesOf = ({ components }: Dict): unknown => isObject(components) ? components.securitySchemes : {}

function * allOperations (paths: Dict, refs: References, warn: (sentence: string) => void): Iterable<DescribedOperation> {
  for (const [path, given] of Object.entries(paths)) {
    if (!path.startsWith('/')) {
      if (!path.startsWith('x-')) warn(`the path ${JSON.stringify(path)} is left out: it must begin with a slash`)
      continue
    }
    try {
      const pathItem = refs.resolveObject(given)
      if (pathItem) yield * operationsOf(path, pathItem)
    } catch (error) {
      if (!(error instanceof DescriptionError)) throw error
      warn(`the path ${path} is left out: ${error.message}`)
    }
  }
}
