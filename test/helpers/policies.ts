// Gateways with policies, and a server whose calls are counted.
import assert from 'node:assert/strict'
import type { FastifyInstance } from 'fastify'
import type { AppOptions } from '../../app.ts'
import type { Storage } from '../../db/store.ts'
import { makeStaticCatalogue } from '../../protocol/lists.ts'
import type { Provider } from '../../protocol/provider.ts'
import { appFor } from './app.ts'
import { KEY, type Json } from './client.ts'
import type { Cleanup } from './hub.ts'

/** A request that reached the server. */
export interface Reached { readonly method: string, readonly item: unknown, readonly args: unknown }

const readOnly = { annotations: { readOnlyHint: true } }
const inputSchema = { type: 'object' }

/** A provider with tools, a prompt and resources, which writes down what reaches it. */
export function countingProvider (name = 'up'): Provider & { readonly reached: Reached[] } {
  const reached: Reached[] = []
  const catalogue = makeStaticCatalogue({
    name,
    version: '1',
    tools: [
      { name: 'read', description: 'Reads', inputSchema, ...readOnly, _meta: { tags: ['safe'] } },
      { name: 'write', description: 'Writes', inputSchema },
      { name: 'delete', description: 'Deletes', inputSchema, annotations: { destructiveHint: true } }
    ],
    prompts: [{ name: 'greet' }, { name: 'farewell' }],
    resources: [{ uri: 'note://one', name: 'one' }, { uri: 'note://two', name: 'two' }],
    resourceTemplates: [{ uriTemplate: 'file:///{path}', name: 'files' }]
  })
  return {
    name,
    reached,
    catalogue: () => catalogue,
    call: async ({ method, params }, changes) => {
      const item: unknown = JSON.parse(changes.name ?? changes.uri ?? 'null')
      reached.push({ method, item, args: params.arguments })
      const result = method === 'prompts/get'
        ? { messages: [] }
        : method === 'resources/read' ? { contents: [] } : { content: [{ type: 'text', text: `ran ${String(item)}` }] }
      return { kind: 'response', id: null, resultText: JSON.stringify(result) }
    },
    subscribe: async (_client, uri) => {
      reached.push({ method: 'resources/subscribe', item: uri, args: undefined })
      return '{}'
    }
  }
}

export interface Answered { readonly status: number, readonly body: Json & { data: Json } }
export type AskApi = (method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, payload?: object, headers?: Record<string, string>) => Promise<Answered>

/** The management API of an app, for the admin's key by default. */
export function apiOf (app: FastifyInstance): AskApi {
  return async (method, url, payload, headers = { authorization: `Bearer ${KEY}` }) => {
    const reply = await app.inject({ method, url: `/api${url}`, headers, ...payload === undefined ? {} : { payload } })
    return { status: reply.statusCode, body: reply.json() as Answered['body'] }
  }
}

/** A policy as it is sent. */
export const rule = (name: string, when: string, then: string, more: object = {}): object => ({ name, when, then, ...more })

/** Logs in. @returns the headers of a user's requests */
export async function loginTo (app: FastifyInstance, username: string, password: string): Promise<Record<string, string>> {
  const reply = await app.inject({ method: 'POST', url: '/api/auth/login', payload: { username, password } })
  assert.equal(reply.statusCode, 200, reply.body)
  return { 'x-auth-token': String((reply.json() as Json).token) }
}

/** Adds a user who has the password `Open-Sesame-1`. @returns the headers of the user's requests */
export async function addUser (
  { app, api }: { app: FastifyInstance, api: AskApi }, username: string, more: object = {}
): Promise<Record<string, string>> {
  const { status, body } = await api('POST', '/users', { username, password: 'Open-Sesame-1', ...more })
  assert.equal(status, 201, JSON.stringify(body))
  return await loginTo(app, username, 'Open-Sesame-1')
}

/** Adds a policy. @returns its id */
export async function addPolicy (api: AskApi, policy: object): Promise<string> {
  const { status, body } = await api('POST', '/policies', policy)
  assert.equal(status, 201, JSON.stringify(body))
  return String(body.data.id)
}

/** A gateway with such a server, that listens. @param storage shared with other gateways */
export async function startWithPolicies (
  t: Cleanup, settings: object, { storage, ...more }: { storage?: Storage } & Partial<AppOptions> = {}
): Promise<{ app: FastifyInstance, api: AskApi, up: ReturnType<typeof countingProvider>, url: string }> {
  const app = await appFor(t, settings, {}, { ...more, ...storage === undefined ? {} : { wrap: () => storage } })
  const up = countingProvider()
  app.gateway.addProvider(up)
  return { app, api: apiOf(app), up, url: await app.listen({ port: 0, host: '127.0.0.1' }) }
}
