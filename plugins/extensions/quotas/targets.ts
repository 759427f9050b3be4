import type { Quota } from '../../../schemas/quotas.ts'
import { quotaKeyPrefix, type Snapshot } from '../../../db/store.ts'
import type { GatewayCall } from '../../gateway/index.ts'
import { toBearerKeyIdentity, teamsOf } from '../../settings/index.ts'
import { callerNameOf } from '../activities/describe.ts'

const minuteInMs = 60_000
/** Returns the period of a quota, in ms. */
export const quotaPeriodInMs = ({ per }: Quota): number => per === 'minute' ? minuteInMs : 24 * 60 * minuteInMs

/** Returns the tool that a request calls, or to whose task it refers; undefined for prompts and resources. */
export const toolOf = ({ exchange: { method }, item }: Pick<GatewayCall, 'exchange' | 'item'>): string | undefined =>
  method === 'prompts/get' || method === 'resources/read' ? undefined : item

/**
 * The values of a call with which the target of a quota is compared, by member of the target. `team` has a value for
 * each team of the caller; a member for which the call has no value is empty. `createdAt`: when the user's account was
 * created, so that a later account of the same name has counters of its own; undefined if unknown.
 */
type Subjects = Readonly<Record<keyof Quota['target'], readonly string[]>> & { readonly createdAt: string | undefined }

/** Returns the user, teams, key, server and tool of a call, for comparison with the targets of quotas. */
export function quotaSubjectsOf (
  call: GatewayCall, snapshot: Pick<Snapshot, 'teams' | 'users'>
): Subjects {
  const { exchange: { view: { principal } }, provider } = call
  const tool = toolOf(call)
  const user = callerNameOf(principal)
  const { keyId } = toBearerKeyIdentity(principal)
  return {
    // All callers without a user count as one user, ''.
    user: [user ?? ''],
    team: teamsOf(snapshot, principal),
    key: keyId === undefined ? [] : [keyId],
    server: [provider],
    tool: tool === undefined ? [] : [tool],
    createdAt: snapshot.users.get(user ?? '')?.createdAt
  }
}

/** Returns the keys of the counters of a quota that count a call; empty if the quota does not apply to the call. */
export function counterKeys ({ id, target, per }: Quota, subjects: Subjects): string[] {
  let chosen: string[][] = [[]]
  for (const [name, pattern] of Object.entries(target) as Array<[keyof Quota['target'], string]>) {
    const fitting = pattern === '*' ? subjects[name] : subjects[name].filter((each) => each === pattern)
    chosen = chosen.flatMap((former) => fitting.map((each) => [...former, each]))
  }
  const account = target.user === undefined || subjects.createdAt === undefined ? [] : [subjects.createdAt]
  return chosen.map((each) => quotaKeyPrefix + JSON.stringify([id, per, ...each, ...account]))
}
