import type { Call } from '../call.ts'
import { isObject, memberOf } from '../json.ts'
import { resultTypes } from './envelope.ts'

/** Found in every result of a type that the core protocol does not define. */
export const mayBeOfOtherType = /"resultType"\s*:\s*(?!"complete"|"input_required")/
const knownTypeTexts: ReadonlySet<string | undefined> =
  new Set([undefined, ...Object.values(resultTypes).map((type) => JSON.stringify(type))])

/**
 * The type of a result that is invalid for its client ("ResultType"): extensions may add types. "Tasks" is declared
 * with some calls, and other extensions are those of the client.
 * @param hasTasks whether "Tasks" was declared with the call
 * @returns as JSON text, cut; undefined: the result is valid
 */
export function unknownType ({ client, exchange }: Call, resultText: string, hasTasks: boolean): string | undefined {
  const type = memberOf(resultText, 'resultType')
  if (knownTypeTexts.has(type) || (hasTasks && type === '"task"')) return undefined
  const { extensions } = client.capabilities
  const isOffered = exchange?.canSuspend === true && isObject(extensions) && Object.keys(extensions).length > 0
  return isOffered && type?.startsWith('"') === true && type !== '"task"' ? undefined : type?.slice(0, maxTypeLength)
}

/** Characters of a type that an error shows. */
const maxTypeLength = 100
