/* eslint no-template-curly-in-string: off -- configs hold them */
// A gateway's settings in which every place that may hold a secret holds a canary, and servers with the worst manners.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { at, type Json } from '../helpers/client.ts'
import { bearerKey, path, type Cleanup } from '../helpers/hub.ts'
import { listen } from '../helpers/listen.ts'

type Plant = (name: string) => string

/** A web server that answers with all that it was asked: the worst that a body can hold. Its path says how. */
export async function echoes (t: Cleanup): Promise<{ url: string, port: number, seen: string[] }> {
  const seen: string[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => { chunks.push(chunk) })
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const all = `${request.url} ${JSON.stringify(request.headers)} ${body}`
      seen.push(all)
      const kind = /^\/(\w+)/.exec(request.url ?? '')?.[1]
      const answers: Record<string, () => void> = {
        unauthorized: () => {
          response
            .writeHead(401, {
              'www-authenticate': `Bearer error="invalid_token", error_description="${request.headers.authorization}"`,
              'content-type': 'application/json'
            })
            .end(JSON.stringify({ error: all }))
        },
        broken: () => {
          response.writeHead(500, String(request.headers.authorization), { 'content-type': 'text/plain' }).end(all)
        },
        redirects: () => {
          response
            .writeHead(307, { location: `http://elsewhere.invalid/?key=${encodeURIComponent(String(request.headers.authorization))}` })
            .end()
        },
        garbled: () => { response.writeHead(200, { 'content-type': 'application/json' }).end(all) },
        html: () => {
          response.writeHead(200, { 'content-type': `text/html; was=${request.headers.authorization}` }).end(all)
        },
        refusing: () => {
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(
              JSON.stringify({
                jsonrpc: '2.0',
                id: at(JSON.parse(body), 'id'),
                error: { code: -32000, message: `Wrong key: ${request.headers.authorization}`, data: all }
              })
            )
        }
      }
      const answer = answers[kind ?? ''] ?? answers.broken
      answer?.()
    })
  })
  server.on('connect', (request, socket) => {
    seen.push(JSON.stringify(request.headers))
    socket.end(`HTTP/1.1 407 ${request.headers['proxy-authorization']}\r\ncontent-length: 0\r\n\r\n`)
  })
  const port = await listen(t, server)
  return { url: `http://127.0.0.1:${port}`, port, seen }
}

/** The operator's secrets. */
export const plantedEnvironment = (plant: Plant): Record<string, string> => Object.fromEntries([
  'ADMIN_PASSWORD', 'JWT_SECRET', 'ENCRYPTION_KEY', 'IDP_CLIENT_SECRET', 'CODEHOST_CLIENT_SECRET', 'OIDC_CLIENT_SECRET', 'PGPASSWORD',
  'DATABASE_URL', 'AWS_SECRET_ACCESS_KEY', 'OPERATORS_KEY'
].map((name) => [name, `Aa1!${plant(`environment: ${name}`)}`]))

export const openapi = {
  openapi: '3.0.3',
  info: { title: 'A', version: '1' },
  paths: { '/things': { get: { operationId: 'things', responses: { 200: { description: 'all' } } } } }
}

export const command = (plant: Plant, name: string, more: Record<string, string> = {}): Json => ({
  command: process.execPath,
  args: [
    path('test/fakes/telltale.mjs'),
    '--token',
    plant(`${name}: argument after --token`),
    `--api-key=${plant(`${name}: argument --api-key=`)}`,
    `--db=postgres://user:${plant(`${name}: argument, userinfo`)}@db.invalid/x`
  ],
  env: {
    API_TOKEN: plant(`${name}: env`),
    NOTE: `"${plant(`${name}: env, quoted`)}" \\ +/&=`,
    FROM: '${OPERATORS_KEY}',
    LONG: plant(`${name}: env, cut`),
    KEY: `-----BEGIN KEY-----\n${plant(`${name}: env, first line`)}\n${plant(`${name}: env, second line`)}\n-----END KEY-----`,
    ...more
  }
})

export const remote = (plant: Plant, name: string, url: string, more: Json = {}): Json => {
  const { origin, pathname } = new URL(url)
  return {
    type: 'streamable-http',
    url: `${origin}${pathname}?api_key=${plant(`${name}: query`)}`,
    headers: {
      authorization: `Bearer ${plant(`${name}: header`)}`,
      'x-api-key': plant(`${name}: header x-api-key`),
      'x-from': '${OPERATORS_KEY}'
    },
    oauth: { clientId: 'me', clientSecret: plant(`${name}: oauth.clientSecret`) },
    ...more
  }
}

