import type { Snapshot } from '../../db/store.ts'
import type { Catalogue } from '../../protocol/lists.ts'
import type { Guard } from '../../schemas/guards.ts'
import type { Policy } from '../../schemas/policies.ts'
import type { Quota } from '../../schemas/quotas.ts'
import type { Gateway } from '../gateway/index.ts'
import { teamReference } from '../settings/index.ts'
import { findCatalogueItem, equivalentNamesOf, templatesFor, type RequestedItem } from './policies/facts.ts'

/** The objects to which settings may refer: other settings, registered providers, and items in catalogues. */
export interface ExistingObjects {
  readonly access: { readonly snapshot: Pick<Snapshot, 'keys' | 'servers' | 'teams' | 'users'> }
  readonly gateway: Pick<Gateway, 'catalogue' | 'catalogues'>
}

/** Names of callers that are not accounts, but may be targets of quotas. */
const namedCallers: ReadonlySet<string> = new Set(['guest', 'system'])

/** Returns the known catalogues of a server, for all classes of clients; empty if its lists are unknown. */
export const cataloguesOf = (gateway: ExistingObjects['gateway'], server: string): Catalogue[] =>
  [gateway.catalogue(server), ...gateway.catalogues(server)].filter((each) => each !== undefined)

/** Whether a catalogue lists an item, for a resource also under another spelling of its URI. */
export const listsItem = (catalogue: Catalogue, subject: RequestedItem): boolean =>
  equivalentNamesOf(catalogue, subject).some((name) => findCatalogueItem(catalogue, subject.kind, name) !== undefined)

/** Returns a clause which says that an item or its server does not exist; undefined if it exists or may exist. */
export function unknownItemProblem (
  { access: { snapshot }, gateway }: ExistingObjects, subject: RequestedItem
): string | undefined {
  const { server, kind, name } = subject
  if (!snapshot.servers.has(server)) return `there is no server ${JSON.stringify(server)}`
  const catalogues = cataloguesOf(gateway, server)
  const matchesTemplate = (each: Catalogue): boolean =>
    templatesFor(each, subject, equivalentNamesOf(each, subject)).length > 0
  const isListed = catalogues.some((each) => listsItem(each, subject) || matchesTemplate(each))
  if (catalogues.length === 0 || isListed) return undefined
  return `the server ${JSON.stringify(server)} does not list a ${kind} ${JSON.stringify(name)} now`
}

/**
 * Returns a warning that lists the unknown names; none if all names are known.
 * @param member the member of the settings that contains the names
 * @param then what follows from the problem, as the end of the sentence
 */
function unknownNames (
  member: string, noun: string, names: readonly string[], isKnown: (name: string) => boolean, then = ''
): string[] {
  const unknown = names.filter((each) => !isKnown(each)).map((each) => JSON.stringify(each))
  return unknown.length === 0 ? [] : [`"${member}": there is no ${noun} ${unknown.join(', ')}${then}`]
}

/** Returns warnings about approvers of a policy who do not exist. */
export const policyReferenceWarnings = (
  { approvers = [] }: Policy, { access: { snapshot: { users } } }: ExistingObjects
): string[] =>
  unknownNames('approvers', 'user', approvers, (each) => users.has(each),
    '; an account that is created with such a name later may approve')

/** Returns warnings about servers and tools of a guard that do not exist. */
export function guardReferenceWarnings ({ servers, tools = [] }: Guard, existing: ExistingObjects): string[] {
  const { snapshot } = existing.access
  const known = (servers ?? [...snapshot.servers.keys()]).filter((each) => snapshot.servers.has(each))
  const missing = tools.filter((name) =>
    known.every((server) => unknownItemProblem(existing, { server, kind: 'tool', name }) !== undefined))
  return [
    ...unknownNames('servers', 'server', servers ?? [], (each) => snapshot.servers.has(each)),
    ...known.length === 0 ? [] : missing.map((name) => `"tools": no server lists a tool ${JSON.stringify(name)} now`)
  ]
}

/** Returns warnings about objects in a quota's target that do not exist, and about a quota that blocks all calls. */
export function quotaReferenceWarnings (
  { target, calls, resultTokens, enabled }: Quota, existing: ExistingObjects
): string[] {
  const { snapshot: { keys, servers, teams, users } } = existing.access
  const { server, tool } = target
  const named = (name: 'user' | 'team' | 'key' | 'server', isKnown: (name: string) => boolean): string[] =>
    unknownNames(`target.${name}`, name, [target[name] ?? '*'], (each) => each === '*' || isKnown(each))
  const subject = server === undefined || tool === undefined || tool === '*' || !servers.has(server)
    ? undefined
    : unknownItemProblem(existing, { server, kind: 'tool', name: tool })
  return [
    ...named('user', (name) => users.has(name) || namedCallers.has(name) ||
      [...teams.keys()].some((team) => teamReference(team) === name)),
    ...named('team', (name) => teams.has(name)),
    ...named('key', (id) => keys.has(id)),
    ...named('server', (name) => servers.has(name)),
    ...subject === undefined ? [] : [`"target.tool": ${subject}`],
    ...(calls === 0 || resultTokens === 0) && enabled !== false && Object.keys(target).length === 0
      ? ['Nobody can call anything while this quota is on']
      : []
  ]
}
