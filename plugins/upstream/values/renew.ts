import type { Slot } from '../links/slot.ts'

/**
 * Replaces the links that use the values of a user, after these values have changed.
 * @param slots the slots of these links
 * @param isGone whether the values were removed; if not, open calls are still answered on the former links
 * @param retry opens new links for those of the given slots that need one
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
    // A link that is being opened may use the former values, so it is replaced as well.
    if (slot.opening) slot.opening.then(renew, renew)
    else renew()
  }
}
