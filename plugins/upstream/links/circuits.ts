import type { UpstreamError } from '../../../protocol/errors.ts'
import { upstreamLimits } from '../limits.ts'
import { UserActionRequired } from '../login/problems.ts'
import { backoffDelay } from './heartbeat.ts'

/** The state of one slot's circuit breaker, which refuses requests for a while after consecutive failures. */
export class Circuit {
  /** The number of failures since the last response. */
  failures = 0
  /** Whether the circuit is open: requests fail at once until `until`, and wait for a probe after that. */
  isOpen = false
  /** The end of the pause in which requests are refused without a probe, in ms since the epoch. */
  until = 0
  /** How often the circuit was opened since the last response. */
  timesOpened = 0
  /** The probe in progress, which all requests wait for. */
  probe: Promise<void> | undefined
  /** Whether a request has failed since the last response, rather than only attempts to connect. */
  hasFailedRequests = false
}

/**
 * The circuit breakers of one server, one for each slot, since the server may fail for some clients only. A circuit
 * opens after several failures without a response in between; requests on its slot then fail at once. After a pause,
 * requests wait for a probe: a new connection or a ping. No client request is used as a probe.
 */
export class Circuits {
  readonly #circuits: () => Iterable<Circuit>
  readonly #log: (level: 'info' | 'warn', sentence: string) => void
  readonly #now: () => number
  /** Closed links that were counted as one failure: the failures of their other requests are not counted. */
  readonly #lost = new WeakSet<object>()
  /** Whether the refusal of requests has been logged. */
  #isLogged = false

  /** @param circuits returns the circuits of all slots @param now the clock, in ms since the epoch */
  constructor (
    circuits: () => Iterable<Circuit>, log: (level: 'info' | 'warn', sentence: string) => void, now = Date.now
  ) {
    this.#circuits = circuits
    this.#log = log
    this.#now = now
  }

  /** Whether requests on some slot are refused, or wait for a probe. */
  get isAnyOpen (): boolean { return [...this.#circuits()].some(({ isOpen }) => isOpen) }

  /** A warning for the server's managers while requests are refused; otherwise undefined. */
  get sentence (): string | undefined {
    return this.isAnyOpen ? 'it keeps failing: requests are refused at once until a check succeeds' : undefined
  }

  /** Returns how long requests are still refused at once, in ms; 0 if the next one waits for a probe. */
  pauseOf ({ until }: Circuit): number { return Math.max(until - this.#now(), 0) }

  /**
   * Records a failed connection or request.
   * @param link the link of the request; undefined for a connection or probe
   */
  recordFailure (circuit: Circuit, error: UpstreamError, link?: { readonly closed: boolean }): void {
    if (!isFailure(error) || (link && this.#lost.has(link))) return
    if (link?.closed === true) this.#lost.add(link)
    circuit.hasFailedRequests ||= link !== undefined
    circuit.failures++
    if (circuit.failures < upstreamLimits.circuit.failures || this.pauseOf(circuit) > 0) return
    circuit.isOpen = true
    circuit.until = this.#now() + Math.min(backoffDelay(++circuit.timesOpened), upstreamLimits.circuit.pause)
    if (this.#isLogged) return
    this.#isLogged = true
    const count = upstreamLimits.circuit.failures
    this.#log('warn', `it failed ${count} times in a row: requests are refused at once until a check succeeds`)
  }

  /**
   * Records a successful probe or connection, which closes the circuit. If requests had failed, one more failure opens
   * the closed circuit again.
   */
  recordProbe (circuit: Circuit): void {
    if (!circuit.hasFailedRequests) { this.recordAnswer(circuit); return }
    if (!circuit.isOpen) return
    circuit.isOpen = false
    circuit.failures = upstreamLimits.circuit.failures - 1
  }

  /** Records a response to a request, which closes the circuit. */
  recordAnswer (circuit: Circuit): void {
    circuit.failures = 0
    circuit.timesOpened = 0
    circuit.isOpen = false
    circuit.hasFailedRequests = false
    if (!this.#isLogged || this.isAnyOpen) return
    this.#isLogged = false
    this.#log('info', 'it answers again')
  }
}

/** Whether an error shows that the server itself, or the network path to it, does not work. */
function isFailure (error: UpstreamError): boolean {
  if (error instanceof UserActionRequired) return false
  switch (error.fault) {
    case 'unreachable': return true
    // A response that is too large, or not JSON, comes from a tool of a server that works.
    case 'broken': return !error.isAnswered
    case 'timeout': return false
    case 'refused': return error.status === undefined || error.status >= 500
    default: return false
  }
}
