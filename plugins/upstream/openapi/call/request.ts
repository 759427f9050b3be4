import { memberOf } from '../../../../protocol/json.ts'
import { encodeBody } from './body.ts'
import { toHeaderValue } from '../headers.ts'
import type { Parameter, OperationPlan } from '../plan.ts'
import { ArgumentError } from '../problems.ts'
import { entriesOf, expand, pairsOf } from './values.ts'

/** A request to a REST API, before credentials. */
export interface ApiRequest {
  method: string
  origin: string
  /** Without the query; percent-encoded. */
  path: string
  /** Pairs `name=value`, percent-encoded. */
  query: string[]
  /** Those of them that the configuration adds: they may be secret. */
  configuredQuery: string[]
  /** By lower-case name. */
  headers: Map<string, string>
  cookies: string[]
  body: Buffer | undefined
}

/**
 * The request that a plan makes of a call's arguments.
 * @param paramsText `params` of the `tools/call`, as text
 * @param server where the API is
 * @throws ArgumentError
 */
export function toRequest (plan: OperationPlan, paramsText: string, server: string): ApiRequest {
  const left = entriesOf(memberOf(paramsText, 'arguments') ?? '{}')
  const take = ({ argument, required, in: place }: Pick<Parameter, 'argument' | 'required' | 'in'>): string | undefined => {
    const text = left.get(argument)
    left.delete(argument)
    if (text !== undefined && text !== 'null') return text
    if (required || place === 'path') throw new ArgumentError(`The argument "${argument}" is missing`)
    return undefined
  }
  const query: string[] = []
  const cookies: string[] = []
  const headers = new Map<string, string>()
  const filled = new Map<string, string>()
  for (const parameter of plan.parameters) {
    const text = take(parameter)
    if (text === undefined) continue
    const written = parameter.json ? JSON.stringify(text) : text
    if (parameter.in === 'query') query.push(...pairsOf(parameter.name, parameter, written))
    else if (parameter.in === 'cookie') cookies.push(...pairsOf(parameter.name, parameter, written))
    else if (parameter.in === 'header') headers.set(parameter.name.toLowerCase(), headerValue(parameter, expand(parameter, text)))
    else filled.set(parameter.name, expand(parameter, text))
  }
  const body = takeBody(plan, left)
  if (left.size > 0) {
    throw new ArgumentError(`There is no argument ${[...left.keys()].map((name) => JSON.stringify(name)).join(', ')}. ${known(plan)}`)
  }
  if (body) headers.set('content-type', body.type)
  const [path, ...own] = fill(plan, filled).split('?')
  const url = new URL(server)
  const configured = url.search.length > 1 ? url.search.slice(1).split('&') : []
  return {
    method: plan.method,
    origin: url.origin,
    path: `${url.pathname.replace(/\/$/, '')}${path}`,
    query: [...configured, ...own, ...query],
    configuredQuery: configured,
    headers,
    cookies,
    body: body?.bytes
  }
}

function takeBody ({ body }: OperationPlan, left: Map<string, string>): ReturnType<typeof encodeBody> {
  if (!body) return undefined
  const names =
    body.argument !== undefined ? [body.argument] : body.additionalFields ? [...left.keys()] : body.fields.map(({ name }) => name)
  const given = new Map<string, string>()
  for (const name of names) {
    const text = left.get(name)
    if (text !== undefined) given.set(name, text)
    left.delete(name)
  }
  if (body.argument !== undefined && body.required && given.size === 0) {
    throw new ArgumentError(`The argument "${body.argument}" is missing`)
  }
  if (body.argument === undefined && (body.required || given.size > 0)) {
    for (const { name, required } of body.fields) {
      if (required && !given.has(name)) throw new ArgumentError(`The argument "${name}" is missing`)
    }
  }
  return encodeBody(body, given)
}

const known = ({ parameters, body }: OperationPlan): string => {
  const names = [
    ...parameters.map(({ argument }) => argument),
    ...(body === undefined ? [] : body.argument !== undefined ? [body.argument] : body.fields.map(({ name }) => name))
  ]
  return names.length === 0 ? 'The tool takes none' : `The tool takes ${names.slice(0, 50).map((name) => JSON.stringify(name)).join(', ')}`
}

/** The path with its parameters in place. A value must not make it another path: `/users/` is not `/users/{id}`. */
function fill ({ path }: OperationPlan, values: ReadonlyMap<string, string>): string {
  const literal = (text: string): string =>
    encodeURI(Buffer.from(text).toString())
      .replace(/%25(?=[0-9a-f]{2})/gi, '%')
      .replace(/#/g, '%23')
  const filled = path.split(/(\{[^{}]+\})/).map((piece) => {
    if (!piece.startsWith('{')) return literal(piece)
    const name = piece.slice(1, -1)
    const value = values.get(name) ?? ''
    if (value === '') throw new ArgumentError(`The argument for "${name}" in the path must not be empty`)
    return value
  }).join('')
  for (const segment of filled.split('?', 1)[0]?.split('/') ?? []) {
    if (/^(\.|%2e){1,2}$/i.test(segment)) {
      throw new ArgumentError(`An argument would make the segment ${JSON.stringify(segment)} in the path, which means another path`)
    }
  }
  return filled
}

function headerValue ({ argument }: Parameter, value: string): string {
  const text = toHeaderValue(value)
  if (text === undefined) throw new ArgumentError(`The argument "${argument}" holds a control character, which no header may`)
  return text
}
