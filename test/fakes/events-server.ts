// An MCP server with the Events extension (SEP-3415), on the official SDK, with the event types of its examples. In a process of its own
// it speaks stdio; `incident` there is raised by the tool `raise`:
//
//   node --import tsx test/fakes/events-server.ts
import { createHash, createHmac, randomBytes } from 'node:crypto'
import { argv } from 'node:process'
import { ProtocolError, type Server, type ServerContext } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { World } from './modern-server.ts'

type Json = Record<string, unknown>
const extension = 'io.modelcontextprotocol/events'
const subscriptionId = 'io.modelcontextprotocol/subscriptionId'
const anything = { '~standard': { version: 1 as const, vendor: 'test', validate: (value: unknown) => ({ value: value as Json }) } }

const inputSchema = { type: 'object', properties: { severity: { type: 'string', enum: ['P1', 'P2', 'P3', 'P4'] } } }
const payloadSchema = { type: 'object', properties: { incidentId: { type: 'string' }, severity: { type: 'string' } } }

export interface Happening { eventId: string, timestamp: string, data: Json }

/** A subscription by `events/subscribe`. */
export interface Webhook { id: string, name: string, url: string, secret: string, args: Json, cursor: unknown, ttlMs: unknown }

/** How the server reaches a callback URL; answers its status and body. */
export type Post = (url: string, headers: Record<string, string>, body: string) => Promise<{ status: number, text: string }>

export class EventsWorld extends World {
  readonly happened: Happening[] = []
  readonly webhooks = new Map<string, Webhook>()
  /** The params of every events/* request, oldest first. */
  readonly asked: Array<{ method: string, params: Json }> = []
  /** Streams that are open. */
  streaming = 0
  types = [
    {
      name: 'email.received',
      description: 'Fires when a new email arrives in the inbox',
      delivery: ['poll'],
      inputSchema: { type: 'object' },
      payloadSchema: { type: 'object' }
    },
    {
      name: 'incident.created',
      description: 'Fires when a new incident is created',
      delivery: ['webhook', 'push', 'poll'],
      inputSchema,
      payloadSchema,
      _meta: { vendor: 1 }
    }
  ]

  post: Post = async () => { throw new Error('nobody can be reached') }
  readonly #listeners = new Set<(happening: Happening) => void>()

  override make (): Server {
    const server = super.make()
    server.registerCapabilities({ extensions: { [extension]: { listChanged: true } } })
    const on = (method: string, answer: (params: Json, context: ServerContext) => Promise<Json>): void => {
      server.setRequestHandler(method, { params: anything }, async (given, context) => {
        const params = given as Json
        const { _meta: _, ...own } = params
        this.asked.push({ method, params: own })
        return await answer(params, context)
      })
    }
    on('events/list', async () => ({ events: this.types }))
    on('events/poll', async ({ name, cursor, maxEvents }) => {
      this.#know(name)
      if ((cursor ?? null) === null) {
        return { events: [], cursor: String(this.happened.length), truncated: false, hasMore: false, nextPollMs: 50 }
      }
      const from = Number(cursor)
      const to = Math.min(this.happened.length, from + Number(maxEvents ?? 50))
      const events = this.happened.slice(from, to).map((each) => ({ ...each, name }))
      return { events, cursor: String(to), truncated: false, hasMore: to < this.happened.length, nextPollMs: 50 }
    })
    on('events/stream', async ({ name, cursor }, { mcpReq }) => {
      this.#know(name)
      const _meta = { [subscriptionId]: mcpReq.id }
      const tell = async (method: string, params: Json): Promise<void> => {
        await mcpReq.notify({ method: `notifications/events/${method}`, params: { ...params, _meta } } as unknown as Parameters<typeof mcpReq.notify>[0])
      }
      this.streaming++
      let sent = (cursor ?? null) === null ? this.happened.length : Number(cursor)
      await tell('active', { cursor: String(sent), truncated: false })
      const flush = (): void => {
        while (sent < this.happened.length) {
          const { [sent]: each } = this.happened
          sent++
          void tell('event', { ...each, name, cursor: String(sent) })
        }
      }
      const beat = setInterval(() => { void tell('heartbeat', { cursor: String(sent) }) }, 500)
      this.#listeners.add(flush)
      flush()
      await new Promise((resolve) => { mcpReq.signal.addEventListener('abort', resolve, { once: true }) })
      this.#listeners.delete(flush)
      clearInterval(beat)
      this.streaming--
      return {}
    })
    on('events/subscribe', async ({ name, arguments: args, delivery, cursor, ttlMs }) => {
      this.#know(name)
      const { url, secret } = delivery as { url: string, secret: string }
      const id = `sub_${createHash('sha256').update(JSON.stringify([url, name, args])).digest('hex').slice(0, 16)}`
      const webhook = { id, name: String(name), url, secret, args: args as Json, cursor, ttlMs }
      if (!this.webhooks.has(id)) await this.#verify(webhook)
      this.webhooks.set(id, webhook)
      return { id, refreshBefore: new Date(Date.now() + 3_600_000).toISOString(), cursor: String(this.happened.length), truncated: false }
    })
    on('events/unsubscribe', async ({ name, arguments: args, delivery }) => {
      const { url } = delivery as { url: string }
      const id = `sub_${createHash('sha256').update(JSON.stringify([url, name, args])).digest('hex').slice(0, 16)}`
      if (!this.webhooks.delete(id)) throw new ProtocolError(-32023, 'NotFound', { kind: 'subscription' })
      return {}
    })
    return server
  }

