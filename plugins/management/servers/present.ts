import type { Static } from '@sinclair/typebox'
import type { Server, Snapshot } from '../../../db/store.ts'
import { eraOf } from '../../../protocol/era.ts'
import type { DefinitionWarning } from '../../../schemas/definitions-api.ts'
import { withMembers } from '../../../protocol/json.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import type { ProviderStatus } from '../../../protocol/provider.ts'
import { nameProblem } from '../../../schemas/names.ts'
import { isolationOf, serverTypeOf } from '../../../schemas/server.ts'
import type { ServerRecord } from '../../../schemas/server-api.ts'
import { transports } from '../../../schemas/transports.ts'
import { type Outbound, outboundAccessOf } from '../../base/outbound/index.ts'
import { maskConfig } from '../../base/secrets/index.ts'
import { defaultOwner } from '../../identity/index.ts'
import {
  canManage, isIdentifiedByUri, isItemEnabled, defaultItemMembers, type ItemKind, overrideMembers, overrideOf,
  type Principal, unmatchedOverrideWarnings, withCurrentRights
} from '../../settings/index.ts'
import type { Upstream, Upstreams } from '../../upstream/index.ts'
import { ItemTexts } from './record-json.ts'

/** A tool, prompt, resource or skill in a response of the management API: as its server lists it, with its override. */
export type PresentedItem = Record<string, unknown> & { enabled: boolean, overridden?: boolean }

/** A server in a response of the management API. */
export type PresentedServer = Omit<Static<typeof ServerRecord>, ItemKind | 'config'> & Record<ItemKind, ItemTexts> &
  { config: Record<string, unknown> }

/** The config members that are shown to users who may see the server but not manage it. */
const publicMembers = ['type', 'description', 'visibility', 'owner', 'enabled'] as const

/** Adds default values to a config, for members that a settings file may omit. */
export const withConfigDefaults = (config: Server['config']): Server['config'] & { owner: string } => ({
  ...config,
  owner: config.owner ?? defaultOwner,
  visibility: config.visibility ?? 'private',
  enabled: config.enabled !== false
})

/**
 * Returns why the name of a stored server is invalid, so that the server cannot be enabled; undefined if it is valid.
 */
export const invalidNameProblem = ({ name, problem }: Server): string | undefined =>
  problem === undefined ? undefined : nameProblem(name)

/** The state of a server's connection. `toServerRecord` shows parts of it to users who do not manage the server. */
interface ConnectionState {
  readonly status: ProviderStatus
  readonly error: string | null
  readonly warnings: ReadonlyArray<string | DefinitionWarning>
  /** In ms since the epoch. */
  readonly connectedAt: number | undefined
  readonly protocolVersion: string | undefined
}

/**
 * Returns the state of a server's connection for a caller.
 * @param isPerUser whether each user has connections of their own (`isolation: 'user'`)
 * @param required the login that the server requires from the caller; undefined if it requires none
 */
export function connectionStateOf (
  upstream: Upstream, isPerUser: boolean, required: RequiredLogin | undefined
): ConnectionState {
  const { warnings, connectedAt, protocolVersion, values } = upstream
  // If each user logs in separately, the status describes the caller's own connection.
  const isOwn = isPerUser && upstream.login !== undefined && values?.isOwnerLackingValues !== true
  const status = isOwn
    ? (required ? 'oauth_required' : upstream.isAvailable ? 'connected' : upstream.status)
    : upstream.status
  const error = isOwn && status === 'connected' ? null : upstream.error
  return { status, error, warnings, connectedAt, protocolVersion }
}

/** A login that a server requires from the caller. `flow`: undefined until `prepareLogin` has made a URL for it. */
interface RequiredLogin { readonly flow: { readonly url: string } | undefined }

/**
 * Returns the API's record of a server. Secrets are masked for callers who manage the server, and omitted for others.
 * @param state the state of the connection; undefined if there is no connection with this config
 * @param catalogue the catalogue for clients without capabilities; undefined if unknown
 * @param manages whether the caller may manage the server
 * @param required the login that the server requires from the caller; undefined if it requires none
 */
export function toServerRecord (
  server: Server,
  state: ConnectionState | undefined,
  catalogue: Catalogue | undefined,
  manages: boolean,
  required?: RequiredLogin
): PresentedServer {
  const { name, config: stored, problem, separator, warnings: configWarnings = [] } = server
  const { createdAt, storedBy: _, storedByUser: _storedByUser, ...config } = withConfigDefaults(stored)
  const nameError = invalidNameProblem(server)
  const disabled = !config.enabled || nameError !== undefined
  const { connectedAt, protocolVersion, status = 'disconnected', error = null } = state ?? {}
  const overrideWarnings = manages && status === 'connected' && catalogue
    ? unmatchedOverrideWarnings({ name, config, separator }, catalogue)
    : []
  const warnings = [...configWarnings, ...state?.warnings ?? [], ...overrideWarnings]
  const items = (kind: ItemKind): ItemTexts =>
    new ItemTexts(catalogue?.lists[kind] ?? [], { name, config, separator }, kind)
  return {
    name,
    enabled: !disabled,
    status: disabled ? 'disabled' : status,
    error: disabled ? nameError ?? null : shownError(problem ?? error, manages, required),
    ...(manages && !disabled && warnings.length > 0 ? { warnings } : {}),
    tools: items('tools'),
    prompts: items('prompts'),
    resources: items('resources'),
    skills: items('skills'),
    config: manages ? maskConfigCached(stored, config) : publicMembersOf(config),
    createdAt,
    connectedAt: connectedAt === undefined ? undefined : new Date(connectedAt).toISOString(),
    ...(protocolVersion === undefined || disabled ? {} : { protocolVersion, era: eraOf(protocolVersion) }),
    ...(required?.flow && !disabled ? { oauth: { authorizationUrl: required.flow.url } } : {})
  }
}

