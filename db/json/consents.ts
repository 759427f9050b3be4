import { isObject } from '../../schemas/unknown-members.ts'
import { maxRecords, type Bounds, type Consent, type Consents } from '../ports.ts'
import { EntryList, type SectionFile, type Sections, type SectionsUpdate } from './section.ts'

/** The name of the section of consents. */
export const consentSection = 'oauthConsents'

const keyOf = (username: string, clientId: string): string => JSON.stringify([username, clientId])

/**
 * Consents in the settings file. While the process runs, an edit of the file can remove consents but not add any: saving an older version
 * from an editor would bring back those that were withdrawn.
 */
export class FileConsents implements Consents {
  readonly #list: EntryList<Consent>
  readonly #bounds: Bounds

  constructor (file: SectionFile, bounds: Bounds = { perUser: maxRecords.consentsPerUser, all: maxRecords.consentsInFile }) {
    this.#list = new EntryList(file, {
      name: consentSection,
      isEntry: isConsent,
      keyOf: ({ username, clientId }) => keyOf(username, clientId),
      isEditable: false
    })
    this.#bounds = bounds
  }

  async put ({ username, clientId, scope, resource, mark, grantedAt }: Consent): Promise<void> {
    await this.#list.change((entries) => {
      const more = { ...(resource === undefined ? {} : { resource }), ...(mark === undefined ? {} : { mark }) }
      const consent = { username, clientId, scope, ...more, grantedAt }
      entries.set(keyOf(username, clientId), consent)
      removeOldest(entries, [...entries.values()].filter((each) => each.username === username), this.#bounds.perUser)
      removeOldest(entries, [...entries.values()], this.#bounds.all)
    })
  }

  async find (username: string, clientId: string): Promise<Consent | undefined> {
    return this.#list.entries.get(keyOf(username, clientId))
  }

  async list (username: string): Promise<Consent[]> {
    return newestFirst([...this.#list.entries.values()].filter((consent) => consent.username === username))
  }

  async remove (username: string, clientId: string): Promise<boolean> {
    return await this.#list.change((entries) => entries.delete(keyOf(username, clientId)))
  }

  async removeAll (target: { readonly username: string } | { readonly clientId: string }): Promise<void> {
    await this.#list.change((entries) => {
      for (const [key, { username, clientId }] of [...entries]) {
        if ('username' in target ? username === target.username : clientId === target.clientId) entries.delete(key)
      }
    })
  }

  /** Works out the update that removes the consents to clients. */
  planRemoval (sections: Sections, clientIds: ReadonlySet<string>): SectionsUpdate<void> {
    return this.#list.planRemoval(sections, ({ clientId }) => clientIds.has(clientId))
  }
}

const newestFirst = (consents: readonly Consent[]): Consent[] => [...consents].sort((one, other) => other.grantedAt - one.grantedAt)

/** Removes the oldest of some entries, if they are too many. */
function removeOldest (entries: Map<string, Consent>, some: readonly Consent[], count: number): void {
  if (some.length <= count) return
  for (const { username, clientId } of newestFirst(some).slice(count)) entries.delete(keyOf(username, clientId))
}

export function isConsent (entry: unknown): entry is Consent {
  if (!isObject(entry)) return false
  const { username, clientId, scope, resource, mark, grantedAt } = entry
  return (
    [username, clientId, scope].every((value) => typeof value === 'string') &&
    [resource, mark].every((value) => value === undefined || typeof value === 'string') &&
    typeof grantedAt === 'number'
  )
}
