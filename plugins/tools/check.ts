import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isObject } from '../../protocol/json.ts'
import { limits } from '../limits/index.ts'

/** What is wrong with arguments, one short phrase for each that does not fit; none: they fit. */
export type Check = (args: Record<string, unknown>) => string[]

/** Patterns are written by upstreams and run here: those that could take long are left to the upstream, and so are long texts. */
const longestPattern = 256
/** How many steps one pattern may take, about. */
const mostSteps = 10_000_000
/** A repetition, or a choice, inside of what is itself repeated: what makes a regular expression take exponential time. */
const nested = /\((?:[^()\\]|\\.)*[*+{|](?:[^()\\]|\\.)*\)\s*[*+{]|\([^)]*\([^)]*\)[^(]*\)\s*[*+{]/
const repetitions = /(?<!\\)[*+{]/g

function tame (pattern: string, flags: string): { test: (text: string) => boolean } {
  const expression = pattern.length > longestPattern || nested.test(pattern) ? undefined : compiled(pattern, flags) ?? compiled(pattern, '')
  // Each repetition may try every length, and a pattern that is not bound to the beginning every place.
  const tries = (pattern.match(repetitions)?.length ?? 0) + (pattern.startsWith('^') ? 0 : 1)
  const longest = mostSteps ** (1 / Math.max(tries, 1))
  return { test: (text) => expression === undefined || text.length > longest || expression.test(text) }
}

function compiled (pattern: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(pattern, flags)
  } catch {
    return undefined
  }
}

const options: Options = {
  allErrors: true,
  strict: false,
  validateFormats: false,
  validateSchema: false,
  // Upstreams' schemas may bear the same $id.
  addUsedSchema: false,
  logger: false,
  code: { regExp: Object.assign(tame, { code: 'tame' }) }
}

/** Comparing everything with everything, for somebody's list of a hundred thousand objects, is for the upstream. */
const without = <One extends Ajv> (ajv: One): One => { ajv.removeKeyword('uniqueItems'); return ajv }
let latest: Ajv2020 | undefined
let older: Ajv | undefined

/**
 * What checks arguments by a tool's input schema: JSON Schema 2020-12, or draft 7 where the schema says so. A schema that is none,
 * that refers to elsewhere, or that is very large lets everything pass: the upstream checks by it anyway.
 * @param size the characters that the schema has as text
 */
export function toCheck (schema: unknown, size: number): Check {
  if (!isObject(schema) || size > limits.checkedSchema) return () => []
  const draft = typeof schema.$schema === 'string' && /draft-0[3-7]/.test(schema.$schema)
  const ajv = draft ? older ??= without(new Ajv(options)) : latest ??= without(new Ajv2020(options))
  let validate: ValidateFunction
  try {
    const { $schema: _, ...rest } = schema
    validate = ajv.compile(rest)
    // It would keep every schema that it has ever seen.
    ajv.removeSchema(rest)
  } catch {
    return () => []
  }
  return (args) => {
    try {
      return validate(args) ? [] : [...new Set((validate.errors ?? []).map(sentence))]
    } catch {
      // A few combinations of keywords, and schemas that refer to nothing but themselves, are too much for the validator.
      return []
    }
  }
}

/** What of a finding a caller can act upon: which argument, and what it must be. */
function sentence ({ instancePath, keyword, params, message = 'does not fit' }: ErrorObject): string {
  const path = instancePath.split('/').slice(1).map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
  const { missingProperty, additionalProperty, unevaluatedProperty, allowedValues, allowedValue } = params as Record<string, unknown>
  const name = missingProperty ?? additionalProperty ?? unevaluatedProperty
  const where = [...path, ...(typeof name === 'string' ? [name] : [])].join('.')
  const what = missingProperty !== undefined
    ? 'is required'
    : name !== undefined
      ? 'is not known'
      : Array.isArray(allowedValues) ? `must be one of ${allowedValues.map((value) => JSON.stringify(value)).join(', ')}` : keyword === 'const' ? `must be ${JSON.stringify(allowedValue)}` : message
  return where === '' ? `together they ${what}` : `${where} ${what}`
}
