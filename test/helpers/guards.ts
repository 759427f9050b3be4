// A guard, what it must find, and a server that leaks it in every text of MCP.
import assert from 'node:assert/strict'
import { Refusal, tool, type Call, type Answer } from '../fakes/fault-http.ts'
import type { Json } from './client.ts'

export const email = 'canary.guard@secret-domain.org'
export const card = '4111111111111111'
export const token = 'ghp_CaNaRy0123456789abcdefghijklmnopqrst'
export const canaries = [email, 'canary.guard', card, token]
export const all = ['secrets', 'email', 'card', 'iban', 'phone']

export const guard = (more: Json = {}): Json =>
  ({ id: 'g1', name: 'Private', enabled: true, on: 'both', detect: all, action: 'mask', ...more })

export function assertClean (content: string, where: string): void {
  for (const each of canaries) {
    for (const form of [each, Buffer.from(each).toString('base64').replace(/=+$/, '').slice(2, -3), encodeURIComponent(each)]) {
      assert.ok(!content.includes(form), `${where} holds ${form}: ${content.slice(0, 2_000)}`)
    }
  }
}

export const leaks = `${email} ${card} ${token}`
export const long = Array.from({ length: 4_000 }, (_, line) => `line ${line} of ${email}`).join('\n')

/** Results and notifications with canaries wherever MCP has a text. */
export function leak ({ method, params, notify }: Call): Answer {
  if (method === 'prompts/get') {
    return { description: leaks, messages: [{ role: 'user', content: { type: 'text', text: leaks } }] }
  }
  if (method === 'resources/read') return { contents: [{ uri: 'test://one', text: leaks }] }
  if (method === 'completion/complete') return { completion: { values: [email] } }
  if (method !== 'tools/call') return undefined
  if (params.name === 'breaks') return new Refusal(-5, `no such user ${email}`, { token })
  if (params.name === 'fails') return { content: [{ type: 'text', text: `failed for ${email}` }], isError: true }
  if (params.name === 'long') return { content: [{ type: 'text', text: long }] }
  if (params.name === 'noisy') {
    notify('notifications/progress', { progressToken: (params._meta as Json).progressToken, progress: 1, message: leaks })
    notify('notifications/message', { level: 'error', data: { leaks, deep: [{ long }] } })
  }
  return {
    content: [
      { type: 'text', text: leaks },
      { type: 'text', text: JSON.stringify({ user: email }).replace('@', '\\u0040') },
      { type: 'resource', resource: { uri: 'test://x', text: leaks } },
      { type: 'resource', resource: { uri: 'test://y', blob: Buffer.from(leaks).toString('base64') } },
      { type: 'resource_link', uri: 'test://z', name: leaks, description: leaks }
    ],
    structuredContent: { user: { email }, card: Number(card), [email]: [token], count: 12 },
    _meta: { 'x/note': leaks }
  }
}

export const upstreamOptions = {
  tools: ['echo', 'breaks', 'fails', 'long', 'noisy'].map((name) => tool(name)),
  prompts: [{ name: 'greet', arguments: [{ name: 'who' }] }],
  resources: [{ uri: 'test://one', name: 'one' }],
  resourceTemplates: [{ uriTemplate: 'test://{user}', name: 'user' }],
  capabilities: { tools: {}, prompts: {}, resources: {}, logging: {}, completions: {} },
  on: leak
}

/** Arguments with canaries at several depths. */
export const nested = { to: email, list: [token, { n: Number(card) }], [email]: `see ${email}`, keep: '12345678901234567890' }
