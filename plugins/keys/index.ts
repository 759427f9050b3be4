import fp from 'fastify-plugin'
import type { Snapshot } from '../../db/store.ts'
import type { BearerKey } from '../../schemas/settings.ts'
import { sha256 } from '../secrets/hash.ts'

declare module 'fastify' {
  interface FastifyInstance { keys: Keys }
}

/** Bearer keys, found by the token that a caller presents. */
export class Keys {
  readonly #snapshot: () => Snapshot
  #byHash = new Map<string, BearerKey>()
  #version = -1

  constructor (snapshot: () => Snapshot) {
    this.#snapshot = snapshot
  }

  /** The enabled key with this token. One hash and one look-up, however many keys there are. */
  find (token: string): BearerKey | undefined {
    const snapshot = this.#snapshot()
    if (snapshot.version !== this.#version) {
      this.#version = snapshot.version
      this.#byHash = new Map([...snapshot.keys.values()].flatMap((key) => {
        const hash = key.tokenHash ?? (key.token === undefined ? undefined : sha256(key.token))
        return hash === undefined || key.enabled === false ? [] : [[hash, key]]
      }))
    }
    return this.#byHash.get(sha256(token))
  }
}

export default fp(async (app) => {
  app.decorate('keys', new Keys(app.snapshot))
}, { name: 'keys', dependencies: ['store'] })
