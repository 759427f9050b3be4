import { isObject } from '../../../../protocol/json.ts'
import { truncate } from '../../../../protocol/text.ts'
import { type CompiledDescription, DescriptionError, type OperationPlan } from '../plan.ts'
import { type ConfiguredParameters, type IsConfigured, isConfiguredIn } from './configured.ts'
import { ArgumentNames, type OperationIdentity, ToolNames } from './names.ts'
import { describeParameters } from './parameters.ts'
import { ReferenceResolver } from './refs.ts'
import { describeBody } from './request-body.ts'
import { SchemaConverter } from './schema.ts'
import { credentialDefaultsOf, serverUrlOf } from './servers.ts'
import { operationFromSwagger, securitySchemesFromSwagger, serversFromSwagger } from './swagger.ts'
import { type ToolTextLimits, createToolTextWriter } from './tool.ts'

type Dict = Record<string, unknown>

interface CompileOptions extends ToolTextLimits {
  /** The URL against which relative server URLs are resolved. */
  baseUrl: string | undefined
  /** The parameters that the configuration sets, which are not arguments of the tools; default: none. */
  configured?: ConfiguredParameters
  /** Max number of operations; the others are omitted, with a warning. */
  operations: number
  /** Max characters of the request plan of one operation; beyond that, the operation is omitted, with a warning. */
  plan: number
  /**
   * Max characters of all tools and plans together; beyond that, the remaining operations are omitted, with a warning.
   */
  total: number
  /** Max number of warnings; the others are counted. */
  warnings: number
  /** Max characters of the server's instructions; longer ones are truncated. */
  instructions: number
}

/** A compiled description before its tools are divided into pages. `tools`: the JSON text of each operation's tool. */
type CompiledTools = Omit<CompiledDescription, 'pages'> & { tools: string[] }

/**
 * Compiles a description into tools, and plans of the requests that they make. Operations that cannot be served are
 * omitted, with a warning.
 * @throws DescriptionError if the document is not an OpenAPI description, or no operation can be served
 */
export function compileDescription (document: Dict, options: CompileOptions): CompiledTools {
  const isSwagger = isSwagger2(document)
  const { paths } = document
  if (!isObject(paths)) throw new DescriptionError('it has no "paths", so there are no operations')
  const refs = new ReferenceResolver(document)
  const compiled = emptyDescription(document, options)
  let omittedWarnings = 0
  const warn = (sentence: string): void => {
    if (compiled.warnings.length < options.warnings) compiled.warnings.push(sentence)
    else omittedWarnings++
  }
  try {
    compiled.serverUrl = serverUrlOf(isSwagger ? serversFromSwagger(document) : serversOf(document), options.baseUrl)
  } catch (error) {
    if (!(error instanceof DescriptionError)) throw error
    warn(error.message)
  }
  const schemes = isSwagger ? securitySchemesFromSwagger(document) : securitySchemesOf(document)
  if (isObject(schemes)) {
    compiled.credentialDefaults =
      credentialDefaultsOf(schemes, document.security, refs, compiled.serverUrl ?? options.baseUrl)
  }
  const { configured = { headers: [], apiKey: undefined, origin: undefined } } = options
  const context = {
    document,
    isConfigured: isConfiguredIn(compiled, configured),
    isSwagger,
    refs,
    schemas: new SchemaConverter(refs, !isSwagger && !versionOf(document).startsWith('3.0')),
    names: new ToolNames(Array.from(eachOperation(paths, refs, () => {}), namedOperation)),
    toolLimits: options,
    baseUrl: options.baseUrl ?? compiled.serverUrl
  }
  let size = 0
  for (const each of eachOperation(paths, refs, warn)) {
    if (compiled.names.length >= options.operations) {
      warn(`only the first ${options.operations} operations are served`)
      break
    }
    try {
      const { plan, tool, name, unplaced } = compileOperation(context, each)
      const planText = JSON.stringify(plan)
      if (planText.length > options.plan) {
        throw new DescriptionError(`the descriptions of its parameters are longer than ${options.plan} characters`)
      }
      size += tool.length + planText.length
      if (size > options.total) {
        const reason = `all tools together would be longer than ${options.total} characters`
        warn(`only the first ${compiled.names.length} operations are served: ${reason}`)
        break
      }
      for (const parameter of unplaced) {
        warn(`${plan.method} ${each.path}: the path does not contain its parameter ${JSON.stringify(parameter)}, ` +
          'which was omitted')
      }
      compiled.names.push(name)
      compiled.tools.push(tool)
      compiled.plans.push(planText)
    } catch (error) {
      if (!(error instanceof DescriptionError)) throw error
      warn(`${each.method.toUpperCase()} ${each.path} was omitted: ${error.message}`)
    }
  }
  if (compiled.names.length === 0) throw new DescriptionError(compiled.warnings[0] ?? 'it has no operations')
  if (omittedWarnings > 0) compiled.warnings.push(`${omittedWarnings} more such warnings`)
  return compiled
}

/** Whether the document is Swagger 2.0 rather than OpenAPI 3. @throws DescriptionError for anything else */
function isSwagger2 (document: Dict): boolean {
  const { openapi, swagger } = document
  if (/^3\.\d/.test(versionOf(document))) return false
  if (swagger === '2.0' || swagger === 2) return true
  if (openapi === undefined && swagger === undefined) {
    throw new DescriptionError('it is not an OpenAPI description: it has neither "openapi" nor "swagger"')
  }
  throw new DescriptionError(
    `it is of version ${JSON.stringify(openapi ?? swagger)}; OpenAPI 3.0, 3.1 and Swagger 2.0 are supported`
  )
}

/**
 * Returns the OpenAPI version; empty if there is none. In YAML, an unquoted 3.1 or 3.0 is a number, and 3.0 equals 3.
 */
