import { createHash } from 'node:crypto'
import type { User } from '../../schemas/settings.ts'

/** A digest that changes with the password and with the account, so that a new user with the name of a deleted one has another. */
export const markOf = ({ username, password, createdAt }: User): string => digest([username, password, createdAt])

/** Identifies an account, and never another one of the same name: `sub` in the terms of OpenID Connect. */
export const subjectOf = ({ username, createdAt }: User): string => digest(['sub', username, createdAt])

const digest = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22)
