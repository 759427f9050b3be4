import { isDeeperThan, isObject } from '../../protocol/json.ts'
import { errors } from '../errors/list.ts'
import { inexactNumber } from '../json-schema/numbers.ts'
import { limits } from '../limits/index.ts'

/**
 * The arguments in a query: texts, and lists of texts for repeated names.
 * @param search the query without the question mark
 * @throws InvalidInput when it is not percent-encoded UTF-8
 */
export function fromQuery (search: string): Record<string, unknown> {
  const args = new Map<string, string | string[]>()
  for (const pair of search.split('&')) {
    if (pair === '') continue
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(pair) ?? []
    const key = decoded(name)
    const known = args.get(key)
    const next = decoded(value)
    args.set(key, known === undefined ? next : [known, next].flat())
  }
  return Object.fromEntries(args)
}

function decoded (text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new errors.InvalidInput('The query must be percent-encoded UTF-8')
  }
}

/**
 * The arguments in a body; none in an empty one.
 * @throws InvalidJson; InvalidInput when it is not an object, or has a number that cannot be passed on exactly
 */
export function fromBody (text: string): Record<string, unknown> {
  const value = exactJson(text)
  if (!isObject(value)) throw new errors.InvalidInput('The body must be a JSON object with the arguments of the tool')
  return value
}

/**
 * Parses a JSON text, all of whose numbers must be exact as JavaScript numbers; an empty text is an object without members.
 * @throws InvalidJson; InvalidInput when a number is not exact
 */
export function exactJson (text: string): unknown {
  if (text.trim() === '') return {}
  if (isDeeperThan(text, limits.requestDepth)) throw new errors.InvalidJson(`: it is nested deeper than ${limits.requestDepth} levels`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new errors.InvalidJson('')
  }
  const number = inexactNumber(text)
  if (number !== undefined) {
    throw new errors.InvalidInput(
      `The number ${number.slice(0, 40)} is too large to be passed on exactly; write it as text if the tool takes that`
    )
  }
  return value
}
