import type { Snapshot } from '../../../db/store.ts'
import { memoized } from '../../../protocol/memoized.ts'
import type { Guard } from '../../../schemas/guards.ts'

/** The side of a call that a guard checks. */
export type CallSide = 'arguments' | 'results'

/** Returns the enabled guards, in order. */
export const activeGuards = memoized((guards: Snapshot['guards']): readonly Guard[] =>
  [...guards.values()].filter(({ enabled }) => enabled !== false))

/**
 * Returns the guards for one side of a request.
 * @param tool the name of the tool at the server; undefined: any tool of the server, as for tasks and log messages;
 *   null: no tool, as for prompts and resources
 */
export const guardsFor = (
  guards: readonly Guard[], side: CallSide, server: string, tool: string | undefined | null
): Guard[] => guards.filter(({ on, servers, tools }) =>
  (on === side || on === 'both') &&
    (servers === undefined || servers.includes(server)) &&
    (tools === undefined || tool === undefined || (tool !== null && tools.includes(tool))))
