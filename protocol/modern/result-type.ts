import type { Call } from '../call.ts'
import { isObject, memberOf } from '../json.ts'
import { resultTypes } from './envelope.ts'

/** Matches every result whose `resultType` the core protocol does not define, and possibly others. */
export const nonCoreResultTypePattern = /"resultType"\s*:\s*(?!"complete"|"input_required")/
const knownTypeTexts: ReadonlySet<string | undefined> =
  new Set([undefined, ...Object.values(resultTypes).map((type) => JSON.stringify(type))])

/**
 * Returns the type of a result that the client must not get (MCP 2026-07-28, "ResultType"). A type that an extension
 * defines is allowed if the client declares any extension; `task` is allowed if the gateway declared Tasks.
 * @param hasTasks whether the call declared the Tasks extension
 * @returns the type as JSON text, truncated; undefined if the client may get the result
 */
export function unsupportedResultType (
  { client, exchange }: Call, resultText: string, hasTasks: boolean
): string | undefined {
  const type = memberOf(resultText, 'resultType')
  if (knownTypeTexts.has(type) || (hasTasks && type === '"task"')) return undefined
  const { extensions } = client.capabilities
  const isOffered = exchange.canSuspend && isObject(extensions) && Object.keys(extensions).length > 0
  return isOffered && type?.startsWith('"') === true && type !== '"task"' ? undefined : type?.slice(0, maxTypeLength)
}

/** Max characters of a result type in an error message. */
const maxTypeLength = 100
