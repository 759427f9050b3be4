import type { Adapter, AdapterPayload } from 'oidc-provider'
import type { LoginState, LoginStates } from '../../../../db/ports.ts'
import { sha256 } from '../../../base/secrets/index.ts'
import { parseAccountId } from '../identifiers.ts'

/** Where the states are stored, and whether an account still stands. */
interface LoginStateStorage { readonly loginStates: LoginStates, readonly stands: (accountId: string) => boolean }

const unused = async (): Promise<undefined> => undefined

/** Login sessions of browsers, and authorization requests that wait for a user. */
export class LoginStateAdapter implements Adapter {
  readonly #storage: LoginStateStorage
  readonly #kind: 'session' | 'interaction'
  readonly findByUserCode = unused
  readonly consume = unused
  readonly revokeByGrantId = unused

  constructor (storage: LoginStateStorage, kind: 'session' | 'interaction') {
    this.#storage = storage
    this.#kind = kind
  }

  async upsert (id: string, { jti: _, ...payload }: AdapterPayload, expiresIn = 0): Promise<void> {
    const account = payload.accountId ?? payload.session?.accountId
    // Neither the cookie of the session nor the id of the interaction is stored in plain.
    const value = {
      ...payload,
      ...(payload.session === undefined ? {} : { session: { ...payload.session, cookie: undefined } }),
      ...(payload.returnTo === undefined ? {} : { returnTo: payload.returnTo.replace(id, placeholder) })
    }
    const username = account === undefined ? undefined : parseAccountId(account).username
    // The uid of an interaction is its id.
    const uid = this.#kind === 'session' ? payload.uid : undefined
    const state = { kind: this.#kind, uid, username, value, createdAt: Date.now() }
    await this.#storage.loginStates.put(sha256(id), state, Date.now() + expiresIn * 1_000)
  }

  async find (id: string): Promise<AdapterPayload | undefined> {
    return this.#toPayload(id, await this.#storage.loginStates.find(sha256(id)))
  }

  async findByUid (uid: string): Promise<AdapterPayload | undefined> {
    return this.#toPayload('', await this.#storage.loginStates.findByUid(uid))
  }

  async destroy (id: string): Promise<void> { await this.#storage.loginStates.remove(sha256(id)) }

  /** A session of an account that does not stand any more is none: its browser is asked to log in. */
  #toPayload (id: string, state: LoginState | undefined): AdapterPayload | undefined {
    if (state?.kind !== this.#kind) return undefined
    const payload = state.value as AdapterPayload
    if (payload.accountId !== undefined && !this.#storage.stands(payload.accountId)) return undefined
    return { ...payload, jti: id, ...(payload.returnTo === undefined ? {} : { returnTo: payload.returnTo.replace(placeholder, id) }) }
  }
}

/** Stands for the id of an interaction in what is stored of it. */
const placeholder = '{id}'
