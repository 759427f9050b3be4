import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { Static, TSchema } from '@sinclair/typebox'
import { nameProblem } from '../schemas/names.ts'
import { problemOf } from '../schemas/problem.ts'
import { incomplete, ServerConfig } from '../schemas/server.ts'
import { BearerKey, Group, SystemConfig, User } from '../schemas/settings.ts'
import { isObject, keyMembers, type Document, type ListName } from './apply.ts'
import type { Server, Snapshot, StoredGroup } from './store.ts'

/** What a section of the document says, and the section that says it. */
interface Section<Item> { readonly raw: unknown, readonly items: ReadonlyMap<string, Item>, readonly problems: readonly string[] }

/** A document, and the snapshot that it says. */
export interface Reading {
  readonly document: Document
  readonly snapshot: Snapshot
  readonly sections: { servers: Section<Server>, groups: Section<StoredGroup>, keys: Section<BearerKey>, users: Section<User> }
}

/** A check of a schema: what is wrong with a value, as a phrase. Compiled once; the slow way is taken only for the words. */
function check (schema: TSchema): (value: unknown) => string | undefined {
  const compiled = TypeCompiler.Compile(schema)
  return (value) => {
    if (compiled.Check(value)) return undefined
    const problem = problemOf(schema, value)
    return problem && problem.path !== '' ? `"${problem.path}": ${problem.message}` : problem?.message ?? 'it cannot be used'
  }
}

const locked = new WeakMap<object, string>()

/** Marks an entry whose secrets cannot be opened, with the reason as a sentence: it is kept as it is, and not used. */
export const lock = (entry: object, why: string): void => { locked.set(entry, why) }

/** Why an entry is locked; undefined: it is not. */
export const lockOf = (entry: unknown): string | undefined => isObject(entry) ? locked.get(entry) : undefined

/** A reader of a list section. What it made of an entry is remembered with the entry, which never changes. */
function listReader<Schema extends TSchema, Item> (name: ListName, schema: Schema, make: (entry: Static<Schema>) => Item) {
  const wrong = check(schema)
  const known = new WeakMap<object, { item: Item } | { problem: string }>()
  const readEntry = (entry: unknown): { item: Item } | { problem: string } => {
    const before = isObject(entry) ? known.get(entry) : undefined
    if (before) return before
    const problem = lockOf(entry) ?? wrong(entry)
    const result = problem === undefined ? { item: make(entry as Static<Schema>) } : { problem }
    if (isObject(entry)) known.set(entry, result)
    return result
  }
  return (document: Document, former: Section<Item> | undefined): Section<Item> => {
    const raw = document[name]
    if (former && former.raw === raw) return former
    if (raw === undefined || raw === null) return { raw, items: new Map(), problems: [] }
    if (!Array.isArray(raw)) return { raw, items: new Map(), problems: [`"${name}" is no list; it is ignored`] }
    const items = new Map<string, Item>()
    const problems: string[] = []
    raw.forEach((entry: Record<string, unknown>, at) => {
      const result = readEntry(entry)
      const key = String(entry?.[keyMembers[name]])
      if ('problem' in result) problems.push(`"${name}" entry ${at + 1} is ignored: ${result.problem}`)
      else if (items.has(key)) problems.push(`"${name}" entry ${at + 1} is ignored: an earlier one has the same "${keyMembers[name]}"`)
      else items.set(key, result.item)
    })
    return { raw, items, problems }
  }
}

const readUsers = listReader('users', User, (user) => user)
const readKeys = listReader('bearerKeys', BearerKey, (key) => key)
const readGroups = listReader('groups', Group, ({ servers, ...group }): StoredGroup => ({
  ...group,
  members: servers.map((member) => (typeof member === 'string' ? { name: member } : member))
}))

const wrongServer = check(ServerConfig)
const knownServers = new WeakMap<object, Server>()

function readServer (name: string, config: unknown): Server {
  const before = isObject(config) ? knownServers.get(config) : undefined
  if (before?.name === name) return before
  const problem = nameProblem(name) ?? lockOf(config) ?? wrongServer(config) ?? incomplete(config as ServerConfig)
  const server: Server = { name, config: isObject(config) ? config : {}, ...(problem === undefined ? {} : { problem }) }
  if (isObject(config)) knownServers.set(config, server)
  return server
}

function readServers (document: Document, former: Section<Server> | undefined): Section<Server> {
  const raw = document.mcpServers
  if (former && former.raw === raw) return former
  if (raw === undefined || raw === null) return { raw, items: new Map(), problems: [] }
  if (!isObject(raw)) return { raw, items: new Map(), problems: ['"mcpServers" is no object; it is ignored'] }
  const items = new Map<string, Server>()
  const problems: string[] = []
  for (const name of Object.keys(raw)) {
    const server = readServer(name, raw[name])
    items.set(name, server)
    if (server.problem !== undefined) problems.push(`server ${JSON.stringify(name)} is not connected: ${server.problem}`)
  }
  return { raw, items, problems }
}

/**
 * Looks at an edit: a section that becomes another kind of thing says nothing of its entries, and would be taken for an empty one.
 * @throws Error with a phrase
 */
export function checkKinds (former: Document, next: Document): void {
  for (const name of ['mcpServers', ...Object.keys(keyMembers)]) {
    const [before, now] = [former[name], next[name]]
    const fits = name === 'mcpServers' ? isObject : Array.isArray
    if (now !== undefined && !fits(now) && fits(before)) throw new Error(`"${name}" is no ${name === 'mcpServers' ? 'object' : 'list'}`)
  }
}

const wrongSystem = check(SystemConfig)

function lockedSystem ({ systemConfig }: Document): string[] {
  const why = lockOf(systemConfig)
  return why === undefined ? [] : [`the secrets in "systemConfig" are left out: ${why}`]
}

/**
 * What a settings document says. Entries that cannot be used are kept out (servers: marked) and reported, never fatal. What is
 * the same object in the document as in the former reading is not looked at again, and is the same object in the snapshot.
 * @throws Error when the system configuration cannot be used: guessing who may enter would be worse than not starting
 */
export function read (document: Document, version: number, former?: Reading): Reading {
  const system = document.systemConfig ?? {}
  const wrong = former && former.document.systemConfig === document.systemConfig ? undefined : wrongSystem(system)
  if (wrong !== undefined) throw new Error(`"systemConfig" cannot be used: ${wrong}`)
  const sections = {
    servers: readServers(document, former?.sections.servers),
    groups: readGroups(document, former?.sections.groups),
    keys: readKeys(document, former?.sections.keys),
    users: readUsers(document, former?.sections.users)
  }
  return {
    document,
    sections,
    snapshot: {
      version,
      servers: sections.servers.items,
      groups: sections.groups.items,
      keys: sections.keys.items,
      users: sections.users.items,
      system: former && former.document.systemConfig === document.systemConfig ? former.snapshot.system : system,
      problems: [...Object.values(sections).flatMap(({ problems }) => problems), ...lockedSystem(document)]
    }
  }
}

/** Whether there is a token in plain, as somebody may write one into the file. */
export const holdsTokens = ({ keys, system }: Snapshot): boolean =>
  system.routing?.bearerAuthKey !== undefined || [...keys.values()].some(({ token }) => token !== undefined)
