import { isUsableServer } from '../../../db/store.ts'
import type { Access } from './index.ts'
import type { View } from './view.ts'

/**
 * Returns the number of configured servers that a view shows. Built-in providers, whose items have no prefix, are not
 * counted.
 */
export const countVisibleServers = (access: Access, view: View): number =>
  access.visibleServers(view).filter(({ server }) => isUsableServer(server) && server.unprefixed !== true).length
