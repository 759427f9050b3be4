import type { Catalogue } from '../../../protocol/lists.ts'

/** Decides what of the servers' catalogues is listed. */
export interface CatalogueReview {
  /**
   * Called with each catalogue that was read or restored, before any of it is listed. Never rejects.
   * @param user the user whose connection read it; undefined: one that is shared
   */
  readonly examine: (server: string, catalogue: Catalogue, user: string | undefined) => Promise<void>
  /** The catalogue to list in place of this one: itself, or a copy, which is the same until something changes. */
  readonly listed: (server: string, catalogue: Catalogue) => Catalogue
}

/** Lists everything. */
export const noReview: CatalogueReview = { examine: async () => {}, listed: (_server, catalogue) => catalogue }
