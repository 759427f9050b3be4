import type { Activity } from '../../../db/ports/activities.ts'
import type { Snapshot } from '../../../db/store.ts'
import { isObject } from '../../../protocol/json.ts'
import type { PolicyTest, PolicyTestResult } from '../../../schemas/policies.ts'
import { errors, invalidMemberError } from '../../base/errors/index.ts'
import type { Principal } from '../../settings/index.ts'
import { cataloguesOf, listsItem, unknownItemProblem, type ExistingObjects } from '../references.ts'
import { PrincipalFacts } from './cel.ts'
import { decideAbout, toObservedRules, explainMatch, type CallToEvaluate } from './decision.ts'
import { toPrincipalFacts, type RequestedItem } from './facts.ts'
import { Ruleset } from './ruleset.ts'

interface PolicyTestDeps {
  readonly snapshot: () => Snapshot
  readonly existing: ExistingObjects
  /** Returns a recorded call that a principal may see. @throws NoSuch, NotRecorded */
  readonly findActivity: (
    principal: Principal, id: string
  ) => Promise<Omit<Activity, 'timestamp'> & { timestamp: string }>
  /** Returns the current time, in ms since 1970. */
  readonly now: () => number
}

/**
 * Tells what the policies decide about a described or recorded call, without making it.
 * @param by the principal who runs the test
 * @throws InvalidInput; NoSuch for an unknown activity; NotRecorded
 */
export async function testPolicies (deps: PolicyTestDeps, by: Principal, input: PolicyTest): Promise<PolicyTestResult> {
  const snapshot = deps.snapshot()
  const call = input.activityId === undefined
    ? toEvaluatedCall(snapshot, input, deps.now())
    : recordedCall(snapshot, await deps.findActivity(by, input.activityId))
  const { subject } = call
  const catalogues = cataloguesOf(deps.existing.gateway, subject.server)
  const catalogue = catalogues.find((each) => listsItem(each, subject)) ?? catalogues[0]
  const unknown = unknownItemProblem(deps.existing, subject)
  const verdict = decideAbout(new Ruleset(snapshot.policies.values()), call, catalogue)
  const { decision, match } = verdict
  const observed = toObservedRules(verdict)
  return {
    decision,
    mode: 'enforce',
    policy: match === undefined ? null : { id: match.rule.policy.id, name: match.rule.policy.name },
    reason: [explainMatch(match), ...unknown === undefined ? [] : [`But ${unknown}`]].join('. '),
    ...observed.length === 0 ? {} : { observed }
  }
}

/** Returns the call that a test describes. @throws InvalidInput */
function toEvaluatedCall (snapshot: Snapshot, input: PolicyTest, now: number): CallToEvaluate {
  const { server, tool, kind = 'tool', principal, arguments: args = {}, route = `/mcp/${server}` } = input
  if (server === undefined || tool === undefined) {
    throw new errors.InvalidInput('Send the "server" and "tool" of a call, or the "activityId" of a recorded one')
  }
  return {
    subject: { server, kind, name: tool },
    principal: toPrincipalFacts(snapshot, toTestPrincipal(snapshot, principal ?? {}), undefined),
    args,
    argsText: () => JSON.stringify(args),
    route,
    now: new Date(now)
  }
}

/** Returns the principal that a test describes: a user, a key, both, or an anonymous caller. @throws InvalidInput */
function toTestPrincipal (
  snapshot: Snapshot, { username = '', keyId }: NonNullable<PolicyTest['principal']>
): Principal {
  const key = keyId === undefined ? undefined : snapshot.keys.get(keyId)
  if (keyId !== undefined && key === undefined) {
    throw invalidMemberError('body.principal.keyId', 'is not the id of a bearer key')
  }
  const name = username === '' ? key?.owner : username
  const user = name === undefined ? undefined : snapshot.users.get(name)
  if (name !== undefined && user === undefined) {
    throw invalidMemberError('body.principal.username', 'is not the name of a user')
  }
  const credential = key === undefined ? {} : { credential: { id: key.id, name: key.name } }
  if (name === undefined) {
    return key === undefined
      ? { key: 'anonymous', kind: 'anonymous', user: 'anonymous', isAdmin: false }
      : { key: key.id, kind: 'system-key', user: key.id, isAdmin: true, ...credential }
  }
  const kind = key === undefined ? 'user' : 'user-key'
  return { key: name, kind, user: name, username: name, isAdmin: user?.isAdmin === true, ...credential }
}

/** Converts a recorded call. The caller's admin rights and teams are the current ones. @throws InvalidInput */
function recordedCall (
  snapshot: Snapshot, activity: Awaited<ReturnType<PolicyTestDeps['findActivity']>>
): CallToEvaluate {
  const { server, tool, username = '', keyId, keyName, clientId = '', sourceIp, group, timestamp } = activity
  const user = snapshot.users.get(username)
  const isSystem = user === undefined && keyId !== undefined
  const principal = toPrincipalFacts(snapshot, {
    key: username,
    kind: keyId === undefined ? 'user' : isSystem ? 'system-key' : 'user-key',
    user: username,
    username,
    isAdmin: user === undefined ? isSystem : user.isAdmin === true,
    ...keyId === undefined ? {} : { credential: { id: keyId, ...keyName === undefined ? {} : { name: keyName } } }
  }, sourceIp)
  const params = parseInput(activity)
  const subject: RequestedItem = tool === 'prompts/get'
    ? { server, kind: 'prompt', name: String(params.name) }
    : tool === 'resources/read'
      ? { server, kind: 'resource', name: String(params.uri) }
      : { server, kind: 'tool', name: tool }
  const args = subject.kind === 'tool' ? params : params.arguments ?? {}
  return {
    subject,
    principal: new PrincipalFacts({ ...principal, client: clientId }),
    args,
    argsText: () => JSON.stringify(args),
    route: group === undefined ? '/mcp' : `/mcp/${group}`,
    now: new Date(timestamp)
  }
}

/** Parses the recorded input of a call. @throws InvalidInput if it was not recorded completely */
function parseInput ({ input = '{}', locked }: Pick<Activity, 'input' | 'locked'>): Record<string, unknown> {
  try {
    if (locked === true) throw new Error('it is encrypted')
    const parsed: unknown = JSON.parse(input)
    return isObject(parsed) ? parsed : {}
  } catch {
    throw new errors.InvalidInput('The arguments of this call were not recorded in full')
  }
}
