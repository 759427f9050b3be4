import assert from 'node:assert/strict'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { initialize, type Json, type Message } from './client.ts'

/** An MCP session with an app, without a socket. */
export interface InjectedSession {
  /** One request; its response, be it a result or an error. */
  request: (method: string, params?: Json) => Promise<Message>
  /** The same, as an HTTP answer. @param address the client's, if it is another one now */
  post: (body: unknown, address?: string) => Promise<LightMyRequestResponse>
}

/** Begins a session. @param token the bearer key; undefined: none @param remoteAddress the client's */
export async function openSession (app: FastifyInstance, url: string, token?: string, remoteAddress?: string): Promise<InjectedSession> {
  let session: Record<string, string> = {}
  const post = async (body: unknown, address = remoteAddress): Promise<LightMyRequestResponse> => await app.inject({
    url,
    method: 'POST',
    remoteAddress: address,
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...session
    },
    payload: JSON.stringify(body)
  })
  const begun = await post(initialize())
  assert.equal(begun.statusCode, 200, begun.body)
  session = { 'mcp-session-id': String(begun.headers['mcp-session-id']), 'mcp-protocol-version': '2025-11-25' }
  let id = 0
  return {
    post,
    request: async (method, params = {}) => {
      const reply = await post({ jsonrpc: '2.0', id: ++id, method, params })
      // An answer that takes longer than some seconds comes as an event stream.
      if (!String(reply.headers['content-type']).startsWith('text/event-stream')) return reply.json()
      const messages = reply.body.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)) as Message)
      const answer = messages.find((message) => message.id === id)
      assert.ok(answer, reply.body)
      return answer
    }
  }
}
