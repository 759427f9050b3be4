import fp from 'fastify-plugin'
import type { Approvals } from '../../../db/ports/approvals.ts'
import type { Policy, PolicyTest, PolicyTestResult } from '../../../schemas/policies.ts'
import { invalidMemberError } from '../../base/errors/index.ts'
import { OrderedEntityEntries, type Principal } from '../../settings/index.ts'
import { CallApprovals } from './approvals.ts'
import { compileCondition, InvalidCondition } from './cel.ts'
import { PolicyEnforcer } from './enforcer.ts'
import { variablePreventingHide } from './rule.ts'

declare module 'fastify' {
  interface FastifyInstance { policies: Policies }
}

interface PolicyOptions { store: Approvals }

/** Management of policies and approvals. */
export interface Policies {
  readonly entries: OrderedEntityEntries<'policies'>
  readonly approvals: CallApprovals
  /** Tells what the policies decide about a call, without making it. @throws InvalidInput, NoSuch, NotRecorded */
  readonly test: (by: Principal, input: PolicyTest) => Promise<PolicyTestResult>
}

/** `app.policies`: rules that allow, deny or hide items, or require approval of a call. */
export default fp<PolicyOptions>(async (app, { store }) => {
  const now = (): number => Date.now()
  const approvals = new CallApprovals({
    store,
    snapshot: () => app.settings.current,
    isServer: (name) => app.access.snapshot.servers.has(name),
    notify: (approval) => { app.notifications.send('approval', approval) },
    now
  })
  const enforcer = new PolicyEnforcer({
    snapshot: () => app.access.snapshot,
    catalogueOf: (provider, client) => app.gateway.catalogueFor(provider, client),
    approvals,
    now
  })
  app.gateway.addHook('onView', (view, address) => enforcer.filterOf(view, address))
  app.gateway.addHook('onCall', (call) => enforcer.onCall(call))
  app.gateway.addHook('onSubscribe', (exchange, provider, uri) => enforcer.onSubscribe(exchange, provider, uri))
  app.gateway.addHook('onDone', (call) => { enforcer.onDone(call) })
  app.settings.on('changed', (next, former) => {
    if (next.policies !== former.policies) app.gateway.announceChanges()
  })
  app.decorate('policies', {
    entries: new OrderedEntityEntries(app.settings, 'policies', {
      noun: 'policy',
      check: checkPolicy,
      show: (policy) => ({ ...policy, mode: policy.mode ?? 'enforce' }),
      warn: async (policy) => (await import('../references.ts')).policyReferenceWarnings(policy, app)
    }),
    approvals,
    test: async (by, input) => await (await import('./policy-test.ts')).testPolicies({
      snapshot: () => app.settings.current,
      existing: app,
      findActivity: async (principal, id) => await app.activities.find(principal, id),
      now
    }, by, input)
  })
}, { name: 'policies', dependencies: ['settings', 'access', 'gateway', 'notifications'] })

/** Checks a policy beyond its schema. @throws InvalidInput */
function checkPolicy (policy: Policy): Policy {
  const { approvers, then: decision } = policy
  if (approvers !== undefined && decision !== 'ask') {
    throw invalidMemberError(
      'body.approvers', `only a policy with the decision "ask" has approvers, and this one has ${decision}`
    )
  }
  try {
    const condition = compileCondition(policy.when)
    const unsuitable = decision === 'hide' ? variablePreventingHide(condition) : undefined
    if (unsuitable !== undefined) {
      throw new InvalidCondition(
        `a policy with the decision "hide" may use principal, tool and route only, not ${unsuitable}`,
        policy.when.indexOf(unsuitable)
      )
    }
  } catch (error) {
    if (!(error instanceof InvalidCondition)) throw error
    throw invalidMemberError('body.when', `is not valid at character ${error.position + 1}: ${error.message}`)
  }
  return policy
}
