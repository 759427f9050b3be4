import { createPublicKey, type KeyObject } from 'node:crypto'
import { limits } from '../../../base/limits/index.ts'
import type { ProviderClient } from './provider.ts'

/** Which key a token names, and for which algorithm (RFC 7515). */
export interface KeyHeader { readonly kid?: string, readonly alg?: string }

/** The types of keys by the first two letters of algorithms, of those that have a public key (RFC 7518, RFC 8037). */
const keyTypes: Readonly<Record<string, string>> = { RS: 'RSA', PS: 'RSA', ES: 'EC', Ed: 'OKP' }

/** A provider's public keys (RFC 7517). They are fetched again for a key that is unknown, but not at once. */
export class KeySet {
  readonly #client: ProviderClient
  readonly #url: string
  #keys: Promise<ReadonlyArray<Record<string, unknown>>> | undefined
  #fetched = -Infinity

  constructor (client: ProviderClient, url: string) {
    this.#client = client
    this.#url = url
  }

  /** The key of a token. @throws UpstreamFailed, UpstreamSlow; Error when there is none */
  async find (header: KeyHeader): Promise<KeyObject> {
    const known = this.#keys && pick(await this.#keys, header)
    if (known) return known
    const key = pick(await this.#load(), header)
    if (!key) throw this.#client.failure('signed with a key that it does not publish')
    return key
  }

  async #load (): Promise<ReadonlyArray<Record<string, unknown>>> {
    if (this.#keys && performance.now() - this.#fetched < limits.social.keysAge) return await this.#keys
    this.#fetched = performance.now()
    const loading = this.#client.get(this.#url).then((answer) => {
      const keys: unknown = 'keys' in answer ? answer.keys : undefined
      return Array.isArray(keys) ? keys.filter((key): key is Record<string, unknown> => typeof key === 'object' && key !== null) : []
    })
    this.#keys = loading
    loading.catch(() => { if (this.#keys === loading) this.#keys = undefined })
    return await loading
  }
}

function pick (keys: ReadonlyArray<Record<string, unknown>>, { kid, alg = '' }: KeyHeader): KeyObject | undefined {
  const type = keyTypes[alg.slice(0, 2)]
  const fitting = keys.filter((key) =>
    key.kty === type && (key.use === undefined || key.use === 'sig') && (key.alg === undefined || key.alg === alg) &&
    (kid === undefined || key.kid === kid))
  const [key, another] = fitting
  if (!key || (kid === undefined && another)) return undefined
  try {
    return createPublicKey({ key, format: 'jwk' })
  } catch {
    return undefined
  }
}
