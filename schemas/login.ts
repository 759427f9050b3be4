import { Type } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

const Permissions = Type.Object({
  admin: Type.Boolean(),
  servers: StringEnum(['all', 'visible']),
  users: Type.Boolean(),
  system: Type.Boolean()
})

export const AccountRecord = Type.Object({
  username: Type.String(), isAdmin: Type.Boolean(), permissions: Permissions
}, {
  examples: [
    { username: 'ada', isAdmin: false, permissions: { admin: false, servers: 'visible', users: false, system: false } }
  ]
})

export const LoginCredentials = Type.Object(
  { username: Type.String({ minLength: 1, maxLength: 256 }), password: Type.String({ minLength: 1, maxLength: 1024 }) },
  { examples: [{ username: 'admin', password: 'the password of the first start' }] }
)

export const LoginResult = Type.Object({
  success: Type.Literal(true),
  message: Type.String(),
  token: Type.String(),
  user: AccountRecord,
  isUsingDefaultPassword: Type.Optional(Type.Boolean())
})
