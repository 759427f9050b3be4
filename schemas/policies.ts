import { Type, type Static } from '@sinclair/typebox'
import { ClosedObject } from './closed.ts'
import { StringEnum } from './string-enum.ts'

const Mode = StringEnum(['enforce', 'observe'], {
  description: '`observe` only records what the policy would have decided. Default: `enforce`'
})
const Decision = StringEnum(['allow', 'deny', 'ask', 'hide'])

const members = {
  name: Type.String({ minLength: 1, maxLength: 200 }),
  enabled: Type.Optional(Type.Boolean({ description: 'Default: true' })),
  mode: Type.Optional(Mode),
  when: Type.String({
    minLength: 1,
    maxLength: 10_000,
    description: 'A condition in CEL, over `principal`, `tool`, `args`, `route` and `now`. With `hide`: over ' +
      '`principal`, `tool` and `route` only'
  }),
  then: Decision,
  approvers: Type.Optional(Type.Array(Type.String(), {
    maxItems: 100,
    description: 'With `ask`: the usernames of the approvers. If absent, the caller\'s client is asked'
  })),
  message: Type.Optional(Type.String({ maxLength: 2_000, description: 'A message for the caller' }))
}
const example = {
  name: 'Nobody deletes at night',
  mode: 'enforce',
  when: 'tool.name.startsWith("delete_") && now.getHours("Europe/Berlin") < 7',
  then: 'deny',
  message: 'Come back at seven'
}

/** A policy as it is stored. Unknown members are kept unchanged. Policies apply in the stored order. */
export const Policy = Type.Object({ id: Type.String({ minLength: 1 }), ...members }, {
  examples: [{ id: '0d3f6b0c-6a53-4b0e-9f61-3f6d8f1f2c11', enabled: true, ...example }]
})
export type Policy = Static<typeof Policy>

/** A policy as a client sends it. */
export const NewPolicy = Type.Object(members, { examples: [example] })

const PolicyReference = Type.Object({ id: Type.String(), name: Type.String() })
const ObservedPolicies = Type.Optional(Type.Array(
  Type.Object({ ...PolicyReference.properties, decision: Decision }),
  { description: 'The matching policies in the mode `observe`' }
))

/**
 * A policy that has decided about a call or, in the mode `observe`, would have decided. `observed`: the observing
 * policies, if there are others than this one.
 */
export const AppliedPolicyRecord = Type.Object(
  {
    ...PolicyReference.properties,
    mode: StringEnum(['enforce', 'observe']),
    decision: Decision,
    observed: ObservedPolicies
  },
  { description: 'The policy that decided the call or, in the mode `observe`, would have decided it' }
)

/** A call for which the decision of the policies is requested: a hypothetical or a recorded call. */
export const PolicyTest = ClosedObject(Type.Object(
  {
    principal: Type.Optional(ClosedObject(Type.Object({
      username: Type.Optional(Type.String({
        description: 'A username; absent or empty for a caller without credentials'
      })),
      keyId: Type.Optional(Type.String({ description: 'The id of the bearer key of the call' }))
    }))),
    server: Type.Optional(Type.String()),
    tool: Type.Optional(Type.String({ description: 'The tool\'s own name; for a resource its URI' })),
    kind: Type.Optional(StringEnum(['tool', 'prompt', 'resource'], { description: 'Default: `tool`' })),
    arguments: Type.Optional(Type.Object({}, { additionalProperties: true })),
    route: Type.Optional(Type.String({ description: 'A route, for example `/mcp`. Default: `/mcp/<server>`' })),
    activityId: Type.Optional(Type.String({ description: 'The id of a recorded call; replaces all other members' }))
  },
  {
    examples: [{ principal: { username: 'ada' }, server: 'issues', tool: 'delete_issue', arguments: { id: 7 } }]
  }
))
export type PolicyTest = Static<typeof PolicyTest>

export const PolicyTestResult = Type.Object(
  {
    decision: Decision,
    mode: StringEnum(['enforce', 'observe']),
    policy: Type.Union(
      [PolicyReference, Type.Null()], {
        description: 'The policy that decides the call; null if none does, so that the call is allowed'
      }
    ),
    reason: Type.String(),
    observed: ObservedPolicies
  },
  {
    examples: [{
      decision: 'deny',
      mode: 'enforce',
      policy: { id: '0d3f6b0c-6a53-4b0e-9f61-3f6d8f1f2c11', name: 'Nobody deletes at night' },
      reason: 'Its condition is true'
    }]
  }
)
export type PolicyTestResult = Static<typeof PolicyTestResult>
