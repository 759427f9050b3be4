import { Type } from '@sinclair/typebox'
import { AccountRecord } from './login.ts'
import { ReadOnlyMember } from './answers.ts'
import { ClosedObject } from './closed.ts'
import { GroupRecord } from './group-api.ts'
import { ServerRecord } from './server-api.ts'

/** A user, without the password hash. */
export const UserRecord = Type.Object(
  { username: Type.String(), isAdmin: Type.Boolean() },
  { examples: [{ username: 'ada', isAdmin: false }] }
)

const Username = Type.String({ description: '1 to 128 letters and digits of any script, and `@ . _ - +`' })

/** A new user. Passwords are validated without the schema, with a message for each violated rule. */
export const NewUser = ClosedObject(Type.Object({
  username: Username,
  password: Type.String({
    description: 'At least 8 characters with a letter, a digit and a special character; at most 256 bytes'
  }),
  isAdmin: Type.Optional(Type.Boolean({ default: false }))
}, { examples: [{ username: 'ada', password: 'Analytical-1', isAdmin: false }] }))

export const UserUpdate = ClosedObject(Type.Object({
  username: Type.Optional(ReadOnlyMember),
  isAdmin: Type.Optional(Type.Boolean()),
  newPassword: Type.Optional(Type.String({ description: 'The rules for a new user apply' }))
}, { description: '`isAdmin`, `newPassword`, or both', examples: [{ newPassword: 'Difference-2' }] }))

/** The servers, groups and tools that a user sees. */
export const VisibleToUser = Type.Object({
  servers: Type.Array(ServerRecord),
  groups: Type.Array(GroupRecord),
  tools: Type.Array(Type.Object(
    { server: Type.String(), name: Type.String({ description: 'The tool\'s own name' }) },
    { examples: [{ server: 'issues', name: 'search' }] }
  ))
})

/** A user who may use a server. */
export const UserOfServer = Type.Object({
  username: Type.String(),
  via: Type.String({ description: '`owner`, `shared`, `@team` or `public`: the first of these that applies' }),
  lastUsedAt: Type.Optional(Type.String({
    description: 'The last recorded call of the server by this user; absent if there is none, or no database'
  }))
}, { examples: [{ username: 'ada', via: '@web', lastUsedAt: '2026-11-20T09:00:00.000Z' }] })

export const UserParams = Type.Object({ username: Type.String() })

export const UserStats = Type.Object(
  { totalUsers: Type.Integer(), adminUsers: Type.Integer(), regularUsers: Type.Integer() },
  { examples: [{ totalUsers: 3, adminUsers: 1, regularUsers: 2 }] }
)

const Warnings = Type.Optional(Type.Array(Type.String(), { description: 'Suggestions for a stronger password' }))

export const Registration = ClosedObject(Type.Object({
  username: Username,
  password: Type.String({ description: 'At least 6 characters, at most 256 bytes' }),
  isAdmin: Type.Optional(Type.Boolean({ default: false, description: 'Only admins may set it to true' }))
}, { examples: [{ username: 'ada', password: 'Analytical-1' }] }))

export const RegistrationResult = Type.Object({
  success: Type.Literal(true),
  message: Type.String(),
  token: Type.String(),
  user: AccountRecord,
  warnings: Warnings
})

export const PasswordChange = Type.Object({
  currentPassword: Type.String({ minLength: 1, maxLength: 1024 }),
  newPassword: Type.String({ description: 'At least 6 characters, at most 256 bytes' })
}, { examples: [{ currentPassword: 'Analytical-1', newPassword: 'Difference-2' }] })

export const PasswordChangeResult = Type.Object({
  success: Type.Literal(true),
  message: Type.String(),
  token: Type.String({ description: 'A new token; all earlier ones are invalid' }),
  warnings: Warnings
})
