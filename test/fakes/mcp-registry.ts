import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Cleanup } from '../helpers/hub.ts'
import { json, restApi, type RestApi, type Seen } from './rest-api.ts'

type Json = Record<string, unknown>

/** An MCP registry by the API v0.1: lists with cursors, search, versions and ETags. */
export interface FakeRegistry {
  api: RestApi
  /** The entries, each as `{server, _meta}`. */
  entries: Json[]
  /** Answers this to every request, instead. */
  failWith: ((response: ServerResponse) => void) | undefined
  /** How many answers were 304. */
  unchanged: number
}

const official = 'io.modelcontextprotocol.registry/official'
const nameOf = (entry: Json): string => String((entry.server as Json).name)
const versionOf = (entry: Json): string => String((entry.server as Json).version)
const metaOf = (entry: Json): Json => ((entry._meta as Json | undefined)?.[official] ?? {}) as Json

/** An entry as a registry answers it. */
export const entry = (name: string, server: Json = {}, meta: Json = {}): Json => ({
  server: { name, description: `The server ${name}`, version: '1.0.0', ...server },
  _meta: {
    [official]: {
      status: 'active',
      publishedAt: '2026-01-01T00:00:00Z',
      updatedAt: '2026-01-01T00:00:00Z',
      isLatest: true,
      ...meta
    }
  }
})

export async function mcpRegistry (t: Cleanup, entries: Json[]): Promise<FakeRegistry> {
  const api = await restApi(t)
  const fake: FakeRegistry = { api, entries, failWith: undefined, unchanged: 0 }
  api.answer((request, response) => {
    if (fake.failWith) {
      fake.failWith(response)
      return
    }
    const { status, body } = answer(fake.entries, request)
    const etag = `W/"${createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 16)}"`
    if (status === 200 && request.headers['if-none-match'] === etag) {
      fake.unchanged++
      response.writeHead(304, { etag }).end()
    } else json(response, body, status, status === 200 ? { etag } : {})
  })
  return fake
}

function answer (entries: readonly Json[], { url }: Seen): { status: number, body: unknown } {
  const { pathname, searchParams: query } = new URL(url, 'http://registry')
  const [, , , name, , version] = pathname.split('/').map(decodeURIComponent)
  if (!pathname.startsWith('/v0.1/servers')) return { status: 404, body: { error: 'Not found' } }
  if (name === undefined) return list(entries, query)
  const isShown = (each: Json): boolean => metaOf(each).status !== 'deleted' || query.get('include_deleted') === 'true'
  const versions = entries.filter((each) => nameOf(each) === name && isShown(each))
  if (versions.length === 0) return { status: 404, body: { error: 'Server not found' } }
  if (version === undefined) return { status: 200, body: { servers: versions, metadata: { count: versions.length } } }
  const one = versions.find((each) => version === 'latest' ? metaOf(each).isLatest === true : versionOf(each) === version)
  return one ? { status: 200, body: one } : { status: 404, body: { error: 'Server not found' } }
}

function list (entries: readonly Json[], query: URLSearchParams): { status: number, body: unknown } {
  const [search, version, cursor, since] = ['search', 'version', 'cursor', 'updated_since'].map((name) => query.get(name))
  const chosen = entries.filter((each) =>
    (search == null || nameOf(each).includes(search)) &&
    (version == null || (version === 'latest' ? metaOf(each).isLatest === true : versionOf(each) === version)) &&
    (since == null || String(metaOf(each).updatedAt) >= since) &&
    (metaOf(each).status !== 'deleted' || query.get('include_deleted') === 'true' || since != null)
  )
  const idOf = (each: Json): string => `${nameOf(each)}:${versionOf(each)}`
  const from = cursor == null ? 0 : chosen.findIndex((each) => idOf(each) === cursor) + 1
  if (cursor != null && from === 0) return { status: 400, body: { title: 'Bad Request', status: 400, detail: 'Invalid cursor parameter' } }
  const servers = chosen.slice(from, from + Number(query.get('limit') ?? 30))
  const last = servers.at(-1)
  const more = last !== undefined && from + servers.length < chosen.length
  return { status: 200, body: { servers, metadata: { count: servers.length, ...(more && { nextCursor: idOf(last) }) } } }
}
