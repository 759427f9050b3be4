import { Type } from '@sinclair/typebox'
import { ClosedObject } from './closed.ts'
import { StringEnum } from './string-enum.ts'
import { ReadOnlyMember } from './answers.ts'

export const KeyRecord = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    token: Type.String({ description: 'Masked, except in the response that creates the key' }),
    kind: StringEnum(['system', 'user']),
    owner: Type.Optional(Type.String()),
    createdBy: Type.Optional(Type.String({
      description:
        'The user who created it, or who last gave it more rights. A system key is valid while this user and its ' +
        'owner are admins'
    })),
    inactive: Type.Optional(Type.String({
      description: 'The reason why the key is not valid now; absent if it is valid'
    })),
    accessType: StringEnum(['all', 'groups', 'servers', 'custom']),
    allowedGroups: Type.Array(Type.String()),
    allowedServers: Type.Array(Type.String()),
    enabled: Type.Boolean(),
    expiresAt: Type.Optional(Type.String({ description: 'The time from which the key is treated as disabled' })),
    createdAt: Type.Optional(Type.String()),
    lastUsedAt: Type.Optional(Type.String())
  },
  {
    examples: [
      {
        id: '5d0f3c1a-8f5e-4c55-9a53-6f3f0f6f8d21',
        name: 'laptop',
        token: 'thk_3f9a...c01d',
        kind: 'system',
        accessType: 'groups',
        allowedGroups: ['daily'],
        allowedServers: [],
        enabled: true,
        createdAt: '2026-11-20T09:00:00.000Z'
      }
    ]
  }
)
export const NewKey = ClosedObject(Type.Object({
  name: Type.String({ minLength: 1, maxLength: 128 }),
  kind: Type.Optional(StringEnum(['system', 'user'], {
    description: 'A `user` key gives MCP access to what its owner sees. Default: `user`, unless an access type or a ' +
      'list is given'
  })),
  owner: Type.Optional(Type.String()),
  accessType: Type.Optional(StringEnum(['all', 'groups', 'servers', 'custom'], {
    description: 'What a system key gives access to. `all`: everything, including the management API; it must be ' +
      'given explicitly'
  })),
  allowedGroups: Type.Optional(Type.Array(Type.String())),
  allowedServers: Type.Optional(Type.Array(Type.String())),
  enabled: Type.Optional(Type.Boolean()),
  expiresAt: Type.Optional(Type.Union([Type.String(), Type.Null()], {
    description: 'A date and time with a time zone (ISO 8601), from which the key is treated as disabled; null: never'
  }))
},
{ examples: [{ name: 'laptop' }, { name: 'agents of the web team', accessType: 'groups', allowedGroups: ['daily'] }] }))
const unchangedOfKey = {
  id: ReadOnlyMember,
  token: ReadOnlyMember,
  createdBy: ReadOnlyMember,
  createdAt: ReadOnlyMember,
  lastUsedAt: ReadOnlyMember,
  inactive: ReadOnlyMember
}
export const KeyUpdate = ClosedObject(Type.Partial(Type.Object({ ...NewKey.properties, ...unchangedOfKey }), {
  examples: [{ enabled: false }],
  description: 'A user may change only `name` and `enabled`; the other members may contain the values from a response'
}))
export const KeyParams = Type.Object({ id: Type.String() })
