import { foldName } from '../../db/invariants.ts'

/** Names of our own identities and of first segments of paths (DECISIONS §2), folded. */
const reserved = new Set([
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

/** Letters and digits of any script, with their marks, and `@ . _ - +`. What nobody can see is no letter, whatever Unicode says. */
const grammar = /^(?:(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{M}\p{Nd}@._+-])+$/u

/** One way to write a name, whichever keyboard typed it: composed and decomposed letters are the same. */
export const canonicalName = (name: string): string => name.normalize('NFC')

/** The name of a user as it is stored, of one that may be written in another way. */
export const knownName = (users: { has: (name: string) => boolean }, name: string): string => users.has(name) ? name : canonicalName(name)

/** Why a new user may not bear this name, as a sentence; undefined when it may. @param name in its canonical form */
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

/** Whether a name is that of the admin who stands for nobody in particular: what has no other owner is owned by it. */
export const isDefaultOwner = (name: string): boolean => foldName(name) === defaultOwner
export const defaultOwner = 'admin'
