import { isObject } from '../../../protocol/json.ts'
import { largeText } from '../../../protocol/text.ts'
import { type HoldMemory, parseJson, parseLarge } from '../../base/body/index.ts'
import { errors } from '../../base/errors/index.ts'
import { inexactNumber } from '../../base/json-schema/index.ts'

/**
 * The arguments in a query. A repeated name has a list of values.
 * @param search the query without the question mark
 * @throws InvalidInput if it is not percent-encoded UTF-8
 */
export function fromQuery (search: string): Record<string, unknown> {
  const args = new Map<string, string | string[]>()
  for (const pair of search.split('&')) {
    if (pair === '') continue
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(pair) ?? []
    const key = decoded(name)
    const known = args.get(key)
    const next = decoded(value)
    if (known === undefined) args.set(key, next)
    else if (typeof known === 'string') args.set(key, [known, next])
    else known.push(next)
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
 * The arguments in a body. An empty body has none.
 * @param hold takes memory for the values of a large body
 * @throws InvalidJson; InvalidInput if it is no object, or has an inexact number; ShareError
 */
export function fromBody (text: string, hold: HoldMemory): Record<string, unknown> {
  const value = exactJson(text, hold)
  if (!isObject(value)) throw new errors.InvalidInput('The body must be a JSON object with the arguments of the tool')
  return value
}

/**
 * Parses JSON whose numbers JavaScript can represent exactly. An empty text is an empty object.
 * @param hold takes memory for the values of a large text
 * @throws InvalidJson; InvalidInput for an inexact number; ShareError
 */
export function exactJson (text: string, hold: HoldMemory): unknown {
  if (text.trim() === '') return {}
  const value = text.length > largeText ? parseLarge(text, hold) : parseJson(text)
  mustBeExact(text)
  return value
}

/** @throws InvalidInput */
function mustBeExact (text: string): void {
  const number = inexactNumber(text)
  if (number === undefined) return
  throw new errors.InvalidInput(
    `The number ${number.slice(0, 40)} is too large to be passed on exactly; write it as text if the tool takes that`
  )
}
