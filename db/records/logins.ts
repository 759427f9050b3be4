// The states of browsers: consents, login sessions at the authorization server and in the console, and request states
// that clients returned.
import type { Consent, Consents } from '../ports/consents.ts'
import type { ConsoleSession, ConsoleSessions } from '../ports/console-sessions.ts'
import type { LoginState, LoginStates, RequestStateUse, UsedRequestStates } from '../ports/login-states.ts'
import { recordCollections, type RecordCollection, type Records } from '../records.ts'
import { clientLabel } from './labels.ts'

const consentKey = (username: string, clientId: string): string => JSON.stringify([username, clientId])

/** Consents as records, owned by their users. */
export class RecordedConsents implements Consents {
  readonly #records: Records
  readonly #consents: RecordCollection

  constructor (records: Records, consents: RecordCollection = recordCollections.consents) {
    this.#records = records
    this.#consents = consents
  }

  async put ({ username, clientId, scope, resource, mark, grantedAt }: Consent): Promise<void> {
    const more = { ...resource === undefined ? {} : { resource }, ...mark === undefined ? {} : { mark } }
    await this.#records.put(this.#consents, [{
      key: consentKey(username, clientId),
      value: { username, clientId, scope, ...more, grantedAt } satisfies Consent,
      owner: username,
      labels: [clientLabel(clientId)],
      at: grantedAt
    }])
  }

  async find (username: string, clientId: string): Promise<Consent | undefined> {
    return (await this.#records.find(this.#consents, consentKey(username, clientId)))?.value as Consent | undefined
  }

  async list (username: string): Promise<Consent[]> {
    return (await this.#records.list(this.#consents, { owner: username })).map(({ value }) => value as Consent)
  }

  async remove (username: string, clientId: string): Promise<boolean> {
    return await this.#records.remove(this.#consents, consentKey(username, clientId)) > 0
  }

  async removeAll (target: { readonly username: string } | { readonly clientId: string }): Promise<void> {
    const which = 'username' in target ? { owner: target.username } : { labels: [clientLabel(target.clientId)] }
    await this.#records.remove(this.#consents, which)
  }
}

const uidLabel = (uid: string): string => `uid:${uid}`

/**
 * Browser states as records, owned by their users. A state that cannot be decrypted is treated as ended: the user logs
 * in again.
 */
export class RecordedLoginStates implements LoginStates {
  readonly #records: Records
  readonly #states: RecordCollection

  constructor (records: Records, states: RecordCollection = recordCollections.loginStates) {
    this.#records = records
    this.#states = states
  }

  async put (hash: string, state: LoginState, expiresAt: number): Promise<void> {
    const { uid, username: owner, createdAt: at } = state
    const labels = uid === undefined ? [] : [uidLabel(uid)]
    await this.#records.put(this.#states, [{ key: hash, value: state, owner, labels, at, expiresAt }])
  }

  async find (hash: string): Promise<LoginState | undefined> {
    return (await this.#records.find(this.#states, hash))?.value as LoginState | undefined
  }

  async findByUid (uid: string): Promise<LoginState | undefined> {
    const [found] = await this.#records.list(this.#states, { labels: [uidLabel(uid)] })
    return found?.value as LoginState | undefined
  }

  async remove (hash: string): Promise<void> {
    await this.#records.remove(this.#states, hash)
  }

  async removeAll (username: string): Promise<void> {
    await this.#records.remove(this.#states, { owner: username })
  }
}

export class RecordedUsedStates implements UsedRequestStates {
  readonly outlivesProcess: boolean
  readonly #records: Records
  readonly #states: RecordCollection

  constructor (records: Records, states: RecordCollection = recordCollections.usedStates) {
    this.outlivesProcess = records.outlivesProcess
    this.#records = records
    this.#states = states
  }

  async recordUse (hash: string, answers: string, expiresAt: number): Promise<RequestStateUse> {
    if (await this.#records.swap(this.#states, undefined, { key: hash, value: answers, expiresAt })) {
      return { answers, age: 0 }
    }
    const first = await this.#records.find(this.#states, hash)
    return first === undefined ? { answers, age: 0 } : { answers: first.value as string, age: first.age }
  }
}

/** Console sessions as records, owned by their users. */
export class RecordedConsoleSessions implements ConsoleSessions {
  readonly #records: Records
  readonly #sessions: RecordCollection

  constructor (records: Records, sessions: RecordCollection = recordCollections.consoleSessions) {
    this.#records = records
    this.#sessions = sessions
  }

  async begin (hash: string, { username, mark }: ConsoleSession, idle: number): Promise<void> {
    const value = { username, mark } satisfies ConsoleSession
    await this.#records.put(this.#sessions, [{ key: hash, value, owner: username, expiresIn: idle }])
  }

  async find (hash: string): Promise<ConsoleSession & { readonly age: number } | undefined> {
    const found = await this.#records.find(this.#sessions, hash)
    return found && { ...found.value as ConsoleSession, age: found.age }
  }

  async renew (hash: string, idle: number): Promise<void> {
    const found = await this.#records.find(this.#sessions, hash)
    if (found === undefined) return
    const { value, owner, version } = found
    await this.#records.swap(this.#sessions, version, {
      key: hash, value, ...owner === undefined ? {} : { owner }, expiresIn: idle
    })
  }

  async end (hash: string): Promise<void> {
    await this.#records.remove(this.#sessions, hash)
  }

  async endAll (username: string): Promise<void> {
    await this.#records.remove(this.#sessions, { owner: username })
  }
}
