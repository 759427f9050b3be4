import { Type, type Static } from '@sinclair/typebox'

/** A team as it is stored. Unknown members are kept unchanged. */
export const Team = Type.Object({
  name: Type.String({ minLength: 1 }),
  description: Type.Optional(Type.String()),
  /** The usernames of the members that an admin named. */
  members: Type.Optional(Type.Array(Type.String())),
  /** Users whose OIDC login has any of these values in its groups claim are members until their next login. */
  claims: Type.Optional(Type.Array(Type.String()))
})
export type Team = Static<typeof Team>
