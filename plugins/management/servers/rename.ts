import type { FastifyInstance } from 'fastify'
import type { Snapshot } from '../../../db/store.ts'
import type { Principal, Settings } from '../../settings/index.ts'

interface Renaming {
  readonly name: string
  /** Undefined if the name is not changed. */
  readonly newName: string | undefined
  /** Throws an error if the change is not allowed. */
  readonly check: (snapshot: Snapshot) => unknown
}

/**
 * Changes a server, and keeps its pinned definitions if it is renamed. The definitions are copied to the new name
 * before the settings change, since replicas read the server's lists under the new name right after the change.
 * @param change changes the settings
 */
export async function renameWithDefinitions (
  definitions: Pick<FastifyInstance['definitions'], 'copy' | 'forget'>,
  settings: Settings,
  { name, newName, check }: Renaming,
  change: () => Promise<void>
): Promise<void> {
  if (newName === undefined) return await change()
  check(settings.current)
  await definitions.copy(name, newName)
  try {
    await change()
  } catch (error) {
    if (!settings.current.servers.has(newName)) await definitions.forget([newName])
    throw error
  }
}

/** Returns warnings for admins about policies whose conditions contain the former name of a renamed server. */
export function renameWarnings ({ isAdmin }: Principal, { policies }: Snapshot, former: string): string[] {
  const spellings = [JSON.stringify(former), `'${former}'`]
  const names = [...policies.values()].filter(({ when }) => isAdmin && spellings.some((each) => when.includes(each)))
    .map(({ name }) => JSON.stringify(name))
  return names.length === 0
    ? []
    : [`The conditions of these policies still contain the former name ${JSON.stringify(former)}: ${names.join(', ')}`]
}
