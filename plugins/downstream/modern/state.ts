import { hash, randomBytes } from 'node:crypto'
import { StorageError } from '../../../db/store.ts'
import type { UsedRequestStates } from '../../../db/ports/login-states.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { argumentsTextOf, type Exchange } from '../../../protocol/exchange.ts'
import { canonicalJson } from '../../../protocol/json.ts'
import { describeJsonAmbiguity } from '../../../protocol/json-ambiguity.ts'
import { mcpNameMemberOf } from '../../../protocol/modern/envelope.ts'
import type { View } from '../../settings/index.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import { createProcessSealer, type Sealer } from '../../base/secrets/index.ts'
import { downstreamLimits } from '../limits.ts'

// A client gets a `requestState` in an `input_required` result, and returns it with its answers (MCP 2026-07-28, "Multi
// Round-Trip Requests"). It is encrypted, authenticated, and bound to a principal and a request.

/**
 * The content of a `requestState`, before it is sealed. `call`: a call that waits in this process for the answers of a
 * round. `server`: the `requestState` of a modern server (`state`), the fingerprint of that server (`server`), and the
 * id of the sealed state of the previous round (`after`). `again`: no data; the request is sent to the server a second
 * time.
 */
export type RequestState =
  { readonly kind: 'call', readonly id: string, readonly round: number } |
  { readonly kind: 'server', readonly server: string, readonly state: string, readonly after?: string } |
  { readonly kind: 'again' }

/** The request that a state belongs to. */
export type StateBinding = Readonly<Pick<Exchange<View>, 'view' | 'method' | 'params' | 'paramsText'>>

interface Content {
  readonly principal: string, readonly request: string, readonly until: number, readonly state: RequestState
}

const invalidStateError = (): RpcError =>
  new RpcError(rpcCode.invalidParams, 'Invalid params: this requestState is not valid for this request')
const expiredStateError = (): RpcError =>
  new RpcError(rpcCode.invalidParams, 'The requestState has expired; send the request again without it')
export const callNotHereError = (): RpcError => new RpcError(
  rpcCode.invalidParams,
  'The call that waits for these answers has ended, or belongs to another gateway process, or to one before a ' +
  'restart; send the request again without requestState'
)

export const stateAlreadyUsedError = (): RpcError =>
  new RpcError(rpcCode.invalidParams, 'This requestState was already answered')

/** Max number of ids of answered states that are kept; beyond that, the oldest is dropped. */
const maxAnswered = 10_000
/** Authenticated with each sealed state, so that text sealed for another purpose is not accepted as one. */
const place = 'requestState'

/** A returned `requestState` for which no call is parked here. */
export interface ResumedState {
  /** The server that issued the state (`serverIdentityOf`), if any. */
  readonly server: string | undefined
  /** The id of the state (`RequestStateSealer.idOf`). */
  readonly id: string
  /** The request's `inputResponses`, as JSON text. */
  readonly answersText: string
  /** Marks the state as used, since it can be used once. */
  readonly use: () => Promise<void>
}

/** Seals states, and opens them for their principal and request. */
export class RequestStateSealer {
  /** Identifies this process, so that states of other processes are recognized. */
  readonly #instance = randomBytes(6).toString('base64url')
  readonly #own = createProcessSealer()
  /** Seals states that other processes may open. */
  readonly #sealer: Sealer | undefined
  readonly #used: UsedRequestStates
  /** The ids of states whose next round was answered here. */
  readonly #answered = new BoundedMap<string, true>(maxAnswered)

  /**
   * @param used records which states were used; if a restart loses the records, only this process can open its states,
   *   so that no state can be used twice
   * @param sealer seals states for all replicas; undefined if only this process needs to open them
   */
  constructor (used: UsedRequestStates, sealer?: Sealer) {
    this.#used = used
    this.#sealer = used.outlivesProcess ? sealer : undefined
  }

  /** Seals a state for a client. @param until the time at which the state expires, in ms since 1970 */
  seal (state: RequestState, binding: StateBinding, until: number): string {
    const content: Content = { principal: binding.view.principal.key, request: requestDigest(binding), until, state }
    const text = JSON.stringify(content)
    if (state.kind !== 'call' && this.#sealer) return `r.${this.#sealer.seal(text, place)}`
    return `p.${this.#instance}.${this.#own.seal(text, place)}`
  }

  /**
   * Opens a state that a client returned. The state of the previous round becomes invalid in this process.
   * @throws RpcError -32602 for a state that was changed, has expired, belongs to another principal, request or
   * process, or to an earlier round
   */
  open (sealed: string, binding: StateBinding): RequestState {
    const { principal, request, until, state } = this.#read(sealed)
    if (principal !== binding.view.principal.key || request !== requestDigest(binding)) throw invalidStateError()
    if (until < Date.now()) throw expiredStateError()
    if (this.#answered.has(this.idOf(sealed))) throw stateAlreadyUsedError()
    if (state.kind === 'server' && state.after !== undefined) this.#answered.set(state.after, true)
    return state
  }

  /** Returns the id of a sealed state: its SHA-256 in base64url. */
  idOf (sealed: string): string { return hash('sha256', sealed, 'base64url') }

  /**
   * Consumes a state to which no parked call belongs; such a state can be used once. A repeated request with the same
   * answers is accepted for a while, since the response to the first request may have been lost.
   * @param answersText the `inputResponses` of the request
   * @throws RpcError -32602 if the state was already used, -32001 if the database is not available
   */
  async use (sealed: string, answersText: string): Promise<void> {
    const answers = hash('sha256', answersText)
    try {
      const first = await this.#used.recordUse(
        hash('sha256', sealed), answers, Date.now() + downstreamLimits.parked.time
      )
      if (first.answers !== answers || first.age > downstreamLimits.parked.again) throw stateAlreadyUsedError()
    } catch (error) {
      if (error instanceof StorageError) {
        throw new RpcError(rpcCode.unavailable, `${error.message}; send the request again`, 'internal')
      }
      throw error
    }
  }

  #read (sealed: string): Content {
    const [, own, instance, text = ''] = /^(?:r|(p)\.([\w-]+))\.(.+)$/s.exec(sealed) ?? []
    if (own !== undefined && instance !== this.#instance) throw callNotHereError()
    try {
      const sealer = own === undefined ? this.#sealer : this.#own
      if (sealer) return JSON.parse(sealer.unseal(text, place)) as Content
    } catch { /* It was changed. */ }
    throw invalidStateError()
  }
}

/**
 * Returns a digest of a request's route, method, item and arguments, regardless of member order, unless other programs
 * may read the arguments differently: then their text counts, since somebody agreed to it. It does not depend on
 * the items that hooks hide from the view: they are determined for each request, and may change before the client
 * answers.
 */
function requestDigest ({ view, method, params, paramsText }: StateBinding): string {
  const member = mcpNameMemberOf(method)
  const name = member === undefined ? undefined : params[member]
  const { key } = view.unfiltered ?? view
  const argsText = argumentsTextOf({ paramsText })
  const text = describeJsonAmbiguity(argsText) === undefined ? [] : [argsText]
  return hash('sha256', canonicalJson([key, method, name ?? null, params.arguments ?? null, ...text]), 'base64url')
}
