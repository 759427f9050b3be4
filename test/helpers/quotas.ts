// A quota, a server whose calls count, and callers.
import { startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { KEY, Session, text, type Json } from './client.ts'
import type { Cleanup, Hub } from './hub.ts'

/** A quota as it is stored: `q1`, of a day. */
export const quota = (more: Json = {}): Json => ({ id: 'q1', name: 'Daily', target: {}, per: 'day', ...more })

/** A server whose tool `fails` returns an error. */
export async function upstreamFor (t: Cleanup): Promise<Upstream> {
  return await startUpstream(t, {
    tools: [tool('say'), tool('other'), tool('fails')],
    prompts: [{ name: 'greet' }],
    on: ({ method, params }) => {
      if (method === 'prompts/get') return { messages: [] }
      if (method !== 'tools/call') return undefined
      return { content: [{ type: 'text', text: 'five words are said here' }], isError: params.name === 'fails' }
    }
  })
}

/** @returns a function that calls a tool of that server over MCP, and returns whether no quota refused it */
export const caller = async (hub: Hub, key = KEY): Promise<(name?: string) => Promise<boolean>> => {
  const session = await Session.open(`${hub.url}/mcp`, { key })
  return async (name = 'say') => {
    const { result } = await session.request('tools/call', { name: `up-${name}` })
    return !text(result).includes('is used up')
  }
}

/** Calls a tool of that server over REST. */
export const rest = async (hub: Hub, key = KEY): Promise<Response> =>
  await fetch(`${hub.url}/api/tools/up/say`, { headers: { authorization: `Bearer ${key}` } })
