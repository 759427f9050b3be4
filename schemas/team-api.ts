import { Type } from '@sinclair/typebox'
import { ClosedObject } from './closed.ts'
import { ReadOnlyMember } from './answers.ts'

const Claims = Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
  maxItems: 1_000,
  description: 'Groups of an OpenID provider: users who log in with one of them are members until their next login. ' +
    'See SOCIAL_AUTH_OIDC_GROUPS_CLAIM'
}))
const description = Type.Optional(Type.String({ maxLength: 4096 }))

export const TeamRecord = Type.Object({
  name: Type.String(),
  description: Type.Optional(Type.String()),
  members: Type.Array(Type.String(), { description: 'The members added by admins, and those from logins' }),
  claims: Type.Optional(Type.Array(Type.String(), { description: 'For admins only' }))
}, {
  examples: [
    { name: 'web', description: 'The web team', members: ['ada', 'grace@example.com'], claims: ['engineering/web'] }
  ]
})

const changeable = {
  description,
  members: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
    maxItems: 10_000, description: 'Usernames. They replace the members added before; members from logins stay'
  })),
  claims: Claims
}
export const NewTeam = ClosedObject(Type.Object({
  name: Type.String({
    description: '1 to 128 letters and digits of any script, and `@ . _ - +`; the first character is not `@`'
  }),
  ...changeable
}, { examples: [{ name: 'web', description: 'The web team', members: ['ada'], claims: ['engineering/web'] }] }))
export const TeamUpdate = ClosedObject(Type.Object({ name: Type.Optional(ReadOnlyMember), ...changeable }, {
  examples: [{ members: ['ada', 'grace@example.com'] }]
}))
export const TeamParams = Type.Object({ name: Type.String() })
