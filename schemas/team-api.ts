import { Type } from '@sinclair/typebox'
import { ClosedObject } from './closed.ts'
import { ReadOnlyMember } from './answers.ts'

const Claims = Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
  maxItems: 1_000,
  description: 'Groups of an OpenID provider: who logs in with one of them is a member until the next login. See ' +
    'SOCIAL_AUTH_OIDC_GROUPS_CLAIM'
}))
const description = Type.Optional(Type.String({ maxLength: 4096 }))

export const TeamRecord = Type.Object({
  name: Type.String(),
  description: Type.Optional(Type.String()),
  members: Type.Array(Type.String(), { description: 'Those that an admin named, and those by a login' }),
  claims: Type.Optional(Type.Array(Type.String(), { description: 'For admins only' }))
}, {
  examples: [
    { name: 'web', description: 'The web team', members: ['ada', 'grace@example.com'], claims: ['engineering/web'] }
  ]
})

const changeable = {
  description,
  members: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
    maxItems: 10_000, description: 'Usernames. They replace those that were named before; members by a login stay'
  })),
  claims: Claims
}
export const NewTeam = ClosedObject(Type.Object({
  name: Type.String({ description: '1 to 128 letters and digits of any script, and `@ . _ - +`, not `@` in front' }),
  ...changeable
}, { examples: [{ name: 'web', description: 'The web team', members: ['ada'], claims: ['engineering/web'] }] }))
export const TeamUpdate = ClosedObject(Type.Object({ name: Type.Optional(ReadOnlyMember), ...changeable }, {
  examples: [{ members: ['ada', 'grace@example.com'] }]
}))
export const TeamName = Type.Object({ name: Type.String() })
