import type { Snapshot } from '../../../db/store.ts'
import type { Guard } from '../../../schemas/guards.ts'

/** A side of a call that guards look at. */
export type Side = 'arguments' | 'results'

const active = new WeakMap<Snapshot['guards'], readonly Guard[]>()

/** The guards that are on, in their order. */
export function activeGuards ({ guards }: Pick<Snapshot, 'guards'>): readonly Guard[] {
  let found = active.get(guards)
  if (!found) {
    found = [...guards.values()].filter(({ enabled }) => enabled !== false)
    active.set(guards, found)
  }
  return found
}

/**
 * The guards for one side of a request.
 * @param tool by its own name; undefined: some tool of the server, such as that of a task or a log message; null: none,
 * as for prompts and resources
 */
export const guardsFor = (
  guards: readonly Guard[], side: Side, server: string, tool: string | undefined | null
): Guard[] => guards.filter(({ on, servers, tools }) =>
  (on === side || on === 'both') &&
    (servers === undefined || servers.includes(server)) &&
    (tools === undefined || tool === undefined || (tool !== null && tools.includes(tool))))
