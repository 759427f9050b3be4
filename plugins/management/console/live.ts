import type { FastifyReply, FastifyRequest } from 'fastify'
import { messageOf } from '../../../db/errors.ts'
import { sha256 } from '../../base/secrets/index.ts'
import type { Principal, Settings } from '../../settings/index.ts'
import { managementLimits } from '../limits.ts'
import type { ConsoleSessionStore, SignedInSession } from './sessions.ts'

/** Returns the data of a page that can change without a request, or a promise of it. Values are compared as JSON. */
export type LivePageData = (principal: Principal, params: Readonly<Record<string, unknown>>) => unknown

interface Stream {
  readonly signedIn: SignedInSession
  readonly watch: (principal: Principal) => unknown
  readonly raw: FastifyReply['raw']
  /** The digest of the last value of `watch`. */
  seen: string
  /** Whether a call of `watch` is pending. */
  isChecking: boolean
}

/** Time between two checks, in ms. */
const interval = 1_000
/** Number of checks between two keep-alive comments, with which the stored session is checked too. */
const sessionCheckPeriod = 20

/** SSE streams that notify open pages of changes. They end with the session. */
export class LiveStreams {
  readonly #sessions: ConsoleSessionStore
  readonly #settings: Settings
  readonly #streams = new Set<Stream>()
  #timer: NodeJS.Timeout | undefined
  #checks = 0
  #isClosed = false

  constructor (sessions: ConsoleSessionStore, settings: Settings) {
    this.#sessions = sessions
    this.#settings = settings
  }

  /** Returns a digest of the data that a page is about to show. */
  async digestOf (
    watch: LivePageData, principal: Principal, params: Readonly<Record<string, unknown>>
  ): Promise<string> {
    return digestOf(await watch(principal, params))
  }

  /**
   * Responds with a stream. If the user has the max number of streams, the oldest one ends.
   * @param seen the `digestOf` of the data that the page shows; by default that of the current data
   * @throws what `watch` throws for a page that does not exist
   */
  async open (reply: FastifyReply, signedIn: SignedInSession, watch: Stream['watch'], seen?: string): Promise<void> {
    const now = digestOf(await watch(signedIn.principal))
    const own = [...this.#streams].filter(({ signedIn: { principal } }) => principal.key === signedIn.principal.key)
    if (own.length >= managementLimits.console.streamsPerUser) own[0]?.raw.end()
    const { raw } = reply.hijack()
    // The browser has disconnected meanwhile.
    if (raw.destroyed) return
    raw.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff'
    })
    const stream = { signedIn, watch, raw, seen: seen ?? now, isChecking: false }
    this.#streams.add(stream)
    raw.once('close', () => { this.#remove(stream) })
    raw.write('event: hello\ndata: {}\n\n')
    if (this.#isClosed) raw.end()
    this.#timer ??= setInterval(() => { this.#check() }, interval).unref()
  }

  /** Ends the streams of a session. @param id of `SignedInSession` */
  end (id: string): void {
    for (const stream of this.#streams) if (stream.signedIn.id === id) finish(stream)
  }

  close (): void {
    this.#isClosed = true
    clearInterval(this.#timer)
    for (const { raw } of this.#streams) raw.end()
  }

  #remove (stream: Stream): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #check (): void {
    const isRare = ++this.#checks % sessionCheckPeriod === 0
    for (const stream of this.#streams) {
      const { signedIn: { id, principal }, raw } = stream
      const current = principal.inSnapshot?.(this.#settings.current)
      if (!current) {
        finish(stream)
        continue
      }
      if (isRare) {
        raw.write(': \n\n')
        // While the storage is unavailable, only `principal.inSnapshot` decides.
        this.#sessions.stands(id).then((stands) => { if (!stands) finish(stream) }, () => {})
      }
      void this.#sendChange(stream, { ...current, address: principal.address })
    }
  }

  async #sendChange (stream: Stream, principal: Principal): Promise<void> {
    // The database may take longer than the interval between two checks.
    if (stream.isChecking) return
    stream.isChecking = true
    const now = digestOf(await watched(stream.watch, principal))
    stream.isChecking = false
    const { raw } = stream
    // A browser that does not read gets no further events until its buffer is drained.
    if (now === stream.seen || raw.writableNeedDrain || !this.#streams.has(stream)) return
    stream.seen = now
    raw.write('event: changed\ndata: {}\n\n')
  }
}

const finish = ({ raw }: Stream): void => { raw.end('event: ended\ndata: {}\n\n') }

/**
 * Returns the data of a page, or the message of an error if the page no longer exists, for example because its server
 * was removed. The browser then requests the page again, and shows the response.
 */
async function watched (watch: Stream['watch'], principal: Principal): Promise<unknown> {
  try {
    return await watch(principal)
  } catch (error) {
    return messageOf(error)
  }
}

const digestOf = (shown: unknown): string => sha256(JSON.stringify(shown) ?? '')

/** Whether a request is the refresh of a page, which does not extend the session. */
export const isRefresh = ({ headers }: FastifyRequest): boolean => headers['x-console-refresh'] !== undefined