interface Place { url: string, port: number }
/** Where the planted servers are. */
export interface Places { upstream: Place, echo: Place, api: Pick<Place, 'url'>, closed: number }

/** Servers that are commands, and remote ones that connect, or fail in every way. */
export const plantedServers = (plant: Plant, { upstream, echo, api, closed }: Places): Record<string, Json> => ({
  child: command(plant, 'child'),
  calm: command(plant, 'calm'),
  dies: command(plant, 'dies', { TELLTALE: 'dies' }),
  remote: remote(plant, 'remote', upstream.url, { passthroughHeaders: ['x-tenant'] }),
  userinfo: remote(plant, 'userinfo', upstream.url, {
    url: `http://user:${plant('userinfo: userinfo')}@127.0.0.1:${upstream.port}/mcp?key=${plant('userinfo: second query')}`
  }),
  tls: remote(plant, 'tls', `https://127.0.0.1:${upstream.port}/${plant('tls: path')}`),
  closed: remote(plant, 'closed', `http://127.0.0.1:${closed}/${plant('closed: path')}`),
  nowhere: remote(plant, 'nowhere', `http://nowhere.invalid/${plant('nowhere: path')}`),
  ...Object.fromEntries(
    ['unauthorized', 'broken', 'redirects', 'garbled', 'html', 'refusing'].map((name) => [name, remote(plant, name, `${echo.url}/${name}`)])
  ),
  events: { ...remote(plant, 'events', `${echo.url}/unauthorized`), type: 'sse' },
  proxied: remote(plant, 'proxied', upstream.url, { proxy: { url: `http://user:${plant('proxied: proxy')}@127.0.0.1:${closed}` } }),
  barred: remote(plant, 'barred', upstream.url, { proxy: { url: `http://user:${plant('barred: proxy')}@127.0.0.1:${echo.port}` } }),
  rest: {
    type: 'openapi',
    url: api.url,
    openapi: {
      url: `${api.url}/openapi.json?key=${plant('rest: query of the document')}`,
      security: { type: 'apiKey', name: 'x-key', in: 'header', value: plant('rest: apiKey') }
    }
  },
  astray: {
    type: 'openapi',
    url: `http://127.0.0.1:${closed}`,
    openapi: { schema: openapi, security: { type: 'apiKey', name: 'key', in: 'query', value: plant('astray: apiKey') } }
  },
  bearer: {
    type: 'openapi',
    url: `http://127.0.0.1:${closed}`,
    openapi: { schema: openapi, security: { type: 'http', http: { scheme: 'bearer', token: plant('bearer: token') } } }
  },
  basic: {
    type: 'openapi',
    url: `http://127.0.0.1:${closed}`,
    openapi: {
      schema: openapi,
      security: { type: 'http', http: { scheme: 'basic', username: 'me', password: plant('basic: password') } }
    }
  },
  grant: {
    type: 'openapi',
    url: api.url,
    openapi: {
      schema: openapi,
      security: { type: 'oauth2', tokenUrl: `${echo.url}/unauthorized`, clientId: 'me', clientSecret: plant('grant: clientSecret') }
    }
  },
  undocumented: {
    type: 'openapi',
    openapi: {
      url: `${echo.url}/unauthorized?key=${plant('undocumented: query')}`,
      security: { type: 'apiKey', name: 'key', in: 'query', value: plant('undocumented: apiKey') }
    }
  }
})

/** The settings of a gateway before anybody manages it. @param url of a server that connects */
export const plantedSettings = (plant: Plant, tokens: { valid: string, disabled: string }, url: string): Json => ({
  mcpServers: { filed: { ...remote(plant, 'filed', url), visibility: 'public' }, dead: command(plant, 'dead', { TELLTALE: 'dies' }) },
  bearerKeys: [
    bearerKey({ token: tokens.valid }),
    bearerKey({ id: '22222222-2222-4222-8222-222222222222', name: 'disabled', token: tokens.disabled, enabled: false })
  ],
  systemConfig: {
    routing: { bearerAuthKey: plant('system: bearerAuthKey') },
    install: { npmRegistry: `https://user:${plant('system: npm registry')}@registry.invalid/` },
    mcpRouter: { apiKey: plant('system: mcpRouter.apiKey') },
    smartRouting: {
      llmProviderApiKey: plant('system: llmProviderApiKey'),
      dbUrl: `postgres://user:${plant('system: dbUrl')}@db.invalid/x`
    }
  }
})
