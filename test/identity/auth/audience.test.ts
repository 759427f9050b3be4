import assert from 'node:assert/strict'
import type { FastifyRequest } from 'fastify'
import { test } from 'tap'
import { assertTokenAllowsMcpRoute } from '../../../plugins/identity/auth/rights.ts'
import type { Principal } from '../../../plugins/settings/index.ts'

const isAllowed = (audience: string, url: string): boolean => {
  const principal: Principal =
    { key: 'token', kind: 'access-token', user: 'alice', isAdmin: false, scopes: ['mcp'], audience }
  try {
    assertTokenAllowsMcpRoute(principal, { url, routeOptions: { url } } as unknown as FastifyRequest, '')
    return true
  } catch {
    return false
  }
}

void test('an access token allows the MCP routes of its resource, also by their aliases, and no others', async () => {
  const table: Array<[audience: string, url: string, isAllowed: boolean]> = [
    ['/mcp', '/mcp/some', true],
    ['/mcp', '/api/mcp/some', true],
    ['/api/mcp', '/mcp/some', true],
    ['/api', '/api/mcp/group/some', true],
    ['/api', '/mcp/some', false],
    ['/mcp/some', '/api/mcp/group/some', true],
    ['/api/mcp/group/some', '/mcp/some', true],
    ['/mcp/some', '/mcp/other', false],
    ['/api/mcp/group/some', '/api/mcp/other', false],
    // A server or group named "group".
    ['/mcp/group', '/api/mcp/group', true],
    ['/api/mcp/group', '/mcp/group', true],
    ['/api/mcp/group', '/mcp', false],
    ['/api/mcp/group', '/api/mcp/group/other', false],
    ['/api/mcp/group', '/mcp/other', false]
  ]
  for (const [audience, url, expected] of table) {
    assert.equal(isAllowed(audience, url), expected, `${audience} ${url}`)
  }
})
