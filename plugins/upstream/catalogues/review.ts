import type { Catalogue } from '../../../protocol/lists.ts'

/** Decides which items of the servers' catalogues are listed. */
export interface CatalogueReview {
  /**
   * Called with each catalogue that was read or restored, before any of its items are listed. Never rejects.
   * @param user the user whose connection read it; undefined for a shared connection
   */
  readonly examine: (server: string, catalogue: Catalogue, user: string | undefined) => Promise<void>
  /**
   * The catalogue to list in place of this one: itself or a copy. It returns the same object until something changes.
   */
  readonly listed: (server: string, catalogue: Catalogue) => Catalogue
}

/** Lists everything. */
export const noReview: CatalogueReview = { examine: async () => {}, listed: (_server, catalogue) => catalogue }
