import { Type } from '@sinclair/typebox'
import { ClosedObject } from './closed.ts'
import { StringEnum } from './string-enum.ts'
import { ReadOnlyMember } from './answers.ts'

export const KeyRecord = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    token: Type.String({ description: 'Masked; plain only in the answer that creates the key' }),
    kind: StringEnum(['system', 'user']),
    owner: Type.Optional(Type.String()),
    createdBy: Type.Optional(Type.String({
      description:
        'Who made it, or gave it more rights last. A system key counts while its maker and its owner are admins'
    })),
    inactive: Type.Optional(Type.String({ description: 'The reason why it does not count now; absent: it counts' })),
    accessType: StringEnum(['all', 'groups', 'servers', 'custom']),
    allowedGroups: Type.Array(Type.String()),
    allowedServers: Type.Array(Type.String()),
    enabled: Type.Boolean(),
    expiresAt: Type.Optional(Type.String({ description: 'From then on the key counts as disabled' })),
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
    description: '`user` where neither a kind, an access type nor a list is given: what its owner sees, by MCP'
  })),
  owner: Type.Optional(Type.String()),
  accessType: Type.Optional(StringEnum(['all', 'groups', 'servers', 'custom'], {
    description: 'What a system key opens. `all`: everything, the management API included; it has to be asked for by ' +
      'its name'
  })),
  allowedGroups: Type.Optional(Type.Array(Type.String())),
  allowedServers: Type.Optional(Type.Array(Type.String())),
  enabled: Type.Optional(Type.Boolean()),
  expiresAt: Type.Optional(Type.Union([Type.String(), Type.Null()], {
    description: 'A date and time with its zone (ISO 8601), from which on the key counts as disabled; null: never'
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
  description: 'A user may change `name` and `enabled` only; all else may be sent as it was answered'
}))
export const KeyId = Type.Object({ id: Type.String() })
