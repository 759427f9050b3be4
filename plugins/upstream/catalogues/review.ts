import type { Catalogue } from '../../../protocol/lists.ts'

/** Decides which items of the servers' catalogues are listed. */
export interface CatalogueReviewer {
  /**
   * Called with each catalogue that was read from a server or restored from disk, before its items are listed. Must not
   * reject.
   * @param user the user whose connection read the catalogue; undefined for a shared or restored one
   */
  readonly examine: (server: string, catalogue: Catalogue, user: string | undefined) => Promise<void>
  /**
   * Returns the catalogue that clients see: the given one, or a changed copy. Returns the same object until something
   * changes.
   */
  readonly listed: (server: string, catalogue: Catalogue) => Catalogue
}

/** A review that lets all items be listed. */
export const noReview: CatalogueReviewer = { examine: async () => {}, listed: (_server, catalogue) => catalogue }
