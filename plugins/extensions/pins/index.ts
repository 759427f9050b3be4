import fp from 'fastify-plugin'
import { FilePinStore } from '../../../db/cached-pins.ts'
import type { PinStore } from '../../../db/ports/pins.ts'
import type { CatalogueCache, Snapshot } from '../../../db/store.ts'
import { RuleRefusalError } from '../../../protocol/errors.ts'
import type { Exchange } from '../../../protocol/exchange.ts'
import { isObject } from '../../../protocol/json.ts'
import { unknownItemError } from '../../gateway/index.ts'
import { runPeriodically } from '../../base/limits/index.ts'
import type { Author } from '../../settings/index.ts'
import type { PinMode } from './compare.ts'
import type { DefinitionChange, DefinitionWarning } from '../../../schemas/definitions-api.ts'
import type { DefinitionKind } from './definitions.ts'
import { DefinitionScanner } from './definition-scanner.ts'
import { Pins } from './pins.ts'

declare module 'fastify' {
  interface FastifyInstance { definitions: Definitions }
}

/** Management of the definitions of servers: changes that wait for an admin, and warnings. */
interface Definitions {
  /** Returns the new and changed definitions of a server that wait for an admin. */
  changes: (server: string) => Promise<DefinitionChange[]>
  /**
   * Accepts the pending definitions of an item, and records this in the audit log.
   * @param digest the digest of the only definition to accept; undefined: all pending definitions of the item
   * @returns whether there was such a definition
   */
  accept: (by: Author, server: string, kind: DefinitionKind, item: string, digest?: string) => Promise<boolean>
  /** Returns the number of a server's items whose definitions wait for an admin, as known to this replica. */
  countWaiting: (server: string) => number
  /** Returns warnings about a server's definitions, for the users who manage the server. */
  warningsAbout: (server: string) => DefinitionWarning[]
  /** Copies a server's pins to its new name, before it is renamed. */
  copy: (server: string, newName: string) => Promise<void>
  /** Removes the pins of deleted servers. */
  forget: (servers: readonly string[]) => Promise<void>
}

interface PinsOptions {
  /** The store of pins in a database; undefined without a database: then pins are stored with the catalogues. */
  readonly pins: PinStore | undefined
  readonly catalogueCache: CatalogueCache
}

/** Interval at which changes by other replicas are read, in ms. */
const pollInterval = 2_000
/** How far each read goes back before the previous read, in ms, so that no late change is missed. */
const pollWindow = 60_000

const calledKinds: Readonly<Record<string, DefinitionKind>> =
  { 'tools/call': 'tool', 'prompts/get': 'prompt', 'skills/get': 'skill' }

/** Returns the kind of the definition that a request uses; undefined if definitions of that kind are not pinned. */
const kindOfCall = ({ method, params: { ref } }: Exchange): DefinitionKind | undefined =>
  method === 'completion/complete' && isObject(ref) && ref.type === 'ref/prompt' ? 'prompt' : calledKinds[method]

/**
 * `app.definitions`: pins the definitions that servers list (`pin` in the config of a server), and scans them for
 * content that may poison agents.
 */
export default fp<PinsOptions>(async (app, { pins: shared, catalogueCache }) => {
  const store = shared ?? new FilePinStore(catalogueCache)
  const count = app.metrics.countByServer('toolhub_definition_changes_total', 'Changed definitions of upstream servers')
  const scanner = new DefinitionScanner(app.log)
  const modeOf = (name: string): PinMode | undefined => {
    const server = app.settings.current.servers.get(name)
    return server && (server.config.pin ?? 'warn')
  }
  const pins = new Pins({
    store,
    modeOf,
    onListsChanged: () => { app.upstreams.notifyListsChanged() },
    onExamined: (server, source, definitions) => { scanner.scanInBackground(server, source, definitions) },
    reportChanges: (server, mode, changes) => {
      const [first] = changes
      if (first === undefined) return
      const { kind, item } = first
      count(server, changes.length)
      const more = changes.length > 1 ? ` and ${changes.length - 1} more definitions` : ''
      const effect =
        { off: '', warn: '', ask: '; hidden until an admin accepts it', block: '; calls are refused' }[mode]
      const which = `the ${kind} ${JSON.stringify(item)}${more}`
      app.log.warn({ server, changes }, `${server}: ${which} changed${effect}`)
      app.notifications.send('change', { server, pin: mode, changes })
    },
    warn: (server, sentence) => { app.log.warn({ server }, `${server}: ${sentence}`) }
  })
  app.upstreamHooks.review = pins

  app.gateway.addHook('onCall', ({ provider, item, exchange }) => {
    const mode = item === undefined ? undefined : modeOf(provider)
    if (item === undefined || (mode !== 'ask' && mode !== 'block')) return
    const kind = kindOfCall(exchange)
    const catalogue = app.upstreams.get(provider)?.catalogue(exchange.client)
    if (kind === undefined || catalogue === undefined) return
    const state = pins.refusalOf(catalogue, { kind, item })
    if (state === 'withheld') throw unknownItemError(exchange)
    if (state === undefined) return
    throw new RuleRefusalError('policy',
      `The ${kind} ${JSON.stringify(item)} of the server ${JSON.stringify(provider)} has ` +
      'changed since it was accepted: it can be used again once an admin accepts its new definition')
  })

  const forget = async (servers: readonly string[]): Promise<void> => {
    scanner.forget(servers)
    await pins.forget(servers)
  }
  const namesOf = ({ servers }: Snapshot): ReadonlySet<string> => new Set(servers.keys())
  app.settings.on('changed', (next, former) => {
    const kept = namesOf(next)
    const removed = [...namesOf(former)].filter((name) => !kept.has(name))
    if (removed.length === 0) return
    forget(removed).catch((err: unknown) => {
      app.log.warn({ err }, 'the pins of removed servers could not be removed')
    })
  })
  if (store.isShared) {
    // Removes pins of servers that were deleted while no gateway was running.
    app.addHook('onReady', async () => {
      const kept = namesOf(app.settings.current)
      const stored = await store.list().catch(() => [])
      await store.remove(stored.flatMap(({ server }) => kept.has(server) ? [] : server)).catch(() => {})
    })
  }
  let refreshedAt = Date.now()
  runPeriodically(app, pollInterval, async () => {
    const begun = Date.now()
    await pins.refresh(begun - refreshedAt + pollWindow)
    refreshedAt = begun
  }, (err) => { app.log.debug({ err }, 'the pins of other replicas could not be read') })
  app.addHook('onClose', async () => { pins.close() })

  app.decorate('definitions', {
    changes: async (server) => await pins.readPendingChanges(server),
    accept: async (by, server, kind, item, digest) => {
      if (!await pins.accept(server, { kind, item }, digest)) return false
      app.audit.addChange(by, { entity: 'definition', name: server, before: { kind, item }, after: { kind, item } })
      return true
    },
    countWaiting: (server) => pins.knownPendingChanges(server).length,
    warningsAbout: (server) => [
      ...pins.knownPendingChanges(server).map(({ kind, item, since, isNew }): DefinitionWarning => {
        const what = isNew ? 'it is new' : 'its definition has changed'
        return { kind, item, place: '', message: `${what} since ${since}, and no admin has accepted it yet` }
      }),
      ...scanner.warningsAbout(server)
    ],
    copy: async (server, newName) => { await pins.copy(server, newName) },
    forget
  })
}, { name: 'pins', dependencies: ['settings', 'gateway', 'upstream', 'metrics', 'notifications'] })
