import type { Beginning } from '../../../protocol/dual-era-session.ts'
import type { Era } from '../../../protocol/era.ts'

/** How long a verdict holds, in ms: a server is asked again when a connection is opened after that. */
const verdictTime = 3_600_000

interface Verdict { readonly era: Era, readonly isShy: boolean, readonly at: number }

/**
 * The era that one server speaks, as its last connection has shown. The gateway's own connection asks again whenever it is opened, since
 * the server may be another one by then; the others take its verdict. A server that cannot be asked (it stays silent, or ends) is begun
 * with as it was before, for an hour: it is asked nevertheless if it refuses that.
 */
export class EraMemory {
  readonly #now: () => number
  #verdict: Verdict | undefined

  constructor (now = Date.now) {
    this.#now = now
  }

  /** @param isBase for the gateway's own connection @param era is known otherwise */
  beginning (isBase: boolean, era?: Era): Beginning {
    const known = era ?? this.#known(isBase)
    return {
      era: known,
      found: (found, isShy) => {
        // It was begun in this era since it cannot be asked, and nothing new is known.
        const isOld = found === 'legacy' && known === 'legacy' && this.#verdict?.isShy === true
        if (!isOld) this.#verdict = { era: found, isShy, at: this.#now() }
      }
    }
  }

  /** The server has ended when it was asked. */
  shun (): void { this.#verdict = { era: 'legacy', isShy: true, at: this.#now() } }

  /** A connection could not be opened: nothing is known, but that a server which cannot be asked may still be one. */
  forget (): void {
    if (this.#verdict?.isShy !== true) this.#verdict = undefined
  }

  #known (isBase: boolean): Era | undefined {
    const verdict = this.#verdict
    if (verdict === undefined || this.#now() - verdict.at > verdictTime) return undefined
    return isBase && !verdict.isShy ? undefined : verdict.era
  }
}
