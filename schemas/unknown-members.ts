import type { TSchema } from '@sinclair/typebox'
import { nearName } from './near-name.ts'

type Json = Readonly<Record<string, unknown>>

/** As in `protocol/json.ts`, which schemas do not import. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A name for a message, cut to what fits in one. */
export const quoteName = (name: string): string => JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name)

/** Whether a member is a comment, or the address of a schema. */
export const isComment = (name: string): boolean => /^(\$schema|_?comment|\/\/.*|#.*)$/i.test(name)

/** Max entries of one list or map that are looked at, and max members that are named of one value. */
const [mostEntries, mostNamed] = [10_000, 20]

/** The member that was probably meant by one that is not known; undefined: none is near enough. */
export const meantBy = (name: string, known: Iterable<string>): string | undefined =>
  nearName(name, known, (given, { length }) => Math.min(given.length, length) < 6 ? 1 : 2)

/**
 * A sentence for a member that a schema does not have.
 * @param path the member with those that it stands in, `routing.skipAuht`
 * @param known the members that there are in its place
 */
export function unknownSentence (path: string, name: string, known: Iterable<string>): string {
  const meant = meantBy(name, known)
  return `${quoteName(path)} is not known and has no ` +
    `effect${meant === undefined ? '' : `: did you mean ${quoteName(meant)}?`}`
}

/**
 * Names the members of a value that its schema does not have, in all depths that the schema describes. Comments are no
 * members. The value need not be valid.
 * @param path put before each member
 * @returns a sentence for each, at most 20
 */
export function unknownMembers (schema: TSchema, value: unknown, path = ''): string[] {
  const found: string[] = []
  collect(schema, value, path, found)
  return found
}

function collect (schema: TSchema, value: unknown, path: string, found: string[]): void {
  if (found.length >= mostNamed) return
  if (Array.isArray(value)) {
    const items = alternatives(schema).find(({ type }) => type === 'array')?.items as TSchema | undefined
    if (items) {
      for (const [at, each] of value.slice(0, mostEntries).entries()) collect(items, each, `${path}${at}.`, found)
    }
    return
  }
  if (!isObject(value)) return
  const object = alternatives(schema).find(({ type }) => type === 'object')
  if (object) collectIn(object, value, path, found)
}

function collectIn (schema: TSchema, value: Json, path: string, found: string[]): void {
  const properties = schema.properties as Record<string, TSchema> | undefined
  const [ofMap] = Object.values((schema.patternProperties ?? {}) as Record<string, TSchema>)
  for (const [name, each] of Object.entries(value).slice(0, mostEntries)) {
    if (found.length >= mostNamed) return
    const own = properties && Object.hasOwn(properties, name) ? properties[name] : ofMap
    if (own) collect(own, each, `${path}${name}.`, found)
    else if (properties && !isComment(name)) {
      found.push(unknownSentence(`${path}${name}`, name, Object.keys(properties)))
    }
  }
}

/** The schemas that a value may have: those of a union, else the one itself. */
const alternatives = (schema: TSchema): TSchema[] => Array.isArray(schema.anyOf) ? schema.anyOf as TSchema[] : [schema]
