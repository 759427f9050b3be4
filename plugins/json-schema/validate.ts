import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isObject } from '../../protocol/json.ts'
import { shapeOf } from './input-shape.ts'
import { limits } from '../limits/index.ts'

/** What is wrong with arguments, one short phrase for each that does not fit; none: they fit. */
export type Validator = (args: Record<string, unknown>) => string[]

/** Runs work for so many ms; undefined: it would take longer. */
export type RunWithTimeout = <Result>(longest: number, work: () => Result) => Result | undefined

/** What a schema costs is told by running it. In ms. */
const longestCompile = 250
const longestCheck = 50

interface Pattern { test: (text: string) => boolean, toString: () => string }

/** A pattern that is none under the flag that JSON Schema asks for may be one without it. What is none at all fits. */
function toPattern (pattern: string, flags: string): Pattern {
  const expression = compiled(pattern, flags) ?? compiled(pattern, '')
  // The validator takes two that are the same text for one.
  return { test: (text) => expression?.test(text) ?? true, toString: () => `/${pattern}/${flags}` }
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
  // A copy of what is referred to, in every place: seconds for a schema of a few kilobytes.
  inlineRefs: false,
  validateSchema: false,
  // Upstreams' schemas may bear the same $id.
  addUsedSchema: false,
  logger: false,
  code: { regExp: Object.assign(toPattern, { code: 'toPattern' }) }
}

const anything: Validator = () => []
let validators: { readonly latest: Ajv2020, readonly older: Ajv } | undefined

/** Of a schema that cannot be used as a whole, so many arguments are checked one by one. */
const mostParts = 100

/**
 * What checks arguments by a tool's input schema: JSON Schema 2020-12, or draft 7 where the schema says so, or is only that. Of a
 * schema that is neither, or refers to elsewhere, what can be used is used; one that is very large lets everything pass: the
 * upstream checks by it anyway. So does one that takes long.
 * @param size the characters that the schema has as text
 * @param within runs what may take long, or not
 */
export function createValidator (schema: unknown, size: number, within: RunWithTimeout): Validator {
  if (!isObject(schema) || size > limits.checkedSchema) return anything
  let check: Validator | undefined
  return (args) => {
    check ??= compileWithin(schema, within)
    return within(longestCheck, () => check?.(args)) ?? []
  }
}

function compileWithin (schema: Record<string, unknown>, within: RunWithTimeout): Validator | undefined {
  validators ??= { latest: new Ajv2020(options), older: new Ajv(options) }
  const check = within(longestCompile, () => compile(schema) ?? byParts(schema))
  // Nobody knows in what state it was stopped.
  if (!check) validators = undefined
  return check
}

function compile (schema: Record<string, unknown>): Validator | undefined {
  const { $schema, ...rest } = schema
  if (!validators) return undefined
  const { latest, older } = validators
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
function byParts (schema: Record<string, unknown>): Validator {
  const { $schema, $defs, definitions, patternProperties, additionalProperties } = schema
  const { properties, required } = shapeOf(schema)
  const isClosed = additionalProperties === false && patternProperties === undefined
  const known = isObject(schema.properties) ? schema.properties : {}
  const parts = [...properties]
    .slice(0, mostParts)
    .flatMap(([name, property]) => compile({ $schema, $defs, definitions, properties: { [name]: property } }) ?? [])
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
  const what =
    missingProperty !== undefined
      ? 'is required'
      : name !== undefined
        ? 'is not known'
        : Array.isArray(allowedValues)
          ? `must be one of ${allowedValues.map((value) => JSON.stringify(value)).join(', ')}`
          : keyword === 'const'
            ? `must be ${JSON.stringify(allowedValue)}`
            : message
  return where === '' ? `together they ${what}` : `${where} ${what}`
}
