import type { Catalogue } from '../../../protocol/lists.ts'
import type { CatalogueLimitsAndStorage } from './shares.ts'

/** The dependencies of `Catalogues`. */
export interface CataloguesDeps {
  /** The source of the lists (`catalogueSourceIdOf`): catalogues that were cached from another source are not used. */
  sourceId: string
  /** The server's owner: claims (times of first listing) that were recorded for another owner are not used. */
  owner: string
  /** Called when the lists of any client have changed. */
  onChange: () => void
  allowance: CatalogueLimitsAndStorage
  /** Whether each user provides values, so that lists read on a user's link are shown to that user only. */
  isPerUser?: boolean
  /** Called with each catalogue before its items are listed. Must not reject. */
  examine: (catalogue: Catalogue, user: string | undefined) => Promise<void>
  /** Returns the catalogues of single clients that differ from the one for the client's capability class. */
  ownCatalogues: () => Iterable<Catalogue>
  warn: (sentence: string) => void
}
