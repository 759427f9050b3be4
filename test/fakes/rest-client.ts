import assert from 'node:assert/strict'
import { LegacyUpstreamSession } from '../../protocol/legacy/upstream-session.ts'
import type { Catalogue } from '../../protocol/lists.ts'
import type { UpstreamSession } from '../../protocol/upstream-session.ts'
import { readCatalogue, UndeclaredToolsReader } from '../../plugins/upstream/catalogues/read-catalogue.ts'
import { Link } from '../../plugins/upstream/links/link.ts'
import { gatewayLinkKey } from '../../plugins/upstream/links/link-key.ts'
import { OpenApiTransport } from '../../plugins/upstream/openapi/transport.ts'
import { SharedApi } from '../../plugins/upstream/openapi/api.ts'
import { Outbound } from '../../plugins/base/outbound/outbound.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { Cleanup } from '../helpers/hub.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'

export interface Tool {
  name: string
  title?: string
  description: string
  inputSchema: Record<string, unknown> & {
    properties: Record<string, Record<string, unknown>>
    required?: string[]
    $defs?: Record<string, unknown>
  }
  annotations: Record<string, boolean>
}
export interface Result {
  content: Array<{ type: string; text?: string; data?: string; mimeType?: string; resource?: Record<string, string> }>
  structuredContent?: Record<string, unknown>
  isError?: boolean
}

export interface RestClient {
  link: Link
  /** The link's session. */
  session: UpstreamSession
  warnings: string[]
  /** Methods of what it told unasked. */
  news: string[]
  /** What it lists. */
  catalogue: () => Promise<Catalogue>
  tools: () => Promise<Map<string, Tool>>
  /** @param args an object, or JSON text */
  call: (name: string, args?: unknown) => Promise<Result>
  /** The same, as text. */
  callText: (name: string, args?: unknown) => Promise<string>
}

export interface RestClientOptions { sharedApi?: SharedApi, outbound?: Outbound, passed?: () => Record<string, string> | undefined }

/** A link to a server of type `openapi`, connected; closed after the test. */
export async function restClient (
  t: Cleanup,
  config: ServerConfig,
  { sharedApi = new SharedApi(), outbound: given, passed }: RestClientOptions = {}
): Promise<RestClient> {
  const outbound = given ?? new Outbound({ allow: '' })
  const warnings: string[] = []
  const news: string[] = []
  const warn = (sentence: string): void => { warnings.push(sentence) }
  const transport = new OpenApiTransport({ config: { type: 'openapi', ...config }, outbound, sharedApi, clientHeaders: passed, warn, owner: 'tests' })
  const made: UpstreamSession[] = []
  const link = new Link(
    (identity, handlers) => {
      const session = new LegacyUpstreamSession(transport, identity, handlers)
      made.push(session)
      return session
    },
    { key: gatewayLinkKey, owner: undefined, capabilities: {}, clientInfo: { name: 'test', version: '0' }, initTimeout: 60_000 },
    {
      question: () => { throw new Error('a REST API asks nothing') },
      notification: (_link, { method }) => { news.push(method) },
      answered: () => {},
      closed: () => {}
    }
  )
  t.after(async () => {
    await link.close()
    if (!given) await outbound.close()
  })
  const [session] = made
  assert.ok(session)
  await link.open(() => {})
  const callText = async (name: string, args: unknown = {}): Promise<string> =>
    await link.request(
      'tools/call',
      `{"name":${JSON.stringify(name)},"arguments":${typeof args === 'string' ? args : JSON.stringify(args)}}`
    )
  const catalogue = async (): Promise<Catalogue> =>
    (await readCatalogue(link, undefined, undefined, Infinity, upstreamLimits.listTime, new UndeclaredToolsReader(), warn)).catalogue
  return {
    link,
    session,
    warnings,
    news,
    catalogue,
    tools: async () => new Map((await catalogue()).lists.tools.map(({ key, text }) => [key, JSON.parse(text) as Tool])),
    callText,
    call: async (name, args) => JSON.parse(await callText(name, args)) as Result
  }
}

/** A description of an API with these paths. */
export const openapi = (paths: object, more: object = {}): Record<string, unknown> => ({
  openapi: '3.0.3',
  info: { title: 'Test', version: '1' },
  paths,
  ...more
})

/** What an operation answers, where that does not matter. */
export const ok = { responses: { 200: { description: 'OK' } } }

/** An operation with these parameters. */
export const op = (operationId: string, parameters: readonly unknown[] = [], more: object = {}): object =>
  ({ operationId, parameters, ...more, ...ok })

/** A link to an API with these paths. @param more of its description */
export const described = async (t: Cleanup, url: string, paths: object, more: object = {}): Promise<RestClient> =>
  await restClient(t, { url, openapi: { schema: openapi(paths, more) } })
