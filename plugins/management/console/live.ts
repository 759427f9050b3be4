import type { FastifyReply, FastifyRequest } from 'fastify'
import { messageOf } from '../../../db/errors.ts'
import { sha256 } from '../../base/secrets/index.ts'
import type { Principal, Settings } from '../../settings/index.ts'
import { managementLimits } from '../limits.ts'
import type { SignedInSessions, SignedInSession } from './sessions.ts'

/**
 * Returns the data of a page that may change while the page is open, or a promise of the data. The page is updated when
 * the JSON of the data has changed.
 */
export type LoadLivePageData = (principal: Principal, params: Readonly<Record<string, unknown>>) => unknown

interface Stream {
  readonly signedIn: SignedInSession
  /** The `LoadLivePageData` of the page, with its parameters. */
  readonly watch: (principal: Principal) => unknown
  readonly raw: FastifyReply['raw']
  /** The digest of the last value of `watch`. */
  seen: string
  /** Whether a call of `watch` is pending. */
  isChecking: boolean
}

/** Time between two checks for changed data, in ms. */
const checkInterval = 1_000
/** Number of checks after which a keep-alive comment is sent, and the stored session is checked as well. */
const checksPerKeepAlive = 20

/** The SSE streams that notify open pages of changed data. A stream ends with its session. */
export class LiveStreams {
  readonly #sessions: SignedInSessions
  readonly #settings: Settings
  readonly #streams = new Set<Stream>()
  #timer: NodeJS.Timeout | undefined
  #checks = 0
  #isClosed = false

  constructor (sessions: SignedInSessions, settings: Settings) {
    this.#sessions = sessions
    this.#settings = settings
  }

  /** Returns a digest of the data that a page is about to show. */
  async digestOf (
    watch: LoadLivePageData, principal: Principal, params: Readonly<Record<string, unknown>>
  ): Promise<string> {
    return digestOf(await watch(principal, params))
  }

  /**
   * Responds with a stream. If the user already has `streamsPerUser` streams, the oldest one is closed.
   * @param seen the digest (`digestOf`) of the data that the page shows; default: the digest of the current data
   * @throws the error of `watch`, for example if the shown object does not exist
   */
  async open (reply: FastifyReply, signedIn: SignedInSession, watch: Stream['watch'], seen?: string): Promise<void> {
    const now = digestOf(await watch(signedIn.principal))
    const own = [...this.#streams].filter(({ signedIn: { principal } }) => principal.key === signedIn.principal.key)
    if (own[0] && own.length >= managementLimits.console.streamsPerUser) this.#end(own[0], laterEvent)
    const { raw } = reply.hijack()
    // The browser may have disconnected in the meantime.
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
    raw.write('retry: 3000\nevent: hello\ndata: {}\n\n')
    if (this.#isClosed) this.#end(stream)
    else this.#timer ??= setInterval(() => { this.#check() }, checkInterval).unref()
  }

  /** Ends the streams of a session that has ended. @param id the `id` of the `SignedInSession` */
  end (id: string): void {
    for (const stream of this.#streams) if (stream.signedIn.id === id) this.#end(stream, endedEvent)
  }

  /** Ends all streams, at shutdown. */
  close (): void {
    this.#isClosed = true
    for (const stream of this.#streams) this.#end(stream)
  }

  /**
   * Ends a stream. It is removed at once: its connection closes only when the browser has received everything, and
   * writing to an ended response is an error.
   * @param event the last event; without `endedEvent`, the browser reconnects
   */
  #end (stream: Stream, event?: string): void {
    this.#remove(stream)
    stream.raw.end(event)
  }

  #remove (stream: Stream): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #check (): void {
    const isKeepAliveDue = ++this.#checks % checksPerKeepAlive === 0
    for (const stream of this.#streams) {
      const { signedIn: { id, principal }, raw } = stream
      const current = principal.inSnapshot?.(this.#settings.current)
      if (!current) {
        this.#end(stream, endedEvent)
        continue
      }
      if (isKeepAliveDue) {
        raw.write(': \n\n')
        // While the storage is unavailable, only `principal.inSnapshot` decides.
        this.#sessions.isValid(id).then((isValid) => {
          if (!isValid && this.#streams.has(stream)) this.#end(stream, endedEvent)
        }, () => {})
      }
      void this.#sendChange(stream, { ...current, address: principal.address })
    }
  }

  async #sendChange (stream: Stream, principal: Principal): Promise<void> {
    // `watch` may take longer than the time between two checks.
    if (stream.isChecking) return
    stream.isChecking = true
    const now = digestOf(await dataOrError(stream.watch, principal))
    stream.isChecking = false
    const { raw } = stream
    // A browser that does not read gets no further events until its buffer is drained.
    if (now === stream.seen || raw.writableNeedDrain || !this.#streams.has(stream)) return
    stream.seen = now
    raw.write('event: changed\ndata: {}\n\n')
  }
}

/** Makes the browser reconnect after a minute, so that pages beyond the limit do not end each other at once. */
const laterEvent = 'retry: 60000\n\n'

/** The event that tells the browser that the session has ended. */
const endedEvent = 'event: ended\ndata: {}\n\n'

/**
 * Returns the data of a page, or the message of its error, for example if the shown server was removed. Since the
 * message differs from the former data, the browser requests the page again, and shows the response.
 */
async function dataOrError (watch: Stream['watch'], principal: Principal): Promise<unknown> {
  try {
    return await watch(principal)
  } catch (error) {
    return messageOf(error)
  }
}

const digestOf = (shown: unknown): string => sha256(JSON.stringify(shown) ?? '')

/** Whether a request comes from a page that refreshes itself, which does not extend the session. */
export const isAutoRefresh = ({ headers }: FastifyRequest): boolean => headers['x-console-refresh'] !== undefined
