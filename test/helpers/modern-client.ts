import { Client, StreamableHTTPClientTransport, type ClientOptions } from '@modelcontextprotocol/client'
import { KEY, type Json } from './client.ts'
import type { Cleanup } from './hub.ts'

export type Mode = 'auto' | 'pinned'

/** What a modern client answers when it is asked, and what it was asked. */
export interface ModernAgent {
  readonly client: Client
  readonly asked: Json[]
  /** The notifications that it got, by method. */
  readonly heard: Map<string, Json[]>
}

export interface ModernAgentOptions {
  mode?: Mode
  capabilities?: ClientOptions['capabilities']
  /** false: the results of calls are shown as they come, `input_required` included. */
  autoFulfill?: boolean
  key?: string
}

export const everyCapability = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } }

/** A client of the SDK's second line, connected. It answers every question at once, and is closed after the test. */
export async function modernAgent (t: Cleanup, url: string, options: ModernAgentOptions = {}): Promise<ModernAgent> {
  const { mode = 'pinned', capabilities = everyCapability, autoFulfill = true, key = KEY } = options
  const client = new Client({ name: 'modern-agent', version: '1' }, {
    capabilities,
    versionNegotiation: { mode: mode === 'auto' ? 'auto' : { pin: '2026-07-28' } },
    inputRequired: { autoFulfill }
  })
  const asked: Json[] = []
  const heard = new Map<string, Json[]>()
  const note = ({ method, params }: { method: string, params?: unknown }): void => { asked.push({ method, params }) }
  if (capabilities?.elicitation) {
    client.setRequestHandler('elicitation/create', (request) => {
      note(request)
      if (request.params.mode === 'url') return { action: 'accept' }
      return { action: 'accept', content: { name: `answer-${asked.length}` } }
    })
  }
  if (capabilities?.sampling) {
    client.setRequestHandler('sampling/createMessage', (request) => {
      note(request)
      return { model: 'm', role: 'assistant', content: { type: 'text', text: 'sampled' } }
    })
  }
  if (capabilities?.roots) {
    client.setRequestHandler('roots/list', (request) => {
      note(request)
      return { roots: [{ uri: 'file:///root', name: 'root' }] }
    })
  }
  for (const method of [
    'notifications/message', 'notifications/tools/list_changed', 'notifications/resources/updated'
  ] as const) {
    client.setNotificationHandler(method, (notification) => {
      heard.set(method, [...heard.get(method) ?? [], notification.params as Json])
    })
  }
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${key}` } } })
  await client.connect(transport)
  t.after(async () => { await client.close() })
  return { client, asked, heard }
}
