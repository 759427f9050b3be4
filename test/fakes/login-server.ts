import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import Provider from 'oidc-provider'
import { Browser, confirm, type Visit } from '../helpers/oauth.ts'
import type { Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'

/** An MCP server (the SDK's, by streamable HTTP or SSE) behind an authorization server (oidc-provider). */
export interface LoginServer {
  /** The address of the MCP server. */
  readonly url: string
  readonly issuer: string
  /** Every token that was issued. */
  readonly issued: string[]
  /** How often each grant was used. */
  readonly grants: Record<string, number>
  /** How many clients have registered. */
  readonly registrations: number
  /** The life of access tokens from now on, in seconds. */
  life: number
  /** Takes all access tokens back. @param all the refresh tokens, too */
  revoke: (all: boolean) => Promise<void>
  /** A person logs in with an address of the gateway's, and allows it. @returns the page at the end */
  login: (address: string, user: string) => Promise<Visit>
  /** The same from an authorization request on. @param home the browser at the gateway @returns the page at the end */
  authorize: (request: string, user: string, home: Browser) => Promise<Visit>
}

export async function startLoginServer (t: Cleanup, kind: 'mcp' | 'sse' = 'mcp'): Promise<LoginServer> {
  const authServer = createServer()
  const issuer = `http://127.0.0.1:${await listen(t, authServer)}`
  const mcpServer = createServer()
  const url = `http://127.0.0.1:${await listen(t, mcpServer)}/${kind}`
  const issued: string[] = []
  const grants: Record<string, number> = {}
  const world = { life: 600, registrations: 0 }
  let generation = 0
  const born = new Map<string, number>()
  const provider = new Provider(issuer, {
    cookies: { keys: ['a key of the test'] },
    features: {
      registration: { enabled: true },
      revocation: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({ scope: 'use', accessTokenFormat: 'opaque', accessTokenTTL: world.life }),
        useGrantedResource: () => true
      }
    },
    scopes: ['openid', 'offline_access', 'use'],
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    pkce: { required: () => true },
    findAccount: async (_context, id) => ({ accountId: id, claims: async () => ({ sub: id }) })
  })
  provider.on('grant.success', ({ oidc, body }) => {
    const type = String(oidc.params?.grant_type)
    grants[type] = (grants[type] ?? 0) + 1
    const { access_token: access, refresh_token: refresh } = body as { access_token: string, refresh_token?: string }
    born.set(access, generation)
    issued.push(access, ...refresh === undefined ? [] : [refresh])
  })
  provider.on('registration_create.success', () => { world.registrations++ })
  const answer = provider.callback()
  authServer.on('request', (request, response) => { void answer(request, response) })

  const streams = new Map<string, SSEServerTransport>()
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const json = (status: number, body: object, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
    }
    const { origin } = new URL(url)
    const metadata = `${origin}/.well-known/oauth-protected-resource/${kind}`
    if (`${origin}${request.url}` === metadata) {
      json(200, { resource: url, authorization_servers: [issuer], scopes_supported: ['use'] })
      return
    }
    const value = request.headers.authorization?.replace('Bearer ', '') ?? ''
    const token = value === '' || born.get(value) !== generation ? undefined : await provider.AccessToken.find(value)
    if (!token?.accountId || token.isExpired) {
      json(401, { error: 'invalid_token' }, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` })
      return
    }
    const { accountId } = token
    const server = new McpServer({ name: 'guarded', version: '1' })
    server.registerTool('whoami', { description: 'Who is logged in' }, async () => ({ content: [{ type: 'text', text: accountId }] }))
    if (kind === 'sse') {
      const path = request.url ?? ''
      if (request.method === 'POST') {
        const known = streams.get(new URL(path, url).searchParams.get('sessionId') ?? '')
        if (known) await known.handlePostMessage(request, response)
        else json(404, {})
        return
      }
      const stream = new SSEServerTransport('/messages', response)
      streams.set(stream.sessionId, stream)
      response.on('close', () => { streams.delete(stream.sessionId); void server.close() })
      await server.connect(stream)
      return
    }
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
    response.on('close', () => { void transport.close(); void server.close() })
    await server.connect(transport)
    await transport.handleRequest(request, response)
  }
  mcpServer.on('request', (request, response) => { serve(request, response).catch(() => { response.destroy() }) })

  return Object.assign(world, {
    url,
    issuer,
    issued,
    grants,
    revoke: async (all: boolean) => {
      generation++
      if (!all) return
      for (const each of issued) {
        const token = await provider.RefreshToken.find(each)
        if (token?.grantId) await provider.RefreshToken.revokeByGrantId(token.grantId)
      }
    },
    async login (address: string, user: string) {
      const home = new Browser(new URL(address).origin)
      return await this.authorize((await confirm(home, address)).url, user, home)
    },
    authorize: async (request: string, user: string, home: Browser) => {
      const browser = new Browser(issuer)
      let visit = await browser.get(request)
      for (let step = 0; step < 12; step++) {
        const to = visit.location
        if (to !== undefined && new URL(to, issuer).origin !== issuer) return await home.get(to)
        if (to !== undefined) visit = await browser.get(to)
        else visit = await browser.submit(visit, { login: user, password: 'any' })
      }
      throw new Error(`the login goes round in circles: ${visit.text.slice(0, 500)}`)
    }
  })
}
