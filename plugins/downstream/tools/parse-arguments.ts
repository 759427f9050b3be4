import { isObject } from '../../../protocol/json.ts'
import { largeTextLength } from '../../../protocol/text.ts'
import { parseJson, parseLargeJson } from '../../base/body/index.ts'
import { errors } from '../../base/errors/index.ts'
import { findInexactNumber } from '../../base/json-schema/index.ts'

/**
 * Parses the arguments in a query. A repeated name becomes a list of values.
 * @param search the query without the question mark
 * @throws InvalidInput if the query is not percent-encoded UTF-8
 */
export function parseQueryArguments (search: string): Record<string, unknown> {
  const args = new Map<string, string | string[]>()
  for (const pair of search.split('&')) {
    if (pair === '') continue
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(pair) ?? []
    const key = decodeFormText(name)
    const known = args.get(key)
    const next = decodeFormText(value)
    if (known === undefined) args.set(key, next)
    else if (typeof known === 'string') args.set(key, [known, next])
    else known.push(next)
  }
  return Object.fromEntries(args)
}

function decodeFormText (text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new errors.InvalidInput('The query must be percent-encoded UTF-8')
  }
}

/**
 * Parses the arguments in a body. An empty body contains no arguments.
 * @throws InvalidJson; InvalidInput for a body that is not an object, or contains an inexact number
 */
export function parseBodyArguments (text: string): Record<string, unknown> {
  const value = parseExactJson(text)
  if (!isObject(value)) throw new errors.InvalidInput('The body must be a JSON object with the arguments of the tool')
  return value
}

/**
 * Parses JSON, and rejects numbers that JavaScript cannot represent exactly. Returns an empty object for empty text.
 * @throws InvalidJson; InvalidInput for an inexact number
 */
export function parseExactJson (text: string): unknown {
  if (text.trim() === '') return {}
  const value = text.length > largeTextLength ? parseLargeJson(text) : parseJson(text)
  requireExactNumbers(text)
  return value
}

/** Checks that JavaScript can represent the numbers in a JSON text exactly. @throws InvalidInput */
function requireExactNumbers (text: string): void {
  const number = findInexactNumber(text)
  if (number === undefined) return
  throw new errors.InvalidInput(
    `The number ${number.slice(0, 40)} is too large to be forwarded exactly; send it as a string if the tool ` +
    'accepts one'
  )
}