  #know (name: unknown): void {
    if (!this.types.some((each) => each.name === name)) throw new ProtocolError(-32023, 'NotFound', { kind: 'event' })
  }

  async #verify (webhook: Webhook): Promise<void> {
    const challenge = randomBytes(16).toString('hex')
    const { status, text } = await this.send(webhook, `msg_verification_${challenge}`, { type: 'verification', challenge })
    if (status !== 200 || (JSON.parse(text) as Json).challenge !== challenge) {
      throw new ProtocolError(-32027, 'CallbackEndpointError', { reason: 'challenge_failed' })
    }
  }

  /** Sends a body to a callback URL, signed as Standard Webhooks say. */
  async send (
    { id, url, secret }: Pick<Webhook, 'id' | 'url' | 'secret'>, messageId: string, body: Json, { now = Date.now() } = {}
  ): Promise<{ status: number, text: string }> {
    const text = JSON.stringify(body)
    const at = String(Math.floor(now / 1_000))
    const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
    const signature = createHmac('sha256', key).update(`${messageId}.${at}.${text}`).digest('base64')
    return await this.post(url, {
      'content-type': 'application/json',
      'webhook-id': messageId,
      'webhook-timestamp': at,
      'webhook-signature': `v1,${signature}`,
      'x-mcp-subscription-id': id
    }, text)
  }

  /** Lets an incident happen. @returns what the callback URLs answered */
  async raise (data: Json, eventId = `evt_${this.happened.length + 1}`): Promise<number[]> {
    const happening = { eventId, timestamp: new Date(1_771_513_200_000).toISOString(), data }
    this.happened.push(happening)
    for (const listener of this.#listeners) listener(happening)
    const answers = [...this.webhooks.values()].map(async (webhook) =>
      await this.send(webhook, eventId, { ...happening, name: webhook.name, cursor: String(this.happened.length) }))
    return (await Promise.all(answers)).map(({ status }) => status)
  }
}

if (/events-server\.[jt]s$/.test(argv[1] ?? '')) {
  const world = new EventsWorld()
  serveStdio(() => {
    const server = world.make()
    server.setRequestHandler('tools/list', async () => ({ tools: [{ name: 'raise', inputSchema: { type: 'object' as const } }] }))
    server.setRequestHandler('tools/call', async ({ params }) => {
      await world.raise(params.arguments ?? {})
      return { content: [] }
    })
    return server
  })
}
