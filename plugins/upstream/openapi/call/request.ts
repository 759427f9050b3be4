import { memberOf } from '../../../../protocol/json.ts'
import { toHeaderValue } from '../http-syntax.ts'
import type { OperationPlan, Parameter } from '../plan.ts'
import { ArgumentError } from '../plan.ts'
import { encodeBody } from './body.ts'
import { memberJsonTexts, expandParameter, toNameValuePairs } from './values.ts'

/** A request to an HTTP API, to which credentials and configured headers can be added. */
export interface ApiRequest {
  method: string
  origin: string
  /** The path, percent-encoded, without the query. */
  path: string
  /** The pairs `name=value` of the query, percent-encoded. */
  query: string[]
  /** The pairs of `query` that come from the server's URL or the credentials, and may be secret. */
  configuredQuery: string[]
  /** The headers, by name in lower case. */
  headers: Map<string, string>
  cookies: string[]
  body: Buffer | undefined
}

/** The arguments of a call that are not used yet, as JSON texts by name. */
type Arguments = Map<string, string>

/**
 * Creates the request of an operation from a call's arguments.
 * @param paramsText the `params` of the `tools/call`, as JSON text
 * @param server the URL of the API for this operation
 * @throws ArgumentError if an argument is missing, unknown or invalid
 */
export function toRequest (plan: OperationPlan, paramsText: string, server: string): ApiRequest {
  const args: Arguments = memberJsonTexts(memberOf(paramsText, 'arguments') ?? '{}')
  const query: string[] = []
  const cookies: string[] = []
  const headers = new Map<string, string>()
  const pathValues = new Map<string, string>()
  for (const parameter of plan.parameters) {
    const text = takeArgument(parameter, args)
    if (text === undefined) continue
    const { name, in: location } = parameter
    const value = parameter.json ? JSON.stringify(text) : text
    if (location === 'query') query.push(...toNameValuePairs(name, parameter, value))
    else if (location === 'cookie') cookies.push(...toNameValuePairs(name, parameter, value))
    else if (location === 'header') {
      headers.set(name.toLowerCase(), headerValue(parameter, expandParameter(parameter, text)))
    } else pathValues.set(name, expandParameter(parameter, text))
  }
  const body = takeBody(plan, args)
  if (args.size > 0) {
    const unknown = [...args.keys()].map((name) => JSON.stringify(name)).join(', ')
    throw new ArgumentError(`The argument ${unknown} does not exist. ${knownArguments(plan)}`)
  }
  if (body) headers.set('content-type', body.contentType)
  const [path, ...pathQuery] = fillPath(plan, pathValues).split('?')
  const url = new URL(server)
  const configuredQuery = url.search.length > 1 ? url.search.slice(1).split('&') : []
  return {
    method: plan.method,
    origin: url.origin,
    path: `${url.pathname.replace(/\/$/, '')}${path}`,
    query: [...configuredQuery, ...pathQuery, ...query],
    configuredQuery,
    headers,
    cookies,
    body: body?.bytes
  }
}

/**
 * Takes a parameter's argument out of the unused arguments.
 * @returns its JSON text; undefined if it is absent or null
 * @throws ArgumentError if it is absent or null, but required
 */
function takeArgument ({ argument, required, in: location }: Parameter, args: Arguments): string | undefined {
  const text = args.get(argument)
  args.delete(argument)
  if (text !== undefined && text !== 'null') return text
  if (required || location === 'path') throw new ArgumentError(`The argument "${argument}" is missing`)
  return undefined
}

function takeBody ({ body }: OperationPlan, args: Arguments): ReturnType<typeof encodeBody> {
  if (!body) return undefined
  const { argument, required: isRequired } = body
  const byArgument = new Map(body.fields.map((field) => [field.argument ?? field.name, field.name]))
  const fieldNames = body.additionalFields ? [...args.keys()] : [...byArgument.keys()]
  const given = new Map<string, string>()
  for (const name of argument === undefined ? fieldNames : [argument]) {
    const text = args.get(name)
    if (text !== undefined) given.set(argument ?? byArgument.get(name) ?? name, text)
    args.delete(name)
  }
  if (argument !== undefined) {
    if (isRequired && given.size === 0) throw new ArgumentError(`The argument "${argument}" is missing`)
  } else if (isRequired || given.size > 0) {
    for (const { name, argument: own = name, required } of body.fields) {
      if (required && !given.has(name)) throw new ArgumentError(`The argument "${own}" is missing`)
    }
  }
  return encodeBody(body, given)
}

function knownArguments ({ parameters, body }: OperationPlan): string {
  const names = parameters.map(({ argument }) => argument)
  if (body?.argument !== undefined) names.push(body.argument)
  else if (body) names.push(...body.fields.map(({ name, argument = name }) => argument))
  return names.length === 0
    ? 'The tool has no arguments'
    : `The arguments are ${names.slice(0, 50).map((name) => JSON.stringify(name)).join(', ')}`
}

/**
 * Fills in the path template.
 * @param values the values of the path parameters, by name, percent-encoded
 * @throws ArgumentError for an empty value, or a value that creates a segment `.` or `..`: it would lead to another
 *   path
 */
function fillPath ({ path }: OperationPlan, values: ReadonlyMap<string, string>): string {
  const filled = path.split(/(\{[^{}]+\})/).map((piece) => {
    if (!piece.startsWith('{')) return encodeLiteral(piece)
    const name = piece.slice(1, -1)
    const value = values.get(name) ?? ''
    if (value === '') throw new ArgumentError(`The argument for "${name}" in the path must not be empty`)
    return value
  }).join('')
  for (const segment of filled.split('?', 1)[0]?.split('/') ?? []) {
    if (/^(\.|%2e){1,2}$/i.test(segment)) {
      throw new ArgumentError(
        `An argument would create the segment ${JSON.stringify(segment)} in the path, which leads to another path`
      )
    }
  }
  return filled
}

/** Percent-encodes a literal part of a path template. Existing percent-encodings are kept. */
const encodeLiteral = (text: string): string =>
  encodeURI(Buffer.from(text).toString())
    .replace(/%25(?=[0-9a-f]{2})/gi, '%')
    .replace(/#/g, '%23')

function headerValue ({ argument }: Parameter, value: string): string {
  const sent = toHeaderValue(value)
  if (sent === undefined) {
    throw new ArgumentError(`The argument "${argument}" contains a control character, which is not allowed in a header`)
  }
  return sent
}
