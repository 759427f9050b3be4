// Every way in which a call can reach a server through the gateway, with the outcome in one word.
import type { FastifyInstance } from 'fastify'
import { at, text, type Json } from './client.ts'
import { openSession } from './inject.ts'
import { modernRequest } from './modern-request.ts'

/** `ran`: the server answered. `denied`: a policy refused the call. `unknown`: there is no such item. */
export type Outcome = 'ran' | 'denied' | 'unknown' | string

/** A tool call of one kind of caller. */
export type CallTool = (server: string, tool: string, args: Json) => Promise<Outcome>

function outcomeOf ({ result, error }: { result?: unknown, error?: unknown }): Outcome {
  if (error !== undefined) return /Unknown tool|There is no tool/.test(JSON.stringify(error)) ? 'unknown' : JSON.stringify(error)
  // The tools of $smart, and tasks, tell errors in their results.
  const said = result === undefined ? '' : text(result)
  if (/^ran /.test(said)) return 'ran'
  if (/Unknown tool|no tool/.test(said)) return 'unknown'
  return at(result, 'isError') === true ? 'denied' : JSON.stringify(result)
}

/**
 * @param token a bearer key; undefined: a caller without credentials
 * @param hasRest whether the caller may use the management API
 */
export async function callersOf (app: FastifyInstance, token: string | undefined, hasRest: boolean): Promise<Record<string, CallTool>> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const [merged, smart] = [await openSession(app, '/mcp', token), await openSession(app, '/mcp/$smart', token)]
  const modern = async (url: string, params: Json, capabilities: Json = {}): Promise<Outcome> => {
    const { headers: own, body: payload } = modernRequest('tools/call', {
      params, capabilities, ...token === undefined ? { headers: { authorization: undefined } } : { key: token }
    })
    return outcomeOf((await app.inject({ method: 'POST', url, headers: own, payload })).json())
  }
  const http = async (url: string, payload: object): Promise<Outcome> => {
    const { statusCode, body } = await app.inject({ method: 'POST', url, headers, payload })
    return statusCode === 200 ? 'ran' : statusCode === 403 ? 'denied' : statusCode === 404 ? 'unknown' : body
  }
  const named = (server: string, tool: string, args: Json): Json => ({ name: `${server}-${tool}`, arguments: args })
  const byCallTool = (server: string, tool: string, args: Json): Json =>
    ({ name: 'call_tool', arguments: { toolName: `${server}-${tool}`, arguments: args } })
  const rest: Record<string, CallTool> = {
    rest: async (server, tool, args) => await http(`/api/tools/call/${server}`, { toolName: tool, arguments: args })
  }
  return {
    legacy: async (...call) => outcomeOf(await merged.request('tools/call', named(...call))),
    modern: async (...call) => await modern('/mcp', named(...call)),
    'legacy $smart': async (...call) => outcomeOf(await smart.request('tools/call', byCallTool(...call))),
    'modern $smart': async (...call) => await modern('/mcp/$smart', byCallTool(...call)),
    'legacy task': async (...call) => outcomeOf(await merged.request('tools/call', { ...named(...call), task: {} })),
    'modern task': async (...call) => await modern('/mcp', named(...call), { extensions: { 'io.modelcontextprotocol/tasks': {} } }),
    open: async (server, tool, args) => await http(`/api/tools/${server}/${tool}`, args),
    ...hasRest ? rest : {}
  }
}
