import type { Quota } from '../../../schemas/quotas.ts'
import { quotaKeyPrefix, type Snapshot } from '../../../db/store.ts'
import type { GatewayCall } from '../../gateway/index.ts'
import { toBearerKeyIdentity, teamReference, teamsOf } from '../../settings/index.ts'
import { usernameOf } from '../activities/describe.ts'

const minuteInMs = 60_000
/** Returns the period of a quota, in ms. */
export const quotaPeriodOf = ({ per }: Quota): number => per === 'minute' ? minuteInMs : 24 * 60 * minuteInMs

/** Returns the tool that a request calls, or whose task it refers to; undefined for prompts and resources. */
export const toolOf = ({ exchange: { method }, item }: Pick<GatewayCall, 'exchange' | 'item'>): string | undefined =>
  method === 'prompts/get' || method === 'resources/read' ? undefined : item

/**
 * The user, team, key, server and tool of a call, by the members of a quota's target. A caller may be in several teams.
 */
type Subjects = Readonly<Record<keyof Quota['target'], readonly string[]>>

/** Returns the subjects of a call. */
export function quotaSubjectsOf (
  call: GatewayCall, snapshot: Pick<Snapshot, 'teams' | 'users'>
): Subjects {
  const { exchange: { view: { principal } }, provider } = call
  const tool = toolOf(call)
  // A team's key has no user; the team is used as its user.
  const user = usernameOf(principal) ?? (principal.team && teamReference(principal.team))
  const { keyId } = toBearerKeyIdentity(principal)
  return {
    // Callers without a user share one counter for `*`.
    user: [user ?? ''],
    team: teamsOf(snapshot, principal),
    key: keyId === undefined ? [] : [keyId],
    server: [provider],
    tool: tool === undefined ? [] : [tool]
  }
}

/** Returns the keys of a quota's counters that count a call; empty if the quota does not apply to it. */
export function counterKeys ({ id, target, per }: Quota, subjects: Subjects): string[] {
  let chosen: string[][] = [[]]
  for (const [name, pattern] of Object.entries(target) as Array<[keyof Subjects, string]>) {
    const fitting = pattern === '*' ? subjects[name] : subjects[name].filter((each) => each === pattern)
    chosen = chosen.flatMap((former) => fitting.map((each) => [...former, each]))
  }
  return chosen.map((each) => quotaKeyPrefix + JSON.stringify([id, per, ...each]))
}
