import type { Quota } from '../../../schemas/quotas.ts'
import { quotaKeyBeginning, type Snapshot } from '../../../db/store.ts'
import type { GatewayCall } from '../../gateway/index.ts'
import { authorKeyOf, teamReference, teamsOf } from '../../settings/index.ts'
import { usernameOf } from '../activities/describe.ts'

const minuteInMs = 60_000
export const windowOf = ({ per }: Quota): number => per === 'minute' ? minuteInMs : 24 * 60 * minuteInMs

/** The tool that a request calls, or whose task it refers to; undefined for prompts and resources. */
export const toolOf = ({ exchange: { method }, item }: Pick<GatewayCall, 'exchange' | 'item'>): string | undefined =>
  method === 'prompts/get' || method === 'resources/read' ? undefined : item

/** Who calls what, by the members of a target. A caller may be in several teams. */
export type Subjects = Readonly<Record<keyof Quota['target'], readonly string[]>>

/** The subjects of a call. */
export function subjectsOf (
  call: GatewayCall, snapshot: Pick<Snapshot, 'teams' | 'users'>
): Subjects {
  const { exchange: { view: { principal } }, provider } = call
  const tool = toolOf(call)
  // A key of a team has no user: it counts as one of its own, the team.
  const user = usernameOf(principal) ?? (principal.team && teamReference(principal.team))
  const { keyId } = authorKeyOf(principal)
  return {
    // Callers without a user count together, for `*`.
    user: [user ?? ''],
    team: teamsOf(snapshot, principal),
    key: keyId === undefined ? [] : [keyId],
    server: [provider],
    tool: tool === undefined ? [] : [tool]
  }
}

/** The keys of the counters of a quota that a call counts for; none: the quota is not about it. */
export function counterKeys ({ id, target, per }: Quota, subjects: Subjects): string[] {
  let chosen: string[][] = [[]]
  for (const [name, wanted] of Object.entries(target) as Array<[keyof Subjects, string]>) {
    const fitting = wanted === '*' ? subjects[name] : subjects[name].filter((each) => each === wanted)
    chosen = chosen.flatMap((former) => fitting.map((each) => [...former, each]))
  }
  return chosen.map((each) => quotaKeyBeginning + JSON.stringify([id, per, ...each]))
}
