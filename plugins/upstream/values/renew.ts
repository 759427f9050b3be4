import type { Slot } from '../links/slot.ts'

/**
 * Replaces the links of a user who has given other values.
 * @param isGone whether the former values were taken back; otherwise open calls are answered on the former links
 * @param retry opens a link that somebody waits for
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
    // A link that is being opened may have the former values.
    if (slot.opening) slot.opening.then(renew, renew)
    else renew()
  }
}
