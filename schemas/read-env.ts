import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { nearestName } from './near-name.ts'
import { firstSchemaProblem } from './problem.ts'
import { Env, secretVariableNames } from './env.ts'
import { parseDuration } from './durations.ts'

/** Reads the environment according to its schema. @throws Error with the variable's name and its expected value */
export function readEnv (environment: Readonly<Record<string, string | undefined>>): Env {
  const given = Object.fromEntries(Object.entries<TSchema>(Env.properties).flatMap(([name, schema]) => {
    const text = environment[name]
    return text === undefined || text === '' ? [] : [[name, valueOf(schema, text)]]
  }))
  const env: unknown = Value.Default(Env, given)
  const problem = firstSchemaProblem(Env, env)
  if (!problem) return checkDrainTimeout(env as Env)
  const reason = expectedOf(Env.properties[problem.path as keyof Env]) ?? problem.message
  throw new Error(
    `The environment variable ${problem.path} cannot be ${quotedValue(environment[problem.path] ?? '')}: ${reason}.`
  )
}

/**
 * Returns an invalid value in quotes, for an error message. Up to its last `@` only the scheme is shown, since it may
 * be an address with a user and a password, also one whose scheme is missing or mistyped.
 */
export const quotedValue = (text: string): string =>
  JSON.stringify(text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1…@'))

/** Returns the accepted values of a variable, in words; undefined if its schema does not state them. */
function expectedOf ({ expected, type }: TSchema): string | undefined {
  const accepted: unknown = expected ?? (type === 'boolean' ? 'true or false (or yes, no, on, off, 1, 0)' : undefined)
  return typeof accepted === 'string' ? `expected ${accepted}` : undefined
}

/** Returns the reason why a command-line option cannot set a variable to a value, as a clause; undefined if it can. */
export function optionProblem (name: keyof Env, text: string): string | undefined {
  const schema: TSchema = Env.properties[name]
  const value = valueOf(schema, text)
  if (text === '' || Value.Check(schema, value)) return undefined
  return expectedOf(schema) ?? firstSchemaProblem(schema, value)?.message
}

/**
 * Max value of DRAIN_TIMEOUT, in ms. The process ends within 10 s; the remaining time is for ending its child
 * processes.
 */
const maxDrainTimeout = 9_000

/** Checks DRAIN_TIMEOUT. @returns the same environment @throws Error if it is longer than `maxDrainTimeout` */
function checkDrainTimeout (env: Env): Env {
  const { DRAIN_TIMEOUT: text } = env
  if (parseDuration(text) <= maxDrainTimeout) return env
  throw new Error(
    `The environment variable DRAIN_TIMEOUT cannot be ${JSON.stringify(text)}: the gateway exits within 10 s of ` +
    'SIGTERM, even if calls are still in flight. Set it to 9s or less.'
  )
}

/**
 * Converts the text of a variable to the type of its schema. Numbers must consist of digits: neither `1e3` nor `0x10`
 * is valid.
 */
function valueOf (schema: TSchema, text: string): unknown {
  if (schema.type === 'integer') return /^[0-9]+$/.test(text) ? Number(text) : text
  return schema.type === 'boolean' ? booleanTexts.get(text.toLowerCase()) ?? text : text
}

/** The accepted texts of a boolean variable. */
const booleanTexts: ReadonlyMap<string, boolean> = new Map([
  ...['true', 'yes', 'on', '1'].map((text) => [text, true] as const),
  ...['false', 'no', 'off', '0'].map((text) => [text, false] as const)
])

/**
 * Finds durations that were probably meant in seconds: numbers from 1 to 999 without a unit. They are in ms, but
 * few of these variables make sense with less than a second.
 * @returns a sentence for each variable
 */
export const durationUnitWarnings = (environment: Readonly<Record<string, string | undefined>>): string[] =>
  Object.entries<TSchema>(Env.properties).flatMap(([name, { isDuration }]) => {
    const text = environment[name] ?? ''
    if (isDuration !== true || !/^[0-9]+$/.test(text) || Number(text) === 0 || Number(text) >= 1_000) return []
    return [`${name}=${text} is ${Number(text)} ms. Write ${Number(text)}s for seconds, or ${Number(text)}ms if that ` +
      'is what you mean']
  })

/**
 * Returns the max edit distance at which the name of a variable is taken for a mistyped known name. It is smaller for
 * short names, which are similar to too many others; -1 means that the names are never taken for each other.
 */
const maxTypos = (given: string, known: string): number => {
  const length = Math.min(given.length, known.length)
  if (length < 5) return -1
  if (length < 6) return 0
  // People seldom mistype the first letter: APP_CLIENT_ID is not IDP_CLIENT_ID.
  return length < 10 || given[0] !== known[0] ? 1 : 2
}

/** Max number of warnings about mistyped names. */
const maxTypoWarnings = 10

/**
 * Finds variables that are not known, but have a name similar to that of a known variable that is not set, such as
 * READ_ONLY or JWT_SECERT.
 * @returns a sentence for each variable, without its value
 */
export function misspeltVariableWarnings (environment: Readonly<Record<string, string | undefined>>): string[] {
  const isSet = (name: string): boolean => environment[name] !== undefined && environment[name] !== ''
  const ours = new Set([...Object.keys(Env.properties), ...secretVariableNames.map((name) => `${name}_FILE`)])
  const unset = [...ours].filter((name) => !isSet(name))
  return Object.keys(environment).flatMap((name) => {
    // npm passes each of its settings to the programs that it runs as an environment variable.
    if (ours.has(name) || !isSet(name) || /^npm_/i.test(name)) return []
    const meant = nearestName(name, unset, maxTypos)
    return meant === undefined
      ? []
      : [`The environment variable ${name} is not known and has no effect: did you mean ${meant}?`]
  }).slice(0, maxTypoWarnings)
}
