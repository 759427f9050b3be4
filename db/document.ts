import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { Value } from '@sinclair/typebox/value'
import type { TSchema } from '@sinclair/typebox'
import { translateConfig } from '../schemas/foreign-config.ts'
import { nameProblem } from '../schemas/names.ts'
import { firstSchemaProblem } from '../schemas/problem.ts'
import { configProblem, ServerConfig } from '../schemas/server.ts'
import { SystemConfig, type Group } from '../schemas/settings.ts'
import { isPlainObject } from '../schemas/unknown-members.ts'
import type { SettingsDocument } from './apply.ts'
import { entities, entityNames, listEntityNames, type EntityName, type ListEntityName } from './entities.ts'
import { findMaskPath } from './masks.ts'
import { orderedEntries } from './order.ts'
import { inFileCollectionNames } from './records.ts'
import { repeatedServerNames } from './repeated-names.ts'
import { truncateWarnings, warningsOfDocument, warningsOfEntry, warningsOfSystem } from './settings-warnings.ts'
import type { SnapshotEntryOf, Server, Snapshot, NormalizedGroup } from './store.ts'

/**
 * A section of the document as read. `raw`: the value of the section; `items`: the entries by key, but only usable ones
 * unless they are servers; `problems`: messages about unusable entries; `warnings`: messages about members that should
 * be corrected, such as unknown ones.
 */