const versionOf = ({ openapi }: Dict): string =>
  typeof openapi === 'number' ? openapi.toFixed(1) : typeof openapi === 'string' ? openapi.trim() : ''

/** Creates a compiled description from the document's Info Object, still without operations. */
function emptyDescription (document: Dict, options: CompileOptions): CompiledTools {
  const info = isObject(document.info) ? document.info : {}
  const description = typeof info.description === 'string' ? info.description.trim() : ''
  return {
    title: textOf(info.title),
    version: textOf(info.version),
    instructions: description === '' ? undefined : truncate(description, options.instructions),
    serverUrl: undefined,
    credentialDefaults: {},
    names: [],
    tools: [],
    plans: [],
    warnings: []
  }
}

/**
 * Returns a title or version as text. In YAML, an unquoted version such as 1.5, or a title such as 2024, is a number.
 */
const textOf = (value: unknown): string => typeof value === 'string' || typeof value === 'number' ? String(value) : ''

const serversOf = ({ servers }: Dict): unknown[] =>
  Array.isArray(servers) && servers.length > 0 ? servers : [{ url: '/' }]

const securitySchemesOf = ({ components }: Dict): unknown => isObject(components) ? components.securitySchemes : {}

function * eachOperation (
  paths: Dict, refs: ReferenceResolver, warn: (sentence: string) => void
): Iterable<DescribedOperation> {
  for (const [path, given] of Object.entries(paths)) {
    if (!path.startsWith('/')) {
      if (!path.startsWith('x-')) warn(`the path ${JSON.stringify(path)} was omitted: it must begin with a slash`)
      continue
    }
    try {
      const pathItem = refs.resolveObject(given)
      if (pathItem) yield * operationsOf(path, pathItem)
    } catch (error) {
      if (!(error instanceof DescriptionError)) throw error
      warn(`the path ${path} was omitted: ${error.message}`)
    }
  }
}

/** One operation of a description, with the Path Item Object that it belongs to. */
interface DescribedOperation {
  path: string
  method: string
  operation: Dict
  pathItem: Dict
}

/** The description from which operations are compiled, and the state that its operations share. */
interface OperationContext {
  document: Dict
  /** Whether the document is Swagger 2.0. */
  isSwagger: boolean
  isConfigured: IsConfigured
  refs: ReferenceResolver
  schemas: SchemaConverter
  names: ToolNames
  toolLimits: ToolTextLimits
  /** The URL against which relative server URLs are resolved. */
  baseUrl: string | undefined
}

/** A compiled operation. `tool`: the tool's JSON text; `unplaced`: path parameters that the path does not contain. */
interface CompiledOperation { plan: OperationPlan, tool: string, name: string, unplaced: string[] }

const namedOperation = ({ operation: { operationId }, method, path }: DescribedOperation): OperationIdentity =>
  ({ operationId, method: method.toUpperCase(), path })

/** Compiles one operation. @throws DescriptionError */
function compileOperation (context: OperationContext, described: DescribedOperation): CompiledOperation {
  const { document, isSwagger, isConfigured, refs, schemas, names, toolLimits, baseUrl } = context
  const { path, operation, pathItem } = described
  const method = described.method.toUpperCase()
  const plan: OperationPlan = { method, path, parameters: [] }
  const server = serverUrlOf(operation.servers, baseUrl) ?? serverUrlOf(pathItem.servers, baseUrl)
  if (server !== undefined) plan.server = server
  if (Array.isArray(operation.security) && operation.security.length === 0) plan.anonymous = true
  const given = parametersOf(operation, pathItem, refs).filter((parameter) => !isConfigured(parameter, plan))
  const { parameters, requestBody } = isSwagger
    ? operationFromSwagger(operation, given, document)
    : { parameters: given, requestBody: refs.resolveObject(operation.requestBody) }
  const argumentNames = new ArgumentNames()
  const { path: template, parameters: describedParameters, unplaced } =
    describeParameters(parameters, path, argumentNames, schemas)
  const body = requestBody && describeBody(requestBody, argumentNames, refs, schemas)
  plan.path = template
  plan.parameters = describedParameters.map(({ parameter }) => parameter)
  if (body) plan.body = body.body

  const requiredParameters = plan.parameters.filter(({ required }) => required).map(({ argument }) => argument)
  const properties = describedParameters.map(({ parameter, schema }) => [parameter.argument, schema] as const)
  const tool = createToolTextWriter({
    method,
    path,
    operation,
    properties: [...properties, ...(body?.properties ?? [])],
    required: [...requiredParameters, ...(body?.required ?? [])],
    additionalProperties: body?.additionalProperties ?? false
  }, schemas, toolLimits)
  // The name is assigned last: an operation that cannot be compiled must not take a name.
  const name = names.assign(namedOperation(described))
  return { plan, name, tool: tool(name), unplaced }
}

/** Returns the parameters of an operation, and those of its path item that are not overridden; all are resolved. */
function parametersOf (operation: Dict, pathItem: Dict, refs: ReferenceResolver): Dict[] {
  const parameters = new Map<string, Dict>()
  for (const list of [pathItem.parameters, operation.parameters]) {
    for (const each of Array.isArray(list) ? list : []) {
      const parameter = refs.resolveObject(each)
      if (parameter) parameters.set(JSON.stringify([parameter.in, parameter.name]), parameter)
    }
  }
  return [...parameters.values()]
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query']

/** Returns the operations of a Path Item Object, in a fixed order of methods. */
function operationsOf (path: string, pathItem: Dict): DescribedOperation[] {
  return methods.flatMap((method) => {
    const operation = pathItem[method]
    return isObject(operation) ? [{ path, method, operation, pathItem }] : []
  })
}
