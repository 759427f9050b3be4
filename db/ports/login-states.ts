import { recordCollections, RecordPort } from '../records.ts'

const { loginStates, usedStates } = recordCollections

/**
 * A stored state that a browser identifies by a cookie, or by the ticket in a link. The kinds: `session`, a login
 * session at the gateway's authorization server; `interaction`, an authorization request that waits for its user;
 * `upstream-login`, a login at an upstream server that was started; `user-values`, a page on which a user enters values
 * for a server.
 */
export interface BrowserState {
  readonly kind: 'session' | 'interaction' | 'upstream-login' | 'user-values'
  /** Another identifier of the state, which is not a credential, unlike the cookie or ticket. */
  readonly uid?: string
  readonly username?: string
  /** The content of the state, as plain JSON. A database stores it encrypted. */
  readonly value: unknown
  readonly createdAt: number
}

const uidLabel = (uid: string): string => `uid:${uid}`

/**
 * Stores login states as records, keyed by the SHA-256 of the cookie or ticket in hex, owned by the user. Without a
 * database, they are lost at a restart. A state that cannot be decrypted is treated as expired, so that the user logs
 * in again.
 */
export class BrowserStates extends RecordPort {
  async put (hash: string, state: BrowserState, expiresAt: number): Promise<void> {
    const { uid, username: owner, createdAt: at } = state
    const labels = uid === undefined ? [] : [uidLabel(uid)]
    await this.records.put(loginStates, [{ key: hash, value: state, owner, labels, at, expiresAt }])
  }

  /** Finds a state. @returns undefined if it is unknown or has expired */
  async find (hash: string): Promise<BrowserState | undefined> {
    return (await this.records.find(loginStates, hash))?.value as BrowserState | undefined
  }

  async findByUid (uid: string): Promise<BrowserState | undefined> {
    const [found] = await this.records.list(loginStates, { labels: [uidLabel(uid)] })
    return found?.value as BrowserState | undefined
  }

  async remove (hash: string): Promise<void> {
    await this.records.remove(loginStates, hash)
  }

  /** Removes all states of a user. */
  async removeAll (username: string): Promise<void> {
    await this.records.remove(loginStates, { owner: username })
  }
}

/**
 * The first use of a `requestState`. `answers`: SHA-256 of the answers sent with it, in hex; `age`: the time since that
 * use, in ms.
 */
interface RequestStateUse { readonly answers: string, readonly age: number }

/** Records which values of `requestState` (MCP 2026-07-28) clients have returned, keyed by their SHA-256 in hex. */
export class UsedRequestStates extends RecordPort {
  /** Whether recorded uses survive a restart. If not, states issued by a former process must be refused. */
  get outlivesProcess (): boolean { return this.records.outlivesProcess }

  /**
   * Records the use of a state. If several callers, on any replica, use the same state, exactly one is the first.
   * @param hash SHA-256 of the state, in hex
   * @param answers SHA-256 of the answers sent with the state, in hex
   * @param expiresAt when the state itself expires, in ms since 1970: the record is kept until then
   * @returns the first use of the state: this use, if the state was not used before
   */
  async recordUse (hash: string, answers: string, expiresAt: number): Promise<RequestStateUse> {
    if (await this.records.swap(usedStates, undefined, { key: hash, value: answers, expiresAt })) {
      return { answers, age: 0 }
    }
    const first = await this.records.find(usedStates, hash)
    return first === undefined ? { answers, age: 0 } : { answers: first.value as string, age: first.age }
  }
}
