import type { Change, Server, Snapshot } from '../../db/store.ts'
import { problemOf } from '../../schemas/problem.ts'
import { incomplete, ServerConfig } from '../../schemas/server.ts'
import { errors } from '../errors/list.ts'
import type { Principal } from '../access/view.ts'
import { maskConfig, unmask } from '../secrets/mask.ts'
import { defaultOwner, knownName } from '../users/username.ts'
import { withDefaults } from './present.ts'
import { managed, mayRun } from './rights.ts'
import { targetOf } from './target.ts'

/** What is kept of a stored server where an update does not speak of it, beside its owner (DECISIONS §5). */
const kept = ['visibility', 'enabled', 'tools', 'prompts', 'resources'] as const

/**
 * The one way in for a server's config, whoever brings it.
 * @param usersMayRun whether users who are no admins may store servers that run commands
 * @throws InvalidInput, Forbidden, NoSuch
 */
export function toStore (
  snapshot: Snapshot,
  principal: Principal,
  name: string,
  sent: Record<string, unknown>,
  usersMayRun: boolean
): Change & { entity: 'mcpServers' } {
  const stored = snapshot.servers.get(name)
  if (stored) managed(snapshot, principal, name)
  // Whoever stores it says what it may reach, not what is sent: the mark is ours.
  const { storedByUser: _ours, ...own } = sent
  const { config, unseen } = withSecrets(own, stored)
  // Nor does an admin who sends a mask back say what stands behind it.
  const byUser = !principal.isAdmin || (unseen && stored?.config.storedByUser === true)
  const wrong = problemOf(ServerConfig, config)
  if (wrong) throw new errors.InvalidInput(`"config${wrong.path === '' ? '' : `.${wrong.path}`}": ${wrong.message}`)
  const checked = config as ServerConfig
  mayRun(principal, checked, usersMayRun)
  const lacks = incomplete(checked)
  if (lacks !== undefined) throw new errors.InvalidInput(`"config": ${lacks}`)
  return {
    entity: 'mcpServers',
    key: name,
    value: { ...withOwner(snapshot, principal, checked, stored), ...(byUser ? { storedByUser: true } : {}) }
  }
}

/** Fills in the owner, the visibility and what the update left unsaid. */
function withOwner (snapshot: Snapshot, principal: Principal, sent: ServerConfig, stored: Server | undefined): ServerConfig {
  const caller = principal.username !== undefined && snapshot.users.has(principal.username) ? principal.username : defaultOwner
  const before = withDefaults(stored?.config ?? { owner: caller })
  const unsaid = kept.flatMap((key) => sent[key] === undefined && stored?.config[key] !== undefined ? [[key, stored.config[key]]] : [])
  const { visibilityDefaulted: _, ...config }: ServerConfig = {
    ...sent,
    ...Object.fromEntries(unsaid),
    createdAt: stored ? stored.config.createdAt : new Date().toISOString()
  }
  // What is shown of an enabled server, sent back.
  if (stored && sent.enabled === true && stored.config.enabled === undefined) delete config.enabled
  const asked = sent.owner === undefined || sent.owner === before.owner ? before.owner : knownName(snapshot.users, sent.owner)
  if (!principal.isAdmin && asked !== before.owner) throw new errors.Forbidden('Only an admin may set a server\'s owner')
  // Whoever gets the name of nobody later must not inherit it.
  if (asked !== defaultOwner && asked !== before.owner && !snapshot.users.has(asked)) {
    throw new errors.InvalidInput(`"config.owner": there is no user named ${JSON.stringify(asked)}`)
  }
  config.owner = asked
  config.visibility ??= before.visibility
  // A visibility that somebody states is meant; one that came back with its mark, or was left out, is not.
  const meant = sent.visibility !== undefined && (sent.visibilityDefaulted !== true || sent.visibility !== before.visibility)
  return meant || before.visibilityDefaulted !== true ? config : { ...config, visibilityDefaulted: true }
}

/**
 * Puts the stored secrets where masks came back.
 * @returns the config, and whether there were any
 * @throws InvalidInput for masks that stand for nothing, or meant for another target
 */
function withSecrets (sent: Record<string, unknown>, stored: Server | undefined): { config: unknown, unseen: boolean } {
  const { value: config, unknown } = unmask(sent, stored?.config, stored && maskConfig(stored.config))
  if (unknown.length > 0) {
    throw new errors.InvalidInput(`"config.${unknown.join('", "config.')}": this is a mask, not a value; send the secret itself`)
  }
  const unseen = JSON.stringify(sent) !== JSON.stringify(config)
  if (stored && unseen && targetOf(config) !== targetOf(stored.config)) {
    throw new errors.InvalidInput('"config": the address or command changed, so masked secrets must be sent anew')
  }
  return { config, unseen }
}
