import fp from 'fastify-plugin'
import { clientsSectionName, toClientEntry } from '../../db/client-entry.ts'
import { serializeSettings } from '../../db/document-text.ts'
import { undecryptableReasonOf } from '../../db/document.ts'
import { entityFactsOf, listEntityNames, type EntityName, type SnapshotMemberOf } from '../../db/entities.ts'
import { jsonLength } from '../../db/json-size.ts'
import { createOrderedObject } from '../../db/order.ts'
import type { OAuthClients } from '../../db/ports/clients.ts'
import type { Server, Snapshot } from '../../db/store.ts'
import { errors } from '../base/errors/index.ts'
import { maskConfig } from '../base/secrets/index.ts'
import { canManage, type Principal, type Settings } from '../settings/index.ts'
import type { Groups, ShownGroup } from './groups/groups.ts'

type Json = Record<string, unknown>

/** Max number of names in an error message. */
const maxNamed = 20

/** The settings in the format of a settings file, with which another gateway can start. */
interface ExportedSettings {
  mcpServers: Json
  groups: ShownGroup[]
  /** This and the following members are only for admins. */
  systemConfig?: Json
  [section: string]: unknown
}

/** Exports the settings: all of them for an admin, otherwise the servers and groups that the user manages. */
class Export {
  readonly #settings: Settings
  readonly #groups: Groups
  readonly #clients: Pick<OAuthClients, 'list'>

  constructor (settings: Settings, groups: Groups, clients: Pick<OAuthClients, 'list'>) {
    this.#settings = settings
    this.#groups = groups
    this.#clients = clients
  }

  /**
   * Returns the settings that a principal manages.
   * @param includesSecrets whether to include secrets, hashes of passwords and tokens, and OAuth clients. If not,
   *   secrets are masked, and the `credentials` of entities omitted
   * @throws Forbidden if the principal may not export secrets, SecretsLocked if some secrets cannot be decrypted,
   *   ShareError
   */
  async get (principal: Principal, includesSecrets: boolean): Promise<ExportedSettings> {
    if (includesSecrets && !principal.isAdmin) throw new errors.Forbidden('Only an admin may export secrets')
    // With `skipAuth`, a guest is an admin. Exported secrets would stay known after that setting is disabled.
    if (includesSecrets && principal.kind === 'guest') {
      throw new errors.Forbidden('Log in to export secrets: guests get masks')
    }
    const snapshot = this.#settings.current
    if (includesSecrets) checkDecryptable(snapshot)
    const mask = (value: Readonly<Json>): Json => includesSecrets ? { ...value } : maskConfig(value)
    // Serializing a large export blocks the event loop, so it counts as a large change by the principal.
    this.#settings.chargeLargeChange(
      principal, managedServers(snapshot, principal).reduce((size, { config }) => size + jsonLength(config), 0)
    )
    const mcpServers = createOrderedObject(
      managedServers(snapshot, principal).map(({ name, config: { storedBy: _, ...config } }) => [name, mask(config)])
    )
    const groups = this.#groups.listWithSelectors(principal).filter(({ owner }) =>
      principal.isAdmin || owner === principal.username)
    if (!principal.isAdmin) return { mcpServers, groups }
    const clients = includesSecrets ? (await this.#clients.list()).map((client) => toClientEntry(client)) : []
    return {
      mcpServers,
      groups,
      systemConfig: mask(snapshot.system),
      ...Object.fromEntries(listEntityNames.flatMap((section) => {
        const { member, credentials } = entityFactsOf(section)
        const items = [...snapshot[member as SnapshotMemberOf<EntityName>].values()] as Json[]
        if (section === 'groups' || (items.length === 0 && credentials === undefined)) return []
        return [
          [
            section,
            includesSecrets || credentials === undefined ? items : items.map((item) => omitMembers(item, credentials))
          ]
        ]
      })),
      ...(clients.length === 0 ? {} : { [clientsSectionName]: clients })
    }
  }

  /** Returns the export as the text of a settings file. Servers keep their order, even if their names are numbers. */
  toText (exported: object): string { return serializeSettings(exported) }
}

/**
 * Checks that all secrets can be decrypted: otherwise an export with secrets would be incomplete.
 * @throws SecretsLocked
 */
function checkDecryptable ({ servers, system }: Snapshot): void {
  const locked =
    [...servers.values()].flatMap(({ name, config }) =>
      undecryptableReasonOf(config) === undefined ? [] : [JSON.stringify(name)])
  if (undecryptableReasonOf(system) !== undefined) locked.push('"systemConfig"')
  if (locked.length === 0) return
  const ellipsis = locked.length > maxNamed ? ' …' : ''
  throw new errors.SecretsLocked(`${locked.slice(0, maxNamed).join(', ')}${ellipsis}`)
}

const omitMembers = (item: Json, names: readonly string[]): Json =>
  Object.fromEntries(Object.entries(item).filter(([name]) => !names.includes(name)))

const managedServers = (snapshot: Snapshot, principal: Principal): Server[] =>
  [...snapshot.servers.values()].filter((server) => canManage(principal, server))

declare module 'fastify' {
  interface FastifyInstance { export: Export }
}

/** Decorates the app with `export`, which exports the settings. */
export default fp<{ clients: Pick<OAuthClients, 'list'> }>(async (app, { clients }) => {
  app.decorate('export', new Export(app.settings, app.groups, clients))
}, { name: 'export', dependencies: ['settings', 'groups'] })
