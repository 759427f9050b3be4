import { errors } from '../../base/errors/index.ts'

/** A rule for passwords, with the sentence for a password that breaks it. */
interface Rule { readonly holds: (password: string) => boolean, readonly sentence: string }

const lengthRule = (min: number): Rule => ({
  holds: (password) => [...password].length >= min,
  sentence: `The password must have at least ${min} characters.`
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

/** Checks a password that an admin sets against all rules. @throws WeakPassword with `errors`, a sentence for each broken rule */
export function checkGivenPassword (password: string): void {
  check([lengthRule(8), sizeRule, ...classRules], password)
}

/**
 * Checks a password that users choose for themselves against the minimal rules (SPEC, "Password policy").
 * @returns a sentence for each of the other rules that it breaks
 * @throws WeakPassword with `errors`, a sentence for each broken rule
 */
export function checkChosenPassword (password: string): string[] {
  check([lengthRule(6), sizeRule], password)
  return failing(classRules, password)
}

/** A sentence for each of all rules that a password breaks. */
export const weaknesses = (password: string): string[] => failing([lengthRule(8), sizeRule, ...classRules], password)
