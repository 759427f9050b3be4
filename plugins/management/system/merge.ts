import { isDeepStrictEqual } from 'node:util'
import type { TSchema } from '@sinclair/typebox'
import { isObject } from '../../../protocol/json.ts'
import { problemOf } from '../../../schemas/problem.ts'
import { errors } from '../../base/errors/index.ts'
import { isMask } from '../../base/secrets/index.ts'

type Json = Record<string, unknown>

/** The properties of an object schema; undefined for any other schema. */
const membersOf = (schema: TSchema | undefined): Record<string, TSchema> | undefined =>
  schema?.type === 'object' ? (schema.properties as Record<string, TSchema>) : undefined

/**
 * Merges sent values into the stored ones (DECISIONS §13): a given key replaces its value, in nested objects likewise; absent keys stay;
 * null resets to the default. A value equal to the shown one changes nothing, even under a key that is not in the schema.
 * @param shown the answer of a GET for `stored`: masks for secrets, defaults for absent values
 * @throws InvalidInput naming the key that is unknown, or whose value is invalid
 */
export function merge (stored: Json, sent: Json, shown: Json, schema: TSchema, path = ''): Json {
  const next: Json = { ...stored }
  const members = membersOf(schema) ?? {}
  for (const [key, value] of Object.entries(sent)) {
    const place = path === '' ? key : `${path}.${key}`
    if (Object.hasOwn(shown, key) && isDeepStrictEqual(value, shown[key])) continue
    const known = Object.hasOwn(members, key) ? members[key] : undefined
    if (!known) throw new errors.InvalidInput(`"${place}" is not known; the documentation of this route lists what it takes`)
    if (value === null) {
      delete next[key]
      continue
    }
    if (isMask(value)) throw new errors.InvalidInput(`"${place}": this is a mask, not a value; send the value itself, or leave it out`)
    if (membersOf(known) && isObject(value)) {
      next[key] = merge(objectIn(stored, key), value, objectIn(shown, key), known, place)
      continue
    }
    const wrong = problemOf(known, value)
    if (wrong) throw new errors.InvalidInput(`"${place}${wrong.path === '' ? '' : `.${wrong.path}`}": ${wrong.message}`)
    next[key] = value
  }
  return next
}

/** An own member that is an object, or an empty object. */
const objectIn = (value: Json, key: string): Json => {
  const member = Object.hasOwn(value, key) ? value[key] : undefined
  return isObject(member) ? member : {}
}
