import type { Slot } from '../links/slot.ts'

/**
 * Replaces the links of a user who has changed the values.
 * @param isGone whether the values were removed; otherwise open calls are still answered on the former links
 * @param retry opens a link that a client waits for
 */
export function renewLinks (slots: readonly Slot[], isGone: boolean, retry: (slots: readonly Slot[]) => void): void {
  for (const slot of slots) {
    const renew = (): void => {
      const { link } = slot
      slot.link = undefined
      if (isGone) void link?.close()
      else link?.retire()
      retry([slot])
    }
    // A link that is being opened may use the former values.
    if (slot.opening) slot.opening.then(renew, renew)
    else renew()
  }
}
