import { isDeeperThan, isObject } from '../../protocol/json.ts'
import { errors } from '../errors/list.ts'
import { inexactNumber } from '../json-schema/numbers.ts'
import { limits } from '../limits/index.ts'

/**
 * Arguments as a query has them: texts, and lists of texts where a name stands more than once.
 * @param search what stands behind the question mark
 * @throws InvalidInput where it is not percent-encoded UTF-8
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
 * Arguments as a body has them; an empty one has none.
 * @throws InvalidJson, InvalidInput where it is no object, or has a number that would not arrive as it was written
 */
export function fromBody (text: string): Record<string, unknown> {
  const value = exactJson(text)
  if (!isObject(value)) throw new errors.InvalidInput('The body must be a JSON object with the arguments of the tool')
  return value
}

/**
 * A JSON text whose numbers arrive as they are written; an empty one is an object without members.
 * @throws InvalidJson, InvalidInput where one would not
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