const shownConfigs = new WeakMap<object, Record<string, unknown>>()

/**
 * Masks the secrets of a config. The result is cached, since a long list of servers has many values.
 * @param stored the stored config, which is the key of the cache
 * @param config the config to mask, made from the stored one
 */
function maskConfigCached (stored: object, config: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const known = shownConfigs.get(stored) ?? maskConfig(config)
  shownConfigs.set(stored, known)
  return known
}

function publicMembersOf (config: Server['config']): Record<string, unknown> {
  const shown = { ...config, type: serverTypeOf(config) }
  return Object.fromEntries(publicMembers.flatMap((key) => shown[key] === undefined ? [] : [[key, shown[key]]]))
}

/**
 * Returns the error of a server as shown to a caller. Only callers who manage the server get its text, since it may
 * quote output of a process with secrets.
 */
function shownError (error: string | null, manages: boolean, required: RequiredLogin | undefined): string | null {
  if (error === null || manages) return error
  return required?.flow
    ? 'It requires you to log in: open oauth.authorizationUrl'
    : 'It is not connected; its owner can see why'
}

/** Returns one item with its override; undefined if no known list of the server has the item. */
export function findPresentedItem (
  kind: ItemKind, key: string, server: Server, catalogues: readonly Catalogue[]
): PresentedItem | undefined {
  for (const { lists } of catalogues) {
    const item = lists[kind].find((each) => each.key === key)
    if (item) {
      const members = overrideMembers(overrideOf(server, kind, key))
      return JSON.parse(withMembers(item.text, members, defaultItemMembers(kind, item.text))) as PresentedItem
    }
  }
  return undefined
}

/** Returns an overridden item that no known list contains: only its name or URI, and the override. */
export function unlistedItem (kind: ItemKind, key: string, server: Server): PresentedItem {
  const override = overrideOf(server, kind, key)
  return {
    [isIdentifiedByUri(kind) ? 'uri' : 'name']: key,
    ...(override?.description === undefined ? {} : { description: override.description, overridden: true }),
    enabled: isItemEnabled(override)
  }
}

/** The logins at upstream servers that belong to callers of the management API. */
export class ServerLogins {
  readonly #upstreams: Upstreams

  constructor (upstreams: Upstreams) {
    this.#upstreams = upstreams
  }

  /** Returns the login that a server requires from a principal; undefined if none is known to be required. */
  requiredLogin (principal: Principal, server: Server): RequiredLogin | undefined {
    const holder = this.#holderOf(principal, server)
    return holder === undefined ? undefined : this.#upstreams.get(server.name)?.login?.pendingLogin(holder)
  }

  /** If a server requires a login from a principal, prepares the URL of this login. Never throws. */
  async prepareLogin (principal: Principal, server: Server): Promise<void> {
    const holder = this.#holderOf(principal, server)
    if (holder !== undefined) await this.#upstreams.get(server.name)?.login?.prepare(holder)
  }

  /** Ends the login of a principal at a server. @returns whether there was one */
  async endLogin (principal: Principal, server: Server): Promise<boolean> {
    const holder = this.#holderOf(principal, server)
    return holder !== undefined && await this.#upstreams.get(server.name)?.login?.endLogin(holder) === true
  }

  /**
   * Returns the holder of a server's login, if the principal may prepare and end that login: the principal's user, or
   * all users together; otherwise undefined.
   */
  #holderOf (principal: Principal, server: Server): string | undefined {
    if (isolationOf(server.config) !== 'user' && !canManage(principal, server)) return undefined
    // On the management API, a system key without an owner has the username `system`, and is identified by its own key.
    const user = principal.kind === 'system-key' && principal.user === 'system' ? principal.key : principal.user
    return this.#upstreams.get(server.name)?.login?.holder(user)
  }
}

/**
 * Returns why the gateway will not connect to a stored server, as a sentence; undefined if no reason is known. No host
 * name is looked up.
 */
export function refusalToConnect (
  snapshot: Snapshot, name: string, outbound: Pick<Outbound, 'addressProblem'>
): string | undefined {
  const { config: stored = {}, problem } = snapshot.servers.get(name) ?? {}
  const config = withCurrentRights(snapshot, stored)
  if (problem !== undefined) return `It will not be connected: ${problem}`
  const type = serverTypeOf(config)
  if (type !== undefined && transports[type].locatedBy === 'command') return undefined
  const addresses = [config.url, config.openapi?.url].filter((address) => typeof address === 'string')
  const reason =
    addresses.map(
      (address) => outbound.addressProblem(address, outboundAccessOf(config))
    ).find((each) => each !== undefined)
  return reason === undefined ? undefined : `It will not be connected: ${reason}`
}
