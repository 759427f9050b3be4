import { Link } from '../../plugins/upstream/links/link.ts'
import { baseKey } from '../../plugins/upstream/links/link-key.ts'
import { OpenApiTransport } from '../../plugins/upstream/openapi/transport.ts'
import { SharedApi } from '../../plugins/upstream/openapi/api.ts'
import { Outbound } from '../../plugins/outbound/outbound.ts'
import type { ServerConfig } from '../../schemas/server.ts'
import type { Cleanup } from '../helpers/hub.ts'

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
  warnings: string[]
  /** Methods of what it told unasked. */
  news: string[]
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
  const warn = (sentence: string): void => {
    warnings.push(sentence)
  }
  const transport = new OpenApiTransport({ config: { type: 'openapi', ...config }, outbound, sharedApi, passed, warn })
  const link = new Link(
    transport,
    { key: baseKey, owner: undefined, capabilities: {}, clientInfo: { name: 'test', version: '0' }, initTimeout: 60_000 },
    {
      question: () => {
        throw new Error('a REST API asks nothing')
      },
      news: (_link, { method }) => {
        news.push(method)
      },
      answered: () => {},
      closed: () => {},
      warn
    }
  )
  t.after(async () => {
    await link.close()
    if (!given) await outbound.close()
  })
  await link.open(() => {})
  const callText = async (name: string, args: unknown = {}): Promise<string> =>
    await link.request(
      'tools/call',
      `{"name":${JSON.stringify(name)},"arguments":${typeof args === 'string' ? args : JSON.stringify(args)}}`
    )
  return {
    link,
    warnings,
    news,
    tools: async () => new Map((await link.catalogue()).catalogue.lists.tools.map(({ key, text }) => [key, JSON.parse(text) as Tool])),
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
