import type { Snapshot } from '../../db/store.ts'

/** Settings without any entry. */
export const emptySnapshot: Snapshot = {
  version: 1,
  servers: new Map(),
  groups: new Map(),
  keys: new Map(),
  users: new Map(),
  prompts: new Map(),
  resources: new Map(),
  system: {},
  problems: []
}
