import type { Call } from '../call.ts'
import { isObject, memberOf } from '../json.ts'
import { resultTypes } from './envelope.ts'

/** Matches the text of every result with a type that the core protocol does not define, and of some others. */
export const otherResultTypePattern = /"resultType"\s*:\s*(?!"complete"|"input_required")/
const knownTypeTexts: ReadonlySet<string | undefined> =
  new Set([undefined, ...Object.values(resultTypes).map((type) => JSON.stringify(type))])

/**
 * Returns the result type if it is invalid for the client ("ResultType"): extensions may add types. Tasks is declared
 * by the gateway with some calls; other extensions are declared by the client.
 * @param hasTasks whether Tasks was declared with the call
 * @returns the type as JSON text, truncated; undefined if the result is valid
 */
export function unknownType ({ client, exchange }: Call, resultText: string, hasTasks: boolean): string | undefined {
  const type = memberOf(resultText, 'resultType')
  if (knownTypeTexts.has(type) || (hasTasks && type === '"task"')) return undefined
  const { extensions } = client.capabilities
  const isOffered = exchange?.canSuspend === true && isObject(extensions) && Object.keys(extensions).length > 0
  return isOffered && type?.startsWith('"') === true && type !== '"task"' ? undefined : type?.slice(0, maxTypeLength)
}

/** Max characters of a result type in an error message. */
const maxTypeLength = 100
