import { isObject } from '../../../../protocol/json.ts'
import { cut } from '../../../../protocol/text.ts'
import { describeBody } from './media.ts'
import { ArgumentNames, ToolNames } from './names.ts'
import { describeParameters } from './parameters.ts'
import type { CompiledDescription, OperationPlan, SecurityDefaults } from '../plan.ts'
import { DescriptionError } from '../problems.ts'
import { References } from './refs.ts'
import { SchemaConverter } from './schema.ts'
import { serverUrlOf } from './servers.ts'
import { swaggerOperation, swaggerSchemes, swaggerServers } from './swagger.ts'
import { toolText, type ToolLimits } from './tool.ts'

type Dict = Record<string, unknown>

export interface CompileOptions extends ToolLimits {
  /** What relative servers are relative to. */
  from: string | undefined
  /** Operations taken; the rest is left out, with a warning. */
  operations: number
  /** Characters of all tools together; beyond: the rest is left out, with a warning. */
  total: number
  warnings: number
  instructions: number
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query']

/**
 * Folds a description into tools and plans. An operation that cannot be served is left out with a warning; the others are served.
 * @throws DescriptionError when it is none, or when nothing is left of it
 */
export function compile (document: Dict, options: CompileOptions): CompiledDescription {
  const swagger = versionOf(document)
  const refs = new References(document)
  const { paths } = document
  if (!isObject(paths)) throw new DescriptionError('it has no "paths", so there are no operations')
  const schemas = new SchemaConverter(refs, typeof document.openapi === 'string' && !document.openapi.startsWith('3.0'))
  const info = isObject(document.info) ? document.info : {}
  const compiled: CompiledDescription = {
    title: typeof info.title === 'string' ? info.title : '',
    version: typeof info.version === 'string' ? info.version : String(info.version ?? ''),
    instructions:
      typeof info.description === 'string' && info.description.trim() !== ''
        ? cut(info.description.trim(), options.instructions)
        : undefined,
    serverUrl: undefined,
    securityDefaults: {},
    names: [],
    tools: [],
    plans: [],
    warnings: []
  }
  const servers = Array.isArray(document.servers) && document.servers.length > 0 ? document.servers : [{ url: '/' }]
  const names = new ToolNames()
  let omitted = 0
  const warn = (sentence: string): void => {
    if (compiled.warnings.length < options.warnings) compiled.warnings.push(sentence)
    else omitted++
  }
  try {
    compiled.serverUrl = serverUrlOf(swagger ? swaggerServers(document) : servers, options.from)
  } catch (error) {
    if (!(error instanceof DescriptionError)) throw error
    warn(error.message)
  }
  const schemes = swagger ? swaggerSchemes(document) : isObject(document.components) ? document.components.securitySchemes : {}
  if (isObject(schemes)) compiled.securityDefaults = hintsOf(schemes, document.security, refs, compiled.serverUrl ?? options.from)
  let size = 0
  for (const [path, method, operation, item] of operationsOf(paths, refs, warn)) {
    if (compiled.names.length >= options.operations) { warn(`only the first ${options.operations} operations are served`); break }
    try {
      const { plan, tool, name } = operationOf(
        { document, swagger, refs, schemas, names, options, from: options.from ?? compiled.serverUrl },
        path,
        method,
        operation,
        item
      )
      size += tool.length
      if (size > options.total) {
        warn(
          `only the first ${compiled.names.length} operations are served: the tools of all would be longer than ${options.total} characters`
        )
        break
      }
      compiled.names.push(name)
      compiled.tools.push(tool)
      compiled.plans.push(JSON.stringify(plan))
    } catch (error) {
      if (!(error instanceof DescriptionError)) throw error
      warn(`${method.toUpperCase()} ${path} is left out: ${error.message}`)
    }
  }
  if (compiled.names.length === 0) throw new DescriptionError(compiled.warnings[0] ?? 'it has no operations')
  if (omitted > 0) compiled.warnings.push(`${omitted} more such warnings`)
  return compiled
}

/** True for Swagger 2.0. @throws DescriptionError when it is neither that nor OpenAPI 3 */
function versionOf ({ openapi, swagger }: Dict): boolean {
  if (typeof openapi === 'string' && /^3\.\d/.test(openapi)) return false
  if (String(swagger) === '2.0' || swagger === 2) return true
  if (openapi === undefined && swagger === undefined) {
    throw new DescriptionError('it is no OpenAPI description: it has neither "openapi" nor "swagger"')
  }
  throw new DescriptionError(`it is of version ${JSON.stringify(openapi ?? swagger)}; OpenAPI 3.0, 3.1 and Swagger 2.0 are understood`)
}

function * operationsOf (paths: Dict, refs: References, warn: (sentence: string) => void): Iterable<[string, string, Dict, Dict]> {
  for (const [path, given] of Object.entries(paths)) {
    if (!path.startsWith('/')) {
      if (!path.startsWith('x-')) warn(`the path ${JSON.stringify(path)} is left out: it must begin with a slash`)
      continue
    }
    try {
      const item = refs.resolveObject(given)
      if (item) for (const method of methods) if (isObject(item[method])) yield [path, method, item[method], item]
    } catch (error) {
      if (!(error instanceof DescriptionError)) throw error
      warn(`the path ${path} is left out: ${error.message}`)
    }
  }
}

interface Context {
  document: Dict
  swagger: boolean
  refs: References
  schemas: SchemaConverter
  names: ToolNames
  options: CompileOptions
  from: string | undefined
}

function operationOf (
  { document, swagger, refs, schemas, names, options, from }: Context,
  path: string,
  method: string,
  operation: Dict,
  item: Dict
): { plan: OperationPlan; tool: string; name: string } {
  // What an operation says of a parameter counts more than what its path says.
  const given = new Map<string, Dict>()
  for (const list of [item.parameters, operation.parameters]) {
    for (const each of Array.isArray(list) ? list : []) {
      const parameter = refs.resolveObject(each)
      if (parameter) given.set(JSON.stringify([parameter.in, parameter.name]), parameter)
    }
  }
  const { parameters, requestBody } = swagger
    ? swaggerOperation(operation, [...given.values()], document)
    : { parameters: [...given.values()], requestBody: refs.resolveObject(operation.requestBody) }
  const taken = new ArgumentNames()
  const described = describeParameters(parameters, path, taken, schemas)
  const body = requestBody && describeBody(requestBody, taken, refs, schemas)
  const plan: OperationPlan = { method: method.toUpperCase(), path, parameters: described.map(({ parameter }) => parameter) }
  const server = serverUrlOf(operation.servers, from) ?? serverUrlOf(item.servers, from)
  if (server !== undefined) plan.server = server
  if (Array.isArray(operation.security) && operation.security.length === 0) plan.anonymous = true
  if (body) plan.body = body.body
  const parts = {
    method: plan.method,
    path,
    operation,
    properties: [...described.map(({ parameter, schema }) => [parameter.argument, schema] as const), ...(body?.properties ?? [])],
    required: [...plan.parameters.filter(({ required }) => required).map(({ argument }) => argument), ...(body?.required ?? [])],
    open: body?.open ?? false
  }
  // A text may turn out impossible, and then no name must be taken.
  const text = toolText(parts, schemas, options)
  const name = names.assign(operation.operationId, plan.method, path)
  return { plan, name, tool: text(name) }
}

/**
 * What the configuration may leave unsaid: the first scheme of each kind, those that `security` asks for before the others.
 * @param base what relative addresses are relative to
 */
function hintsOf (schemes: Dict, security: unknown, refs: References, base: string | undefined): SecurityDefaults {
  const hints: SecurityDefaults = {}
  const asked = Array.isArray(security) ? security.flatMap((each) => isObject(each) ? Object.keys(each) : []) : []
  const absolute = (url: string): string => URL.canParse(url, base) ? new URL(url, base).href : url
  for (const name of [...asked.filter((each) => Object.hasOwn(schemes, each)), ...Object.keys(schemes)]) {
    let scheme: Dict | undefined
    try { scheme = refs.resolveObject(schemes[name]) } catch { continue }
    if (!scheme) continue
    const { type, name: key, in: place } = scheme
    if (type === 'apiKey' && typeof key === 'string' && (place === 'header' || place === 'query' || place === 'cookie')) {
      hints.apiKey ??= { name: key, in: place }
    }
    if (type === 'openIdConnect' && typeof scheme.openIdConnectUrl === 'string') {
      hints.openIdConnectUrl ??= absolute(scheme.openIdConnectUrl)
    }
    const flow = type === 'oauth2' && isObject(scheme.flows) ? scheme.flows.clientCredentials : undefined
    if (isObject(flow) && typeof flow.tokenUrl === 'string') hints.tokenUrl ??= absolute(flow.tokenUrl)
  }
  return hints
}
