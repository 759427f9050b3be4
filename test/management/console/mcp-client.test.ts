import assert from 'node:assert/strict'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { test } from 'tap'
import { McpClient } from '../../../plugins/management/console/mcp-client.ts'

void test('a request that is cancelled before it begins is not sent', async () => {
  let isSent = false
  const outer = {
    auth: { issueInternalCredential: () => ({ token: 'internal', revoke: () => {} }) },
    config: { basePath: '', version: '1.0.0' },
    settings: { current: { system: {} } },
    routing: (_: unknown, response: { end: (text: string) => void }) => {
      isSent = true
      response.end('{"jsonrpc":"2.0","id":1,"result":{}}')
    }
  } as unknown as FastifyInstance
  const request = { host: 'localhost', ip: '127.0.0.1' } as unknown as FastifyRequest
  const follow = { signal: AbortSignal.abort(), onProgress: () => {} }
  await assert.rejects(new McpClient(outer).askWithProgress(request, '/mcp', 'tools/call', '{"name":"a"}', { follow }), /aborted/)
  assert.equal(isSent, false)
})
