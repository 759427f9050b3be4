import { foldName } from '../../../db/invariants.ts'
import { inheritedNames } from '../../../schemas/names.ts'

/** Reserved names, folded: names of inherited members, built-in identities and first segments of paths (DECISIONS §2). */
const reserved = new Set([
  ...inheritedNames.map(foldName),
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
  'metrics'
])

/**
 * Letters and digits of any script, with combining marks, and `@ . _ - +`. Invisible code points are excluded, some of which are letters
 * for Unicode.
 */
const grammar = /^(?:(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{M}\p{Nd}@._+-])+$/u

/** The canonical spelling of a name: keyboards differ in whether they type composed or decomposed letters. */
export const canonicalName = (name: string): string => name.normalize('NFC')

/** The stored spelling of a user's name: as given where there is such a user, as an old file may have it, else the canonical one. */
export const knownName = (users: { has: (name: string) => boolean }, name: string): string =>
  users.has(name) ? name : canonicalName(name)

/** The reason why a new user may not have this name, as a sentence; undefined when it may. @param name in its canonical spelling */
export function usernameProblem (name: string): string | undefined {
  const length = [...name].length
  if (length < 1 || length > 128) return 'the username must have 1 to 128 characters'
  if (!grammar.test(name) || /^\p{M}/u.test(name)) {
    return 'the username may have letters and digits of any script and "@", ".", "_", "-", "+"'
  }
  if (name === '.' || name === '..') return 'the username must have a letter or digit'
  if (reserved.has(foldName(name))) return `the username ${JSON.stringify(name)} is reserved`
  return undefined
}

/** The owner of servers and groups that state no other. */
export const defaultOwner = 'admin'

/** Whether a name is, in any case, that of the default owner. */
export const isDefaultOwner = (name: string): boolean => foldName(name) === defaultOwner
