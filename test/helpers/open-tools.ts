// Documents and operations as a program that imports them sees them.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { validate } from '@readme/openapi-parser'
import { Validator } from '@seriousme/openapi-schema-validator'
import type { Call } from '../fakes/fault-http.ts'
import { assertPlain, at, type Json } from './client.ts'
import { until, type Hub } from './hub.ts'

export interface Operation { id: string, method: string, path: string, server: string, parameters: Json[], body: unknown }

export async function document (hub: Hub, path = '/api/openapi.json', headers: Record<string, string> = {}): Promise<Json> {
  const reply = await fetch(`${hub.url}${path}`, { headers })
  assert.equal(reply.status, 200, `${path}: ${await reply.clone().text()}`)
  return await reply.json() as Json
}

/** A document that two validators take, neither of which is ours. */
export async function valid (given: unknown): Promise<void> {
  const first = await validate(structuredClone(given) as Parameters<typeof validate>[0])
  assert.ok(first.valid, JSON.stringify(first, null, 1).slice(0, 3_000))
  const second = await new Validator().validate(structuredClone(given) as Json)
  assert.ok(second.valid, JSON.stringify(second).slice(0, 3_000))
  assert.equal(at(given, 'openapi'), '3.0.3')
}

export function operations (given: unknown): Operation[] {
  return Object.entries(at(given, 'paths') as Json).flatMap(([path, item]) => ['get', 'post'].flatMap((method) => {
    const operation = at(item, method)
    if (operation === undefined) return []
    return [{
      id: String(at(operation, 'operationId')),
      method: method.toUpperCase(),
      path,
      server: String(at(operation, 'tags', 0)),
      parameters: (at(operation, 'parameters') ?? []) as Json[],
      body: at(operation, 'requestBody', 'content', 'application/json', 'schema')
    }]
  }))
}

export const ids = (given: unknown): string[] => operations(given).map(({ id }) => id)

/** A value that a schema of OpenAPI 3.0.3 takes, with all its properties or the required ones only. */
export function example (schema: unknown, whole: unknown, all: boolean, name = ''): unknown {
  const ref = at(schema, '$ref')
  if (typeof ref === 'string') return example(at(whole, ...ref.slice(2).split('/')), whole, false, name)
  for (const keyword of ['allOf', 'anyOf', 'oneOf']) {
    const first = at(schema, keyword, 0)
    if (first !== undefined && at(schema, 'type') === undefined) return example(first, whole, all, name)
  }
  const choice = at(schema, 'enum', 0)
  if (choice !== undefined) return choice
  switch (at(schema, 'type')) {
    case 'integer': case 'number': return at(schema, 'minimum') ?? 1
    case 'boolean': return true
    case 'array': return [example(at(schema, 'items'), whole, all, name)]
    case 'object': {
      const required = new Set((at(schema, 'required') ?? []) as string[])
      const own = Object.entries((at(schema, 'properties') ?? {}) as Json).filter(([key]) => all || required.has(key))
        .map(([key, value]) => [key, example(value, whole, all, key)])
      const cases = ['anyOf', 'oneOf'].flatMap((keyword) =>
        at(schema, keyword, 0) === undefined ? [] : [example({ type: 'object', ...(at(schema, keyword, 0) as Json) }, whole, all)]
      )
      return Object.assign(Object.fromEntries(own), ...cases) as Json
    }
    default: return /uri|url/.test(`${at(schema, 'format')}`) ? 'http://127.0.0.1:9/none' : name === 'path' ? '.' : 'text'
  }
}

/** Calls an operation as its document says. */
export async function run (
  hub: Hub,
  whole: unknown,
  operation: Operation,
  all: boolean,
  headers: Record<string, string> = {}
): Promise<{ status: number; text: string }> {
  const base = new URL(String(at(whole, 'servers', 0, 'url')), hub.url).href
  const query = new URLSearchParams()
  for (const parameter of operation.parameters) {
    if (all || parameter.required === true) {
      query.append(String(parameter.name), String(example(parameter.schema, whole, all, String(parameter.name))))
    }
  }
  const body = operation.body === undefined ? undefined : JSON.stringify(example(operation.body, whole, all))
  const url = `${base}${operation.path}${query.size > 0 ? `?${query}` : ''}`
  const reply = await fetch(url, {
    method: operation.method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body
  })
  return { status: reply.status, text: await reply.text() }
}

/** The dialect of failures on these routes. */
export function refused (answer: { status: number, text: string }, status: number, says = /./): void {
  assert.equal(answer.status, status, answer.text)
  const body: unknown = JSON.parse(answer.text)
  assert.equal(at(body, 'success'), false, answer.text)
  assert.match(String(at(body, 'error')), /^(TH|FST)_/, answer.text)
  assert.match(String(at(body, 'message')), says, answer.text)
  assertPlain(answer.text)
}

export const get = async (
  hub: Hub,
  path: string,
  headers: Record<string, string> = {}
): Promise<{ status: number; text: string; headers: Headers }> => {
  const reply = await fetch(`${hub.url}${path}`, { headers })
  return { status: reply.status, text: await reply.text(), headers: reply.headers }
}

export const post = async (
  hub: Hub,
  path: string,
  body: unknown,
  headers: Record<string, string> = {}
): Promise<{ status: number; text: string }> => {
  const reply = await fetch(`${hub.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body)
  })
  return { status: reply.status, text: await reply.text() }
}

/** Changes the settings file as an operator would, and waits until the gateway has taken it up. */
export async function edit (hub: Hub, change: (file: Json) => void, seen: () => Promise<boolean>): Promise<void> {
  const file = JSON.parse(await readFile(hub.settingsPath, 'utf8')) as Json
  change(file)
  await writeFile(hub.settingsPath, JSON.stringify(file))
  await until(seen, 'the change was never taken up')
}

/** A tool that answers with the arguments it was called with. */
export const echoArguments = ({ method, params }: Call): Json | undefined =>
  method === 'tools/call'
    ? {
        content: [{ type: 'text', text: JSON.stringify(params.arguments) }],
        structuredContent: { tool: params.name, args: params.arguments }
      }
    : undefined

export const object = (properties: Json, more: Json = {}): Json => ({ inputSchema: { type: 'object', properties, ...more } })
export const several = (count: number, schema: unknown = { type: 'string' }): Json =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, schema]))