interface Section<Item> {
  readonly raw: unknown
  readonly items: ReadonlyMap<string, Item>
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

const emptySection = (raw: unknown, ...problems: string[]) =>
  ({ raw, items: new Map<string, never>(), problems, warnings: [] })

type Sections = { readonly [Name in EntityName]: Section<SnapshotEntryOf<Name>> }

/** A settings document and the snapshot that was read from it. */
export interface ParsedSettings {
  readonly document: SettingsDocument
  readonly snapshot: Snapshot
  readonly sections: Sections
  /** Messages about members of the system configuration that should be corrected, such as unknown ones. */
  readonly systemWarnings: readonly string[]
}

/** The number of values that are validated without compiling the schema. For more values, compiling it is faster. */
const maxUncompiledChecks = 50

/**
 * Creates a function that validates values against a schema. It returns the first problem of a value as a clause;
 * undefined if the value is valid.
 */
function createSchemaCheck (schema: TSchema): (value: unknown) => string | undefined {
  let compiled: TypeCheck<TSchema> | undefined
  let checked = 0
  return (value) => {
    if (++checked > maxUncompiledChecks) compiled ??= TypeCompiler.Compile(schema)
    if (compiled ? compiled.Check(value) : Value.Check(schema, value)) return undefined
    const problem = firstSchemaProblem(schema, value)
    return problem && problem.path !== ''
      ? `"${problem.path}": ${problem.message}`
      : problem?.message ?? 'it cannot be used'
  }
}

/** The reasons passed to `markUndecryptable`, by entry. */
const lockReasons = new WeakMap<object, string>()

/**
 * Marks an entry of the document as locked, since its secrets cannot be decrypted. A locked entry is kept in the
 * document but not used.
 * @param reason a clause or sentence that says why, for messages
 */
export const markUndecryptable = (entry: object, reason: string): void => { lockReasons.set(entry, reason) }

/** Returns the reason passed to `markUndecryptable`; undefined if the entry is not locked. */
export const undecryptableReasonOf = (entry: unknown): string | undefined =>
  isPlainObject(entry) ? lockReasons.get(entry) : undefined

/**
 * Creates a function that reads a section that is a list. Results are cached by entry, since entries are immutable; if
 * the section is the same object as in the former reading, the former result is returned.
 */
function createListReader (
  name: ListEntityName
): (document: SettingsDocument, former: Section<unknown> | undefined) => Section<unknown> {
  const { schema, key: keyMember } = entities[name]
  const validate = createSchemaCheck(schema)
  type Result = { item: unknown, warnings: readonly string[] } | { problem: string }
  const known = new WeakMap<object, Result>()
  const readEntry = (entry: unknown): Result => {
    const before = isPlainObject(entry) ? known.get(entry) : undefined
    if (before) return before
    const problem = undecryptableReasonOf(entry) ?? validate(entry)
    const warnings = problem === undefined && isPlainObject(entry) ? warningsOfEntry(name, schema, entry) : []
    const result = problem === undefined
      ? { item: name === 'groups' ? toStoredGroup(entry as Group) : entry, warnings }
      : { problem }
    if (isPlainObject(entry)) known.set(entry, result)
    return result
  }
  return (document, former) => {
    const raw = document[name]
    if (former && former.raw === raw) return former
    if (raw === undefined || raw === null) return emptySection(raw)
    if (!Array.isArray(raw)) return emptySection(raw, `"${name}" is not a list; it is ignored`)
    const items = new Map<string, unknown>()
    const problems: string[] = []
    const warnings: string[] = []
    raw.forEach((entry: Record<string, unknown>, at) => {
      const result = readEntry(entry)
      const key = String(entry?.[keyMember])
      if ('problem' in result) problems.push(`"${name}" entry ${at + 1} is ignored: ${result.problem}`)
      else if (items.has(key)) {
        problems.push(`"${name}" entry ${at + 1} is ignored: an earlier entry has the same "${keyMember}"`)
      } else {
        items.set(key, result.item)
        warnings.push(...result.warnings)
      }
    })
    return { raw, items, problems, warnings: truncateWarnings(warnings, `"${name}"`) }
  }
}

const toStoredGroup = ({ servers, ...group }: Group): NormalizedGroup => ({
  ...group,
  members: servers.map((member) => (typeof member === 'string' ? { name: member } : member))
})

const listReaders = new Map(listEntityNames.map((name) => [name, createListReader(name)]))

const validateServer = createSchemaCheck(ServerConfig)
const cachedServers = new WeakMap<object, { readonly server: Server, readonly separator: string }>()

/**
 * Reads the entry of a server. A config in the format of another program is translated (`translateConfig`); the
 * document keeps the original until the server is changed. The result is cached by entry.
 * @param separator the name separator of the settings, for `Server.separator`
 */
function readServer (name: string, raw: unknown, separator: string): Server {
  const before = isPlainObject(raw) ? cachedServers.get(raw) : undefined
  if (before?.server.name === name && before.separator === separator) return before.server
  const locked = undecryptableReasonOf(raw)
  const { config, warnings: translationWarnings } = isPlainObject(raw) && locked === undefined
    ? translateConfig(raw)
    : { config: raw, warnings: [] }
  const problem = nameProblem(name) ?? locked ?? validateServer(config) ?? configProblem(config as ServerConfig)
  const masked = isPlainObject(config) && locked === undefined ? findMaskPath(config) : undefined
  const warnings = masked === undefined
    ? translationWarnings
    : [...translationWarnings, `"${masked}" contains a mask (••••), not a secret: write the secret itself`]
  const server: Server = {
    name,
    config: isPlainObject(config) ? config : {},
    ...(problem === undefined ? {} : { problem }),
    ...(isPlainObject(config) && (isPlainObject(config.tools) || isPlainObject(config.prompts)) ? { separator } : {}),
    ...(warnings.length === 0 ? {} : { warnings })
  }
  if (isPlainObject(raw)) cachedServers.set(raw, { server, separator })
  return server
}

const separators = new WeakMap<Section<Server>, string>()

function readServers (document: SettingsDocument, former: Section<Server> | undefined): Section<Server> {
  const raw = document.mcpServers
  const { nameSeparator: separator = '-' } = isPlainObject(document.systemConfig)
    ? document.systemConfig as SystemConfig
    : {}
  if (former && former.raw === raw && separators.get(former) === separator) return former
  if (raw === undefined || raw === null) return emptySection(raw)
  if (!isPlainObject(raw)) return emptySection(raw, '"mcpServers" is not an object; it is ignored')
  const items = new Map<string, Server>()
  const problems: string[] = []
  const warnings: string[] = []
  for (const [name, config] of orderedEntries(raw)) {
    const server = readServer(name, config, separator)
    items.set(name, server)
    if (server.problem !== undefined) {
      problems.push(`server ${JSON.stringify(name)} is not connected: ${server.problem}`)
    }
    for (const warning of server.warnings ?? []) warnings.push(`server ${JSON.stringify(name)}: ${warning}`)
  }
  for (const name of repeatedServerNames(raw)) {
    warnings.push(
      `server ${JSON.stringify(name)} occurs more than once: only the last entry applies, the others are ignored`
    )
  }
  const section = { raw, items, problems, warnings }
  separators.set(section, separator)
  return section
}

/** The names of the sections that must be lists: those of entities, of OAuth clients, and of records. */
const listSections = [...listEntityNames, 'oauthClients', ...inFileCollectionNames]

/**
 * Refuses an edit that replaces a valid section by a value of the wrong type: the section would be read as empty, and
 * all its entries would be lost.
 * @throws Error whose message is a clause, to be used within a sentence
 */
export function assertSectionTypesKept (former: SettingsDocument, next: SettingsDocument): void {
  for (const name of ['mcpServers', ...listSections]) {
    const [before, now] = [former[name], next[name]]
    const fits = name === 'mcpServers' ? isPlainObject : Array.isArray
    if (now !== undefined && !fits(now) && fits(before)) {
      throw new Error(`"${name}" is not ${name === 'mcpServers' ? 'an object' : 'a list'}`)
    }
  }
}

const validateSystem = createSchemaCheck(SystemConfig)

function systemProblems ({ systemConfig }: SettingsDocument): string[] {
  const reason = undecryptableReasonOf(systemConfig)
  return reason === undefined ? [] : [`the secrets in "systemConfig" are ignored: ${reason}`]
}

/**
 * Reads a settings document into a snapshot. Unusable entries are omitted and reported in `problems`; an unusable
 * server stays in the snapshot, with its `problem`. Sections and entries that are the same objects as in the former
 * reading are not read again.
 * @param former the last reading; undefined for the first
 * @throws Error when the system configuration is invalid: it decides who has access, so it must not be guessed
 */
export function parseSnapshot (
  document: SettingsDocument, version: number, former?: ParsedSettings
): ParsedSettings {
  const system = document.systemConfig ?? {}
  const isSameSystem = former !== undefined && former.document.systemConfig === document.systemConfig
  const problem = isSameSystem ? undefined : validateSystem(system)
  if (problem !== undefined) throw new Error(`"systemConfig" cannot be used: ${problem}`)
  const servers = readServers(document, former?.sections.mcpServers)
  const lists = [...listReaders].map(([name, readList]) => [name, readList(document, former?.sections[name])] as const)
  const sections = { mcpServers: servers, ...Object.fromEntries(lists) } as unknown as Sections
  const items = Object.fromEntries(entityNames.map((name) => [entities[name].member, sections[name].items]))
  const all = Object.values(sections)
  const systemWarnings = isSameSystem ? former.systemWarnings : warningsOfSystem(system)
  const warnings = [...all.flatMap(({ warnings }) => warnings), ...systemWarnings, ...warningsOfDocument(document)]
  return {
    document,
    sections,
    systemWarnings,
    snapshot: {
      ...items as unknown as Snapshot,
      version,
      system: isSameSystem ? former.snapshot.system : system,
      problems: [...all.flatMap(({ problems }) => problems), ...systemProblems(document), ...warnings],
      warnings
    }
  }
}

/** Whether the settings contain a bearer token in plain text, such as one that a person has written into the file. */
export const hasPlainTokens = ({ keys, system }: Snapshot): boolean =>
  system.routing?.bearerAuthKey !== undefined || [...keys.values()].some(({ token }) => token !== undefined)
