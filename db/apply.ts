import { isPlainObject } from '../schemas/unknown-members.ts'
import { entities, type EntityName, type ListEntityName } from './entities.ts'
import { orderedEntries, createOrderedObject } from './order.ts'
import { InvalidChangeError, type Change } from './store.ts'

/**
 * The settings as one plain JSON object: a member per section (`EntityName` and others), unknown members included.
 * Immutable: successive versions share their unchanged parts.
 */
export type SettingsDocument = Readonly<Record<string, unknown>>
type ChangeOf<Name extends EntityName> = Extract<Change, { entity: Name }>

/** Returns a copy of the value as plain JSON, or the former object itself if its JSON text is the same. */
function toPlainJson (former: unknown, value: unknown): unknown {
  const text = JSON.stringify(value)
  return former !== undefined && JSON.stringify(former) === text ? former : JSON.parse(text) as unknown
}

/**
 * Applies changes to a section that is an object (`mcpServers`). The entries are kept in a Map, since one may be named
 * `__proto__`.
 */
class ObjectSection {
  readonly #former: Record<string, unknown>
  #entries: Map<string, unknown>

  constructor (former: Record<string, unknown>) {
    this.#former = former
    this.#entries = new Map(orderedEntries(former))
  }

  put ({ key, value, rename = key }: ChangeOf<'mcpServers'>): void {
    if (value === undefined) { this.#entries.delete(key); return }
    const plain = toPlainJson(this.#entries.get(key), value)
    if (rename === key) { this.#entries.set(key, plain); return }
    if (!this.#entries.has(key)) {
      throw new InvalidChangeError(`The server to rename, ${JSON.stringify(key)}, does not exist.`)
    }
    if (this.#entries.has(rename)) {
      throw new InvalidChangeError(`A server named ${JSON.stringify(rename)} already exists.`)
    }
    this.#entries = new Map([...this.#entries].map((entry) => entry[0] === key ? [rename, plain] : entry))
  }

  /** Returns the section with its changes; undefined if nothing changed. */
  changedSection (): unknown {
    const names = Object.keys(this.#former)
    const isUnchanged =
      names.length === this.#entries.size && names.every((name) => this.#entries.get(name) === this.#former[name])
    return isUnchanged ? undefined : createOrderedObject([...this.#entries])
  }
}

/**
 * Applies changes to a section that is a list. If several entries have the same key, a write changes the first one, and
 * a removal removes all of them.
 */
class ListSection {
  readonly #former: readonly unknown[]
  readonly #keyMember: string
  readonly #entries: unknown[]
  readonly #indexes = new Map<unknown, number[]>()

  constructor (former: readonly unknown[], keyMember: string) {
    this.#former = former
    this.#keyMember = keyMember
    this.#entries = [...former]
    former.forEach((entry, at) => { if (isPlainObject(entry)) this.#addIndex(entry[keyMember], at) })
  }

  put ({ entity, key, value, rename }: ChangeOf<ListEntityName>): void {
    if (rename !== undefined && rename !== key) {
      throw new InvalidChangeError(`${entity} keep their "${this.#keyMember}".`)
    }
    const indexes = this.#indexes.get(key) ?? []
    if (value === undefined) {
      for (const at of indexes) this.#entries[at] = undefined
      this.#indexes.delete(key)
      return
    }
    if ((value as Record<string, unknown>)[this.#keyMember] !== key) {
      throw new InvalidChangeError(`"${this.#keyMember}" must be ${JSON.stringify(key)}.`)
    }
    const at = indexes[0] ?? this.#entries.length
    this.#entries[at] = toPlainJson(this.#entries[at], value)
    if (indexes.length === 0) this.#addIndex(key, at)
  }

  /** Sorts the entries by the order of `keys`. Entries with other keys come last, in their former order. */
  order (keys: readonly string[]): void {
    const rankOf = (entry: unknown): number => {
      const rank = isPlainObject(entry) ? keys.indexOf(String(entry[this.#keyMember])) : -1
      return rank === -1 ? keys.length : rank
    }
    this.#entries.sort((one, other) => rankOf(one) - rankOf(other))
    this.#indexes.clear()
    this.#entries.forEach((entry, at) => { if (isPlainObject(entry)) this.#addIndex(entry[this.#keyMember], at) })
  }

  /** Replaces each entry that is an object by the result of `change`. */
  map (change: (entry: Record<string, unknown>) => unknown): void {
    this.#entries.forEach((entry, at) => { if (isPlainObject(entry)) this.#entries[at] = change(entry) })
  }

  /** Returns the section with its changes; undefined if nothing changed. */
  changedSection (): unknown {
    const entries = this.#entries.filter((entry) => entry !== undefined)
    return entries.length === this.#former.length && entries.every((entry, at) => entry === this.#former[at])
      ? undefined
      : entries
  }

  #addIndex (key: unknown, at: number): void {
    const indexes = this.#indexes.get(key)
    if (indexes) indexes.push(at)
    else this.#indexes.set(key, [at])
  }
}

/** Returns a copy of a list of names with one name replaced; the value itself if it is not a list or lacks the name. */
const renameInList = (names: unknown, from: string, to: string): unknown =>
  Array.isArray(names) && names.includes(from) ? names.map((name: unknown) => (name === from ? to : name)) : names

function renameGroupMember (group: Record<string, unknown>, from: string, to: string): unknown {
  if (!Array.isArray(group.servers)) return group
  const servers = group.servers.map((member: unknown) =>
    member === from ? to : isPlainObject(member) && member.name === from ? { ...member, name: to } : member
  )
  return servers.every((member, at) => member === (group.servers as unknown[])[at]) ? group : { ...group, servers }
}

function renameInKeyScope (key: Record<string, unknown>, from: string, to: string): unknown {
  const allowedServers = renameInList(key.allowedServers, from, to)
  return allowedServers === key.allowedServers ? key : { ...key, allowedServers }
}

function renameInGuard (guard: Record<string, unknown>, from: string, to: string): unknown {
  const servers = renameInList(guard.servers, from, to)
  return servers === guard.servers ? guard : { ...guard, servers }
}

const renameInQuota = (quota: Record<string, unknown>, from: string, to: string): unknown =>
  isPlainObject(quota.target) && quota.target.server === from
    ? { ...quota, target: { ...quota.target, server: to } }
    : quota

/** How an entry that refers to a server by its name changes when the server is renamed, by section. */
const renames = {
  groups: renameGroupMember, bearerKeys: renameInKeyScope, guards: renameInGuard, quotas: renameInQuota
} as const

/**
 * Returns a document with changes applied. Unchanged parts stay the same objects; if nothing changes, the document
 * itself is returned. A renamed server is also renamed in groups, and in the servers of bearer keys, guards and quotas.
 * @throws InvalidChangeError when a change contradicts the document, or a section has the wrong type
 */
export function applyChanges (document: SettingsDocument, changes: readonly Change[]): SettingsDocument {
  const sections = new Map<string, ObjectSection | ListSection>()
  let system: unknown = document.systemConfig
  const servers = (): ObjectSection => {
    const former = document.mcpServers ?? {}
    if (!isPlainObject(former)) throw wrongTypeError('mcpServers')
    const section = sections.get('mcpServers') ?? new ObjectSection(former)
    sections.set('mcpServers', section)
    return section as ObjectSection
  }
  const list = (name: ListEntityName): ListSection => {
    const former = document[name] ?? []
    if (!Array.isArray(former)) throw wrongTypeError(name)
    const section = sections.get(name) ?? new ListSection(former, entities[name].key)
    sections.set(name, section)
    return section as ListSection
  }

  for (const change of changes) {
    if (change.entity === 'systemConfig') system = toPlainJson(system, change.value)
    else if (change.entity === 'order') list(change.of).order(change.keys)
    else if (change.entity === 'mcpServers') {
      servers().put(change)
      const { key, value, rename } = change
      if (value === undefined || rename === undefined || rename === key) continue
      for (const [name, renameIn] of Object.entries(renames)) {
        const section = name as keyof typeof renames
        if (!Array.isArray(document[section]) && !sections.has(section)) continue
        list(section).map((entry) => renameIn(entry, key, rename))
      }
    } else list(change.entity).put(change)
  }

  const changed = [...sections]
    .map(([name, section]): [string, unknown] => [name, section.changedSection()])
    .filter(([, value]) => value !== undefined)
  if (system !== document.systemConfig) changed.push(['systemConfig', system])
  return changed.length === 0 ? document : { ...document, ...Object.fromEntries(changed) }
}

const wrongTypeError = (section: string): InvalidChangeError =>
  new InvalidChangeError(`"${section}" in the settings has the wrong type, and cannot be changed: correct it first.`)
