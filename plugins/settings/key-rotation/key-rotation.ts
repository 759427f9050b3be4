import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../../db/errors.ts'
import { StorageError, type Resealing, type OutdatedSealCounts } from '../../../db/store.ts'

interface KeyRotationDeps {
  readonly resealing: Resealing
  readonly info: (sentence: string) => void
  readonly warn: (sentence: string) => void
  /** The delays between two passes, and after a failure, in ms. */
  readonly pauses?: { readonly pass: number, readonly failure: number }
}

/** Max passes, since replicas configured with different first keys could re-encrypt each other's texts for ever. */
const maxPasses = 20

/** Re-encrypts secrets that are encrypted with former keys, and logs when the former keys can be removed. */
export class EncryptionKeyRotation {
  readonly #deps: KeyRotationDeps
  readonly #pauses: { readonly pass: number, readonly failure: number }
  readonly #end = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #hasBegun = false
  #hasFailed = false
  /** Number of texts that this process has re-encrypted. */
  #resealedCount = 0

  constructor (deps: KeyRotationDeps) {
    this.#deps = deps
    this.#pauses = deps.pauses ?? { pass: 1_000, failure: 10_000 }
  }

  /** Starts the rotation in the background. It is retried while the storage is unavailable. */
  start (): void {
    this.#running = this.#runUntilDone().catch((error: unknown) => {
      if (!this.#end.signal.aborted) {
        this.#deps.warn(`${failureClause} (${messageOf(error)}). The next start tries again.`)
      }
    })
  }

  /** Stops the rotation between two steps; the next start of the process continues it. */
  async close (): Promise<void> {
    this.#end.abort()
    await this.#running
  }

  async #runUntilDone (): Promise<void> {
    const { signal } = this.#end
    for (;;) {
      try {
        await this.#run()
        return
      } catch (error) {
        if (!(error instanceof StorageError) || signal.aborted) throw error
        if (!this.#hasFailed) {
          this.#deps.warn(
            `${failureClause} (${error.message}) The gateway tries again; keep the former keys until then.`
          )
        }
        this.#hasFailed = true
        await sleep(this.#pauses.failure, undefined, { signal, ref: false })
      }
    }
  }

  async #run (): Promise<void> {
    const { resealing, info } = this.#deps
    let { former, locked } = await resealing.countOutdatedSeals()
    if (!this.#hasBegun) this.#warnOfLocked(locked)
    // Logged without a number, since loading the settings has already begun to re-encrypt them.
    if (former > 0 && !this.#hasBegun) {
      info('key rotation: secrets encrypted with former keys are being re-encrypted with the first key')
    }
    this.#hasBegun = true
    for (let pass = 0; pass < maxPasses; pass++) {
      const { anew } = await resealing.resealAll(this.#end.signal)
      this.#resealedCount += anew
      const left = (await resealing.countOutdatedSeals()).former
      if (left === 0 || (left === former && anew === 0)) {
        this.#logEnd(left)
        return
      }
      former = left
      await sleep(this.#pauses.pass, undefined, { signal: this.#end.signal, ref: false })
    }
    this.#logEnd(former)
  }

  #logEnd (left: number): void {
    const { info, warn } = this.#deps
    if (left > 0) {
      warn(
        `key rotation: ${resealedClause(this.#resealedCount)}; ` +
        `${left} still ${left === 1 ? 'uses' : 'use'} a former key: ` +
        `${left === 1 ? 'it' : 'they'} cannot be decrypted, or a replica with another first key encrypts ` +
        `${left === 1 ? 'it' : 'them'}. Keep the former keys.`
      )
    } else if (this.#resealedCount > 0) {
      info(
        `key rotation: ${resealedClause(this.#resealedCount)} with the first key. ` +
        'No stored secret needs another key: once each replica has started with this first key, you can remove the ' +
        'former keys from ENCRYPTION_KEY'
      )
    }
  }

  #warnOfLocked (locked: OutdatedSealCounts['locked']): void {
    if (locked.length === 0) return
    const those = locked.map(({ what, key, count }) => `${count} ${what} (key ${key})`).join(', ')
    this.#deps.warn(
      `Encrypted with a key that is not available: ${those}. Append that key to ENCRYPTION_KEY, ` +
      'after a comma. Logins at servers that cannot be decrypted are treated as missing.'
    )
  }
}

const resealedClause = (count: number): string => `${count} ${count === 1 ? 'secret was' : 'secrets were'} re-encrypted`
const failureClause = 'Secrets encrypted with former keys could not be re-encrypted'
