import { Type, type Static } from '@sinclair/typebox'

/** A team as it is stored. Unknown members are kept unchanged. */
export const Team = Type.Object({
  name: Type.String({ minLength: 1 }),
  description: Type.Optional(Type.String()),
  /** The usernames of the members that an admin added. */
  members: Type.Optional(Type.Array(Type.String())),
  /** Values of the OIDC groups claim. A user who logs in with one of these is a member until the user's next login. */
  claims: Type.Optional(Type.Array(Type.String()))
})
export type Team = Static<typeof Team>
