import type { FastifyReply, FastifyRequest } from 'fastify'
import { sha256 } from '../../base/secrets/index.ts'
import type { Principal, Settings } from '../../settings/index.ts'
import { managementLimits } from '../limits.ts'
import type { Sessions, SignedIn } from './sessions.ts'

/** What a page shows, as far as it changes by itself. Compared as JSON. */
export type Watch = (principal: Principal, params: Readonly<Record<string, unknown>>) => unknown

interface Stream {
  readonly signedIn: SignedIn
  readonly watch: (principal: Principal) => unknown
  readonly raw: FastifyReply['raw']
  /** A digest of what the page showed last. */
  seen: string
}

/** Time between two looks, in ms. */
const interval = 1_000
/** After so many looks: a comment that keeps the connection, and a look at the stored session. */
const rareLook = 20

/** The streams by which open pages are told that they have changed. They end with the session. */
export class LiveStreams {
  readonly #sessions: Sessions
  readonly #settings: Settings
  readonly #streams = new Set<Stream>()
  #timer: NodeJS.Timeout | undefined
  #looks = 0

  constructor (sessions: Sessions, settings: Settings) {
    this.#sessions = sessions
    this.#settings = settings
  }

  /** Answers with a stream. Of a user's streams beyond the bound, the oldest ends. */
  open (reply: FastifyReply, signedIn: SignedIn, watch: Stream['watch']): void {
    const own = [...this.#streams].filter(({ signedIn: { principal } }) => principal.key === signedIn.principal.key)
    if (own.length >= managementLimits.console.streams) own[0]?.raw.end()
    const { raw } = reply.hijack()
    raw.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff'
    })
    const stream = { signedIn, watch, raw, seen: digestOf(watch(signedIn.principal)) }
    this.#streams.add(stream)
    raw.once('close', () => { this.#remove(stream) })
    raw.write('event: hello\ndata: {}\n\n')
    this.#timer ??= setInterval(() => { this.#look() }, interval).unref()
  }

  /** Ends the streams of a session. @param id of `SignedIn` */
  end (id: string): void {
    for (const stream of this.#streams) if (stream.signedIn.id === id) finish(stream)
  }

  close (): void {
    clearInterval(this.#timer)
    for (const { raw } of this.#streams) raw.end()
  }

  #remove (stream: Stream): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look (): void {
    const isRare = ++this.#looks % rareLook === 0
    for (const stream of this.#streams) {
      const { signedIn: { id, principal }, watch, raw } = stream
      const current = principal.standing?.(this.#settings.current)
      if (!current) {
        finish(stream)
        continue
      }
      if (isRare) {
        raw.write(': \n\n')
        // While the storage is away, the settings that are known decide.
        this.#sessions.stands(id).then((stands) => { if (!stands) finish(stream) }, () => {})
      }
      const now = digestOf(watch(current))
      // A browser that does not read is told once.
      if (now === stream.seen || raw.writableNeedDrain) continue
      stream.seen = now
      raw.write('event: changed\ndata: {}\n\n')
    }
  }
}

const finish = ({ raw }: Stream): void => { raw.end('event: ended\ndata: {}\n\n') }

const digestOf = (shown: unknown): string => sha256(JSON.stringify(shown) ?? '')

/** Whether a request comes from a page that refreshes itself: it is no use of the session. */
export const isRefresh = ({ headers }: FastifyRequest): boolean => headers['x-console-refresh'] !== undefined
