import { errors } from '../errors/list.ts'

/** A rule that a password should keep, and the sentence for one that does not. */
interface Rule { readonly holds: (password: string) => boolean, readonly sentence: string }

const lengthRule = (least: number): Rule => ({
  holds: (password) => [...password].length >= least,
  sentence: `The password must have at least ${least} characters.`
})
const sizeRule: Rule = {
  holds: (password) => Buffer.byteLength(password) <= 256,
  sentence: 'The password must have at most 256 bytes (characters beyond ASCII take two to four).'
}
const classRules: readonly Rule[] = [
  { holds: (password) => /[A-Za-z]/.test(password), sentence: 'The password must have a letter from A to Z or a to z.' },
  { holds: (password) => /[0-9]/.test(password), sentence: 'The password must have a digit from 0 to 9.' },
  { holds: (password) => /[\p{P}\p{S}]/u.test(password), sentence: 'The password must have a special character, such as ! or -.' }
]

const failing = (rules: readonly Rule[], password: string): string[] =>
  rules.filter(({ holds }) => !holds(password)).map(({ sentence }) => sentence)

function check (rules: readonly Rule[], password: string): void {
  const failed = failing(rules, password)
  if (failed.length > 0) throw Object.assign(new errors.WeakPassword(failed.join(' ')), { errors: failed })
}

/** Holds a password that an admin gives to somebody to every rule. @throws WeakPassword with `errors`, a sentence for each rule that fails */
export function checkGivenPassword (password: string): void {
  check([lengthRule(8), sizeRule, ...classRules], password)
}

/**
 * Holds a password that somebody chooses to the least that is asked (SPEC, "Password policy").
 * @returns what would make it stronger, in sentences
 * @throws WeakPassword with `errors`
 */
export function checkChosenPassword (password: string): string[] {
  check([lengthRule(6), sizeRule], password)
  return failing(classRules, password)
}

/** What a password lacks of all the rules, in sentences. */
export const weaknesses = (password: string): string[] => failing([lengthRule(8), sizeRule, ...classRules], password)
