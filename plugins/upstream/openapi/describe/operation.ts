import { isObject } from '../../../../protocol/json.ts'
import type { OperationPlan } from '../plan.ts'
import { ArgumentNames, type NamedOperation, type ToolNames } from './names.ts'
import { describeParameters } from './parameters.ts'
import type { References } from './refs.ts'
import { describeBody } from './request-body.ts'
import type { SchemaConverter } from './schema.ts'
import { serverUrlOf } from './servers.ts'
import { swaggerOperation } from './swagger.ts'
import { toolText, type ToolLimits } from './tool.ts'

type Dict = Record<string, unknown>

/** One operation of a description, with the Path Item Object that it belongs to. */
export interface DescribedOperation {
  path: string
  method: string
  operation: Dict
  pathItem: Dict
}

/** The description that operations are compiled from, and what is shared between them. */
interface OperationContext {
  document: Dict
  /** The document is Swagger 2.0. */
  isSwagger: boolean
  refs: References
  schemas: SchemaConverter
  names: ToolNames
  toolLimits: ToolLimits
  /** The URL that relative servers are resolved against. */
  baseUrl: string | undefined
}

/** An operation as a tool. `tool` is its JSON text. */
interface CompiledOperation { plan: OperationPlan, tool: string, name: string }

export const namedOperation = ({ operation: { operationId }, method, path }: DescribedOperation): NamedOperation =>
  ({ operationId, method: method.toUpperCase(), path })

/** Compiles one operation. @throws DescriptionError */
export function compileOperation (context: OperationContext, described: DescribedOperation): CompiledOperation {
  const { document, isSwagger, refs, schemas, names, toolLimits, baseUrl } = context
  const { path, operation, pathItem } = described
  const method = described.method.toUpperCase()
  const given = parametersOf(operation, pathItem, refs)
  const { parameters, requestBody } = isSwagger
    ? swaggerOperation(operation, given, document)
    : { parameters: given, requestBody: refs.resolveObject(operation.requestBody) }
  const argumentNames = new ArgumentNames()
  const { path: template, parameters: describedParameters } = describeParameters(parameters, path, argumentNames, schemas)
  const body = requestBody && describeBody(requestBody, argumentNames, refs, schemas)

  const plan: OperationPlan = { method, path: template, parameters: describedParameters.map(({ parameter }) => parameter) }
  const server = serverUrlOf(operation.servers, baseUrl) ?? serverUrlOf(pathItem.servers, baseUrl)
  if (server !== undefined) plan.server = server
  if (Array.isArray(operation.security) && operation.security.length === 0) plan.anonymous = true
  if (body) plan.body = body.body

  const requiredParameters = plan.parameters.filter(({ required }) => required).map(({ argument }) => argument)
  const properties = describedParameters.map(({ parameter, schema }) => [parameter.argument, schema] as const)
  const tool = toolText({
    method,
    path,
    operation,
    properties: [...properties, ...(body?.properties ?? [])],
    required: [...requiredParameters, ...(body?.required ?? [])],
    additionalProperties: body?.additionalProperties ?? false
  }, schemas, toolLimits)
  // Only now, since an operation that is left out by an error above must not take a name.
  const name = names.assign(namedOperation(described))
  return { plan, name, tool: tool(name) }
}

/** The parameters of an operation and of its path item, resolved. Those of the operation override those of the path item. */
function parametersOf (operation: Dict, pathItem: Dict, refs: References): Dict[] {
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

/** The operations of a Path Item Object, in a fixed order of methods. */
export function operationsOf (path: string, pathItem: Dict): DescribedOperation[] {
  return methods.flatMap((method) => {
    const operation = pathItem[method]
    return isObject(operation) ? [{ path, method, operation, pathItem }] : []
  })
}
