import type { FastifyInstance } from 'fastify'
import type { Settings } from '../../settings/index.ts'

/**
 * Renames a server that keeps its pinned definitions. They get the new name before the settings do, since every replica
 * reads the server's lists under its new name at once.
 * @param rename changes the settings
 */
export async function keepingDefinitions (
  definitions: Pick<FastifyInstance['definitions'], 'copy' | 'forget'>,
  settings: Settings,
  { name, newName }: { readonly name: string, readonly newName: string },
  rename: () => Promise<unknown>
): Promise<void> {
  await definitions.copy(name, newName)
  try {
    await rename()
  } catch (error) {
    if (!settings.current.servers.has(newName)) await definitions.forget([newName])
    throw error
  }
}
