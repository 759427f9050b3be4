import { emptyCapabilityClass } from '../../../protocol/capabilities.ts'
import type { LinkKey } from '../links/link-key.ts'
import type { Slot } from '../links/slot.ts'

/** The members of `Catalogues` with the same names. */
interface KnownLists {
  readonly classes: readonly string[]
  readonly has: (capabilityClass: string) => boolean
  readonly hasRead: (slot: Slot) => boolean
}

/** Knows which lists may have changed unnoticed, since the link on which the server announces changes was lost. */
export class OutdatedLists {
  readonly #catalogues: KnownLists
  readonly #isPerUser: boolean
  /** The capability classes whose lists are those of a former link. */
  readonly #classes = new Set<string>()

  /** @param isPerUser whether each user provides values, so that users' links may list other items than the owner's */
  constructor (catalogues: KnownLists, isPerUser: boolean) {
    this.#catalogues = catalogues
    this.#isPerUser = isPerUser
  }

  /** Records that the link that reads the lists of a capability class was lost. */
  add (capabilityClass: string): void {
    // Unknown lists are read anyway. Clients choose their capabilities, so there may be many classes.
    for (const each of this.#classes) if (!this.#catalogues.has(each)) this.#classes.delete(each)
    if (this.#catalogues.has(capabilityClass)) this.#classes.add(capabilityClass)
  }

  /** Records that the gateway's own link was opened: the lists of all other classes are those of earlier links. */
  addOthers (): void {
    for (const capabilityClass of this.#catalogues.classes) {
      if (capabilityClass !== emptyCapabilityClass) this.add(capabilityClass)
    }
  }

  /** Records that the lists of a capability class were read. */
  delete (capabilityClass: string): void { this.#classes.delete(capabilityClass) }

  /** Whether known lists must be read again on the slot for them. @param slot undefined if it does not exist yet */
  has ({ affinity, capabilityClass }: LinkKey, slot: Slot | undefined): boolean {
    if (affinity === 'shared') return this.hasClass(capabilityClass)
    if (slot?.catalogue !== undefined) return slot.link === undefined && !slot.hasEnded
    const isUnread = slot === undefined || !this.#catalogues.hasRead(slot)
    return isUnread && (this.hasClass(capabilityClass) || (affinity === 'user' && this.#isPerUser))
  }

  /** Whether the lists of a capability class are those of a former link. */
  hasClass (capabilityClass: string): boolean { return this.#classes.has(capabilityClass) }

  /**
   * Returns when lists must be read on a slot, other than the gateway's own, whose link has just been opened. Those of
   * a capability class are read in the background, so that calls go on; those of a single client or user at once, since
   * no other link reads them.
   * @param canList whether lists that are read on the slot are shown to clients
   */
  readingAfterOpen (slot: Slot, canList: boolean): 'now' | 'later' | undefined {
    if (slot.catalogue !== undefined) return 'now'
    if (canList && !this.#catalogues.has(slot.key.capabilityClass)) return 'now'
    if (!canList || !this.has(slot.key, slot)) return undefined
    return slot.key.affinity === 'shared' ? 'later' : 'now'
  }
}
