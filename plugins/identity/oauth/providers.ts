import type { Provider } from 'oidc-provider'
import { BoundedMap } from '../../base/limits/index.ts'
import { identityLimits } from '../limits.ts'

/** The oidc-provider instance of each issuer, created on first use. After a failure, the next use tries again. */
export class IssuerProviders {
  readonly #load: (issuer: string) => Promise<Provider>
  readonly #known = new BoundedMap<string, Promise<Provider>>(identityLimits.oauth.issuers)

  constructor (load: (issuer: string) => Promise<Provider>) {
    this.#load = load
  }

  /** Returns the provider of an issuer. @throws the error of `load` */
  async get (issuer: string): Promise<Provider> {
    const known = this.#known.get(issuer)
    if (known) return await known
    const loading = this.#load(issuer)
    this.#known.set(issuer, loading)
    try {
      return await loading
    } catch (error) {
      if (this.#known.get(issuer) === loading) this.#known.delete(issuer)
      throw error
    }
  }
}
