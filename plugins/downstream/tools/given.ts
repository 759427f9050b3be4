import { isObject } from '../../../protocol/json.ts'
import { largeText } from '../../../protocol/large-message.ts'
import { parseJson, parseLarge, type ValueMemory } from '../../base/body/index.ts'
import { errors } from '../../base/errors/index.ts'
import { inexactNumber } from '../../base/json-schema/index.ts'

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
 * The arguments in a body; none in an empty one.
 * @param values the memory for the values of a large one
 * @throws InvalidJson; InvalidInput when it is not an object, or has a number that cannot be passed on exactly; ShareError
 */
export async function fromBody (text: string, owner: string, values: ValueMemory): Promise<Record<string, unknown>> {
  const value = await exactJson(text, owner, values)
  if (!isObject(value)) throw new errors.InvalidInput('The body must be a JSON object with the arguments of the tool')
  return value
}

/**
 * Parses a JSON text, all of whose numbers must be exact as JavaScript numbers; an empty text is an object without members. A large text is
 * parsed in the turns of its owner.
 * @param values the memory for its values
 * @throws InvalidJson; InvalidInput when a number is not exact; ShareError
 */
export async function exactJson (text: string, owner: string, values: ValueMemory): Promise<unknown> {
  if (text.length > largeText) return await parseLarge(text, owner, values, { check: mustBeExact })
  if (text.trim() === '') return {}
  const value = parseJson(text)
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
