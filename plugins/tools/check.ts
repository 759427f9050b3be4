import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isObject } from '../../protocol/json.ts'
import { shapeOf } from '../gateway/input-shape.ts'
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

interface Pattern { test: (text: string) => boolean, toString: () => string }

function tame (pattern: string, flags: string): Pattern {
  const expression = pattern.length > longestPattern || nested.test(pattern) ? undefined : compiled(pattern, flags) ?? compiled(pattern, '')
  // Each repetition may try every length, and a pattern that is not bound to the beginning every place.
  const tries = (pattern.match(repetitions)?.length ?? 0) + (pattern.startsWith('^') ? 0 : 1)
  const longest = mostSteps ** (1 / Math.max(tries, 1))
  // The validator takes two that are the same text for one.
  return { test: (text) => expression === undefined || text.length > longest || expression.test(text), toString: () => `/${pattern}/${flags}` }
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
  // An argument may be named as what every object inherits.
  ownProperties: true,
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

/** Of a schema that cannot be used as a whole, so many arguments are checked one by one. */
const mostParts = 100

/**
 * What checks arguments by a tool's input schema: JSON Schema 2020-12, or draft 7 where the schema says so, or is only that. Of a
 * schema that is neither, or refers to elsewhere, what can be used is used; one that is very large lets everything pass: the
 * upstream checks by it anyway.
 * @param size the characters that the schema has as text
 */
export function toCheck (schema: unknown, size: number): Check {
  if (!isObject(schema) || size > limits.checkedSchema) return () => []
  return compile(schema) ?? byParts(schema)
}

function compile (schema: Record<string, unknown>): Check | undefined {
  const { $schema, ...rest } = schema
  latest ??= without(new Ajv2020(options))
  older ??= without(new Ajv(options))
  for (const ajv of typeof $schema === 'string' && /draft-0[3-7]/.test($schema) ? [older, latest] : [latest, older]) {
    try {
      const validate: ValidateFunction = ajv.compile(rest)
      // It would keep every schema that it has ever seen.
      ajv.removeSchema(rest)
      return (args) => findings(validate, args)
    } catch {}
  }
  return undefined
}

function findings (validate: ValidateFunction, args: Record<string, unknown>): string[] {
  try {
    return validate(args) ? [] : [...new Set((validate.errors ?? []).map(sentence))]
  } catch {
    // A few combinations of keywords, and schemas that refer to nothing but themselves, are too much for the validator.
    return []
  }
}

/** Checks which arguments there are, and each by its own schema where that can be used. */
function byParts (schema: Record<string, unknown>): Check {
  const { $schema, $defs, definitions, patternProperties, additionalProperties } = schema
  const { properties, required } = shapeOf(schema)
  const isClosed = additionalProperties === false && patternProperties === undefined
  const known = isObject(schema.properties) ? schema.properties : {}
  const parts = [...properties].slice(0, mostParts).flatMap(([name, property]) => compile({ $schema, $defs, definitions, properties: { [name]: property } }) ?? [])
  return (args) => [
    ...[...required].filter((name) => !Object.hasOwn(args, name)).map((name) => `${name} is required`),
    ...(isClosed ? Object.keys(args).filter((name) => !Object.hasOwn(known, name)).map((name) => `${name} is not known`) : []),
    ...parts.flatMap((check) => check(args))
  ]
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
