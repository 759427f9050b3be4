import { Type } from '@sinclair/typebox'
import { Account } from './api.ts'

/** A user as it may be shown. */
export const UserRecord = Type.Object(
  { username: Type.String(), isAdmin: Type.Boolean() },
  { examples: [{ username: 'ada', isAdmin: false }] }
)

const Username = Type.String({ description: '1 to 128 letters and digits of any script, and `@ . _ - +`' })

/** Passwords are checked by the gateway itself, which says in sentences what they lack. */
export const NewUser = Type.Object({
  username: Username,
  password: Type.String({ description: 'At least 8 characters with a letter, a digit and a special character; at most 256 bytes' }),
  isAdmin: Type.Optional(Type.Boolean({ default: false }))
}, { examples: [{ username: 'ada', password: 'Analytical-1', isAdmin: false }] })

export const UserUpdate = Type.Object({
  isAdmin: Type.Optional(Type.Boolean()),
  newPassword: Type.Optional(Type.String({ description: 'As for a new user' }))
}, { description: 'At least one of the two', examples: [{ newPassword: 'Difference-2' }] })

export const UserName = Type.Object({ username: Type.String() })

export const UserStats = Type.Object(
  { totalUsers: Type.Integer(), adminUsers: Type.Integer(), regularUsers: Type.Integer() },
  { examples: [{ totalUsers: 3, adminUsers: 1, regularUsers: 2 }] }
)

const Warnings = Type.Optional(Type.Array(Type.String(), { description: 'What would make the password stronger' }))

export const Registration = Type.Object({
  username: Username,
  password: Type.String({ description: 'At least 6 characters, at most 256 bytes' }),
  isAdmin: Type.Optional(Type.Boolean({ default: false, description: 'Only an admin may say true' }))
}, { examples: [{ username: 'ada', password: 'Analytical-1' }] })

export const Registered = Type.Object({
  success: Type.Literal(true),
  message: Type.String(),
  token: Type.String(),
  user: Account,
  warnings: Warnings
})

export const PasswordChange = Type.Object({
  currentPassword: Type.String({ minLength: 1, maxLength: 1024 }),
  newPassword: Type.String({ description: 'At least 6 characters, at most 256 bytes' })
}, { examples: [{ currentPassword: 'Analytical-1', newPassword: 'Difference-2' }] })

export const PasswordChanged = Type.Object({
  success: Type.Literal(true),
  message: Type.String(),
  token: Type.String({ description: 'Takes the place of the tokens of before, which all end' }),
  warnings: Warnings
})
