import { Invalid, type Change, type Entity } from './store.ts'

/** The settings as plain JSON, with all that we do not know kept. Never changed in place: parts are shared between versions. */
export type Document = Readonly<Record<string, unknown>>
type Entry<Name extends Entity | 'systemConfig'> = Extract<Change, { entity: Name }>

/** Which member of an entry is its key, in the sections that are lists. */
export const keyMembers = { users: 'username', groups: 'id', bearerKeys: 'id' } as const
export type ListName = keyof typeof keyMembers

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A value as the file will say it, and the former one itself when the file says the same. */
function kept (former: unknown, value: unknown): unknown {
  const text = JSON.stringify(value)
  return former !== undefined && JSON.stringify(former) === text ? former : JSON.parse(text)
}

/** An object section while changes are made: a Map, since a member may be called `__proto__`. */
class Members {
  readonly #former: Record<string, unknown>
  #entries: Map<string, unknown>

  constructor (former: Record<string, unknown>) {
    this.#former = former
    this.#entries = new Map(Object.entries(former))
  }

  put ({ key, value, rename = key }: Entry<'mcpServers'>): void {
    if (value === undefined) { this.#entries.delete(key); return }
    const plain = kept(this.#entries.get(key), value)
    if (rename === key) { this.#entries.set(key, plain); return }
    if (!this.#entries.has(key)) throw new Invalid(`There is no server ${JSON.stringify(key)} to rename.`)
    if (this.#entries.has(rename)) throw new Invalid(`There is already a server ${JSON.stringify(rename)}.`)
    this.#entries = new Map([...this.#entries].map((entry) => entry[0] === key ? [rename, plain] : entry))
  }

  /** The section now; undefined: as it was. */
  done (): unknown {
    const names = Object.keys(this.#former)
    const same = names.length === this.#entries.size && names.every((name) => this.#entries.get(name) === this.#former[name])
    return same ? undefined : Object.fromEntries(this.#entries)
  }
}

/** A list section while changes are made. The first entry with a key is the one that counts; removing takes all of them. */
class List {
  readonly #former: readonly unknown[]
  readonly #member: string
  readonly #entries: unknown[]
  readonly #placement = new Map<unknown, number[]>()

  constructor (former: readonly unknown[], member: string) {
    this.#former = former
    this.#member = member
    this.#entries = [...former]
    former.forEach((entry, at) => { if (isObject(entry)) this.#note(entry[member], at) })
  }

  put ({ entity, key, value, rename }: Entry<ListName>): void {
    if (rename !== undefined && rename !== key) throw new Invalid(`${entity} keep their "${this.#member}".`)
    const places = this.#placement.get(key) ?? []
    if (value === undefined) {
      for (const at of places) this.#entries[at] = undefined
      this.#placement.delete(key)
      return
    }
    if ((value as Record<string, unknown>)[this.#member] !== key) throw new Invalid(`"${this.#member}" must be ${JSON.stringify(key)}.`)
    const at = places[0] ?? this.#entries.length
    this.#entries[at] = kept(this.#entries[at], value)
    if (places.length === 0) this.#note(key, at)
  }

  /** Each entry as the function gives it. */
  map (change: (entry: Record<string, unknown>) => unknown): void {
    this.#entries.forEach((entry, at) => { if (isObject(entry)) this.#entries[at] = change(entry) })
  }

  /** The section now; undefined: as it was. */
  done (): unknown {
    const entries = this.#entries.filter((entry) => entry !== undefined)
    return entries.length === this.#former.length && entries.every((entry, at) => entry === this.#former[at]) ? undefined : entries
  }

  #note (key: unknown, at: number): void {
    const places = this.#placement.get(key)
    if (places) places.push(at)
    else this.#placement.set(key, [at])
  }
}

const renamedIn = (names: unknown, from: string, to: string): unknown =>
  Array.isArray(names) && names.includes(from) ? names.map((name: unknown) => (name === from ? to : name)) : names

/** A group with a server under its new name. */
function renameMember (group: Record<string, unknown>, from: string, to: string): unknown {
  if (!Array.isArray(group.servers)) return group
  const servers = group.servers.map((member: unknown) =>
    member === from ? to : isObject(member) && member.name === from ? { ...member, name: to } : member
  )
  return servers.every((member, at) => member === (group.servers as unknown[])[at]) ? group : { ...group, servers }
}

/** A key with a server under its new name. */
function renameAllowed (key: Record<string, unknown>, from: string, to: string): unknown {
  const allowedServers = renamedIn(key.allowedServers, from, to)
  return allowedServers === key.allowedServers ? key : { ...key, allowedServers }
}

/**
 * The document with all changes made; what they do not touch is the same object as before, and the whole document when they
 * change nothing. A renamed server also gets its new name in groups and in the scopes of keys.
 * @throws Invalid when a change does not fit the document, or the section is there but of another kind than ours
 */
export function apply (document: Document, changes: readonly Change[]): Document {
  const sections = new Map<string, Members | List>()
  let system: unknown = document.systemConfig
  const servers = (): Members => {
    const section =
      sections.get('mcpServers') ?? new Members(isObject(document.mcpServers) ? document.mcpServers : fresh(document, 'mcpServers', {}))
    sections.set('mcpServers', section)
    return section as Members
  }
  const list = (name: ListName): List => {
    const former = document[name]
    const section = sections.get(name) ?? new List(Array.isArray(former) ? former : fresh(document, name, []), keyMembers[name])
    sections.set(name, section)
    return section as List
  }

  for (const change of changes) {
    if (change.entity === 'systemConfig') system = kept(system, change.value)
    else if (change.entity === 'mcpServers') {
      servers().put(change)
      const { key, value, rename } = change
      if (value === undefined || rename === undefined || rename === key) continue
      if (Array.isArray(document.groups) || sections.has('groups')) list('groups').map((group) => renameMember(group, key, rename))
      if (Array.isArray(document.bearerKeys) || sections.has('bearerKeys')) {
        list('bearerKeys').map((entry) => renameAllowed(entry, key, rename))
      }
    } else list(change.entity).put(change)
  }

  const changed = [...sections]
    .map(([name, section]): [string, unknown] => [name, section.done()])
    .filter(([, value]) => value !== undefined)
  if (system !== document.systemConfig) changed.push(['systemConfig', system])
  return changed.length === 0 ? document : { ...document, ...Object.fromEntries(changed) }
}

/** An empty section for one that is missing. */
function fresh<Section> (document: Document, name: string, empty: Section): Section {
  if (document[name] !== undefined && document[name] !== null) {
    throw new Invalid(`"${name}" in the settings is of another kind than it should be, and is kept as it is: mend it first.`)
  }
  return empty
}
