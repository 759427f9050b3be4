import type { TSchema } from '@sinclair/typebox'
import { nearestName } from './near-name.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * Whether a value is a JSON object. It is a copy of `isObject` in `protocol/json.ts`, since `schemas/` must not import
 * `protocol/`.
 */
export const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Quotes a name for a message, and truncates it to 60 characters. */
export const quoteName = (name: string): string => JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name)

/** Whether a member is a comment or `$schema`, judging by its name. */
export const isCommentName = (name: string): boolean => /^(\$schema|_?comment|\/\/.*|#.*)$/i.test(name)

/** Max number of entries that are examined in one list or map. */
const maxEntries = 10_000
/** Max number of unknown members that are reported. */
const maxReported = 20

/** Returns the known member that was probably meant by an unknown one; undefined if none is similar enough. */
export const closestMember = (name: string, known: Iterable<string>): string | undefined =>
  nearestName(name, known, (given, { length }) => Math.min(given.length, length) < 6 ? 1 : 2)

/**
 * Returns a sentence about a member that is not in a schema.
 * @param path the full path of the member, such as `routing.skipAuht`
 * @param known the names of the known members in its place
 */
export function unknownMemberWarning (path: string, name: string, known: Iterable<string>): string {
  const meant = closestMember(name, known)
  return `${quoteName(path)} is not known and has no ` +
    `effect${meant === undefined ? '' : `: did you mean ${quoteName(meant)}?`}`
}

/**
 * Finds the members of a value that are not in its schema, at all depths that the schema describes. Comments are
 * ignored. The value need not be valid.
 * @param path the prefix of each reported path
 * @returns a sentence for each unknown member, at most `maxReported`
 */
export function unknownMemberWarnings (schema: TSchema, value: unknown, path = ''): string[] {
  const found: string[] = []
  collect(schema, value, path, found)
  return found
}

function collect (schema: TSchema, value: unknown, path: string, found: string[]): void {
  if (found.length >= maxReported) return
  if (Array.isArray(value)) {
    const items = alternatives(schema).find(({ type }) => type === 'array')?.items as TSchema | undefined
    if (items) {
      for (const [at, each] of value.slice(0, maxEntries).entries()) collect(items, each, `${path}${at}.`, found)
    }
    return
  }
  if (!isPlainObject(value)) return
  const object = alternatives(schema).find(({ type }) => type === 'object')
  if (object) collectIn(object, value, path, found)
}

function collectIn (schema: TSchema, value: Json, path: string, found: string[]): void {
  const properties = schema.properties as Record<string, TSchema> | undefined
  const [ofMap] = Object.values((schema.patternProperties ?? {}) as Record<string, TSchema>)
  for (const [name, each] of Object.entries(value).slice(0, maxEntries)) {
    if (found.length >= maxReported) return
    const own = properties && Object.hasOwn(properties, name) ? properties[name] : ofMap
    if (own) collect(own, each, `${path}${name}.`, found)
    else if (properties && !isCommentName(name)) {
      found.push(unknownMemberWarning(`${path}${name}`, name, Object.keys(properties)))
    }
  }
}

/** Returns the alternatives of a union schema; for any other schema, the schema itself. */
const alternatives = (schema: TSchema): TSchema[] => Array.isArray(schema.anyOf) ? schema.anyOf as TSchema[] : [schema]
