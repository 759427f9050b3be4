import { foldUsername } from '../../../db/invariants.ts'
import { prototypeMemberNames } from '../../../schemas/names.ts'
import { errors } from '../../base/errors/index.ts'

/** Reserved names, case-folded: members of `Object.prototype`, built-in identities, and first segments of paths. */
const reservedNames = new Set([
  ...prototypeMemberNames.map(foldUsername),
  'console',
  'guest',
  'system',
  'anonymous',
  'api',
  'mcp',
  'sse',
  'oauth',
  'health',
  'config',
  'public-config',
  'tools',
  'docs',
  'metrics',
  'openapi.json',
  'openapi.yaml',
  '.well-known'
])

/**
 * Matches names of letters and digits of any script, combining marks, and `@ . _ - +`. Invisible code points are
 * excluded explicitly, since Unicode classifies some of them as letters.
 */
const usernamePattern = /^(?:(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{M}\p{Nd}@._+-])+$/u

/**
 * Returns the canonical spelling of a name (NFC): keyboards differ in whether they produce composed or decomposed
 * letters.
 */
export const canonicalUsername = (name: string): string => name.normalize('NFC')

/**
 * Returns the spelling under which a user or team is stored: the given spelling if a name in `users` has it, since an
 * old file may contain names that are not canonical; otherwise the canonical spelling.
 * @param users the stored users or teams, by name
 */
export const storedUsernameOf = (users: { has: (name: string) => boolean }, name: string): string =>
  users.has(name) ? name : canonicalUsername(name)

/**
 * Returns why a new user or team may not have this name, as a clause; undefined if it may. A leading `@` is not
 * allowed, since it marks a team in `sharedWithUsers`.
 * @param name the name in its canonical spelling
 * @param noun the word for the name in the clause
 */
export function usernameProblem (name: string, noun: 'username' | 'name' = 'username'): string | undefined {
  const length = [...name].length
  if (length < 1 || length > 128) return `the ${noun} must have 1 to 128 characters`
  if (!usernamePattern.test(name) || /^\p{M}/u.test(name)) {
    return `the ${noun} may contain only letters and digits of any script and "@", ".", "_", "-", "+"`
  }
  if (name.startsWith('@')) return `the ${noun} must not begin with "@", which marks teams`
  if (name === '.' || name === '..') return `the ${noun} must contain a letter or digit`
  if (reservedNames.has(foldUsername(name))) return `the ${noun} ${JSON.stringify(name)} is reserved`
  return undefined
}

/** The username of the owner of servers and groups that name no owner. */
export const defaultOwner = 'admin'

/** Whether a name is the name of the default owner, compared case-insensitively. */
export const isDefaultOwnerName = (name: string): boolean => foldUsername(name) === defaultOwner

interface PasswordRule { readonly holds: (password: string) => boolean, readonly sentence: string }

const lengthRule = (min: number): PasswordRule => ({
  holds: (password) => [...password].length >= min,
  sentence: `The password must have at least ${min} characters.`
})
const sizeRule: PasswordRule = {
  holds: (password) => Buffer.byteLength(password) <= 256,
  sentence: 'The password must have at most 256 bytes (characters outside ASCII count as two to four).'
}
const classRules: readonly PasswordRule[] = [
  {
    holds: (password) => /[A-Za-z]/.test(password),
    sentence: 'The password must contain a letter from A to Z or a to z.'
  },
  { holds: (password) => /[0-9]/.test(password), sentence: 'The password must contain a digit from 0 to 9.' },
  {
    holds: (password) => /[\p{P}\p{S}]/u.test(password),
    sentence: 'The password must contain a special character, such as ! or -.'
  }
]

const brokenRules = (rules: readonly PasswordRule[], password: string): string[] =>
  rules.filter(({ holds }) => !holds(password)).map(({ sentence }) => sentence)

function checkRules (rules: readonly PasswordRule[], password: string): void {
  const failed = brokenRules(rules, password)
  if (failed.length > 0) throw Object.assign(new errors.WeakPassword(failed.join(' ')), { errors: failed })
}

/**
 * The rules for passwords that admins set. Passwords that users choose may break some
 * (`checkUserChosenPasswordWithWarnings`).
 */
const allRules = [lengthRule(8), sizeRule, ...classRules]

/**
 * Checks a password set by an admin against all rules.
 * @throws WeakPassword with `errors`, a sentence for each broken rule
 */
export function checkAdminSetPassword (password: string): void { checkRules(allRules, password) }

/**
 * Checks a password that a user chooses against the rules for its length. The other rules are advisory.
 * @returns a sentence for each advisory rule that the password breaks
 * @throws WeakPassword with `errors`, a sentence for each other rule that the password breaks
 */
export function checkUserChosenPasswordWithWarnings (password: string): string[] {
  checkRules([lengthRule(6), sizeRule], password)
  return brokenRules(classRules, password)
}

/** Checks a password against all rules. @returns a sentence for each rule that the password breaks */
export const passwordWeaknesses = (password: string): string[] => brokenRules(allRules, password)
