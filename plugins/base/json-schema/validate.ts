import { Ajv, type ErrorObject, type FuncKeywordDefinition, type Options, str, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isObject } from '../../../protocol/json.ts'
import { inputShapeOf } from './input-shape.ts'
import { parsePointer, resolvePointer } from './json-pointer.ts'
import { isInexactNumber } from './numbers.ts'

/** Validates arguments. @returns a phrase for each error, up to a limit; an empty array if the arguments are valid */
export type Validator = (args: Record<string, unknown>) => string[]

/** Max number of errors to report: a large array may have an error in each element. */
const maxErrors = 100

interface Pattern { test: (text: string) => boolean, toString: () => string }

/**
 * Compiles a `pattern`, with JSON Schema's `u` flag or, if that fails, without it. An invalid pattern matches any text.
 */
function toPattern (pattern: string, flags: string): Pattern {
  const expression = toRegExp(pattern, flags) ?? toRegExp(pattern, '')
  // Ajv caches patterns by the result of `toString`.
  return { test: (text) => expression?.test(text) ?? true, toString: () => `/${pattern}/${flags}` }
}

function toRegExp (pattern: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(pattern, flags)
  } catch {
    return undefined
  }
}

const options: Options = {
  strict: false,
  // An argument may have the name of a property that every object inherits (`constructor`).
  ownProperties: true,
  validateFormats: false,
  // Inlining copies a referenced schema to each place of use, so a schema of a few kilobytes could take seconds.
  inlineRefs: false,
  validateSchema: false,
  // Schemas of different upstreams may have the same $id.
  addUsedSchema: false,
  logger: false,
  code: { regExp: Object.assign(toPattern, { code: 'toPattern' }) }
}

interface AjvInstances { readonly draft2020: Ajv2020, readonly draft7: Ajv }

/**
 * `multipleOf`, but unlike Ajv's own, it allows for the rounding of decimal fractions: 19.99 / 0.01 is
 * 1998.9999999999998. Operands and quotient are rounded, so the quotient is off by less than twice the precision.
 */
const multipleOf: FuncKeywordDefinition = {
  keyword: 'multipleOf',
  type: 'number',
  schemaType: 'number',
  validate: (factor: number, value: number) => {
    const quotient = value / factor
    return Math.abs(quotient - Math.round(quotient)) <= 2 * Number.EPSILON * Math.abs(quotient)
  },
  error: { message: ({ schemaCode }) => str`must be multiple of ${schemaCode}` }
}

const newInstances = (allErrors: boolean): AjvInstances => {
  const draft2020 = new Ajv2020({ ...options, allErrors })
  // Up to draft 7, the keywords beside `$ref` are ignored.
  const draft7 = new Ajv({ ...options, allErrors, ignoreKeywordsWithRef: true })
  for (const ajv of [draft2020, draft7]) ajv.removeKeyword('multipleOf').addKeyword(multipleOf)
  return { draft2020, draft7 }
}

const instances = { all: newInstances(true), first: newInstances(false) }

/** Max number of parameters to validate one by one if the schema cannot be compiled as a whole. */
const maxParameters = 100

/**
 * Creates a validator for a tool's input schema: JSON Schema 2020-12, or draft 7 if the schema states it or compiles
 * only as such. If a schema compiles as neither, or refers to other documents, only its usable parts apply, since the
 * upstream validates the arguments, too. Compiling and validating may take unlimited time.
 * @param errors `first` stops at the first error, for large arguments: a list may have an error in each element
 */
export function createValidator (schema: unknown, errors: 'all' | 'first'): Validator {
  if (!isObject(schema)) return () => []
  const ajv = instances[errors]
  return compile(schema, ajv) ?? compileByParameter(schema, ajv)
}

function compile (schema: Record<string, unknown>, { draft2020, draft7 }: AjvInstances): Validator | undefined {
  const { $schema, ...rest } = schema
  const checkable = withProto(rest)
  const isOlder = typeof $schema === 'string' && /draft-0[3-7]/.test($schema)
  for (const ajv of isOlder ? [draft7, draft2020] : [draft2020, draft7]) {
    try {
      const validate: ValidateFunction = ajv.compile(checkable)
      // Otherwise, Ajv would cache compiled schemas without limit.
      ajv.removeSchema(checkable)
      return (args) => errorsOf(validate, args)
    } catch {}
  }
  return undefined
}

/** Keywords whose values are data, not schemas. */
const dataKeywords = new Set(['const', 'enum', 'default', 'examples'])

/**
 * Moves a property `__proto__`, which Ajv ignores in `properties`, to `patternProperties`, at any depth of a schema. A
 * schema without this property is returned as the same object.
 */
function withProto<Schema> (schema: Schema): Schema {
  if (typeof schema !== 'object' || schema === null) return schema
  if (Array.isArray(schema)) {
    const parts = schema.map(withProto)
    return parts.some((part, at) => part !== schema[at]) ? parts as Schema : schema
  }
  const entries =
    Object.entries(schema).map(([name, part]): [string, unknown] =>
      [name, dataKeywords.has(name) ? part : withProto(part)])
  const isSame = entries.every(([name, part]) => part === (schema as Record<string, unknown>)[name])
  const copy: Record<string, unknown> = isSame ? schema as Record<string, unknown> : Object.fromEntries(entries)
  const { properties, patternProperties } = copy
  if (!isObject(properties) || !Object.hasOwn(properties, '__proto__')) return copy as Schema
  const { __proto__: proto, ...others } = properties
  const patterns = isObject(patternProperties) ? patternProperties : {}
  return { ...copy, properties: others, patternProperties: { ...patterns, '^__proto__$': proto } } as Schema
}

function errorsOf (validate: ValidateFunction, args: Record<string, unknown>): string[] {
  try {
    return validate(args)
      ? []
      : [...new Set((validate.errors ?? []).slice(0, maxErrors).map((error) => toPhrase(error, args)))]
  } catch {
    // Validation throws for a few combinations of keywords, and for schemas that refer only to themselves.
    return []
  }
}

/**
 * Creates a validator that reports missing and unknown arguments. Of the first `maxParameters` parameters, it also
 * checks the value if the parameter's own schema compiles.
 */
function compileByParameter (schema: Record<string, unknown>, ajv: AjvInstances): Validator {
  const { $schema, $defs, definitions, patternProperties, additionalProperties } = schema
  const { properties, required } = inputShapeOf(schema)
  const isClosed = additionalProperties === false && patternProperties === undefined
  const declared = isObject(schema.properties) ? schema.properties : {}
  const validators = [...properties]
    .slice(0, maxParameters)
    .flatMap(([name, property]) =>
      compile({ $schema, $defs, definitions, properties: { [name]: property } }, ajv) ?? [])
  return (args) => {
    const missing = [...required].filter((name) => !Object.hasOwn(args, name))
    const unknown = isClosed ? Object.keys(args).filter((name) => !Object.hasOwn(declared, name)) : []
    return [
      ...missing.map((name) => `${name} is required`),
      ...unknown.map((name) => `${name} is not known`),
      ...validators.flatMap((validate) => validate(args))
    ]
  }
}

/** Converts an error to a phrase that a caller can act on: the argument, and the constraint that it violates. */
function toPhrase (error: ErrorObject, args: Record<string, unknown>): string {
  const { missingProperty, additionalProperty, unevaluatedProperty } = error.params as Record<string, unknown>
  const name = missingProperty ?? additionalProperty ?? unevaluatedProperty
  const path = parsePointer(error.instancePath)
  const value = resolvePointer(args, error.instancePath)
  if (typeof name === 'string') path.push(name)
  const argument = path.join('.')
  return `${argument === '' ? 'together they' : argument} ${constraintOf(error, value)}`
}

/** Describes the violated constraint, as a predicate. @param value the value that violates it */
function constraintOf ({ keyword, params, message = 'does not fit' }: ErrorObject, value: unknown): string {
  // Conversion leaves a text as it is if the number would lose precision.
  if (keyword === 'type' && typeof value === 'string' && wantsNumber(params.type) && isInexactNumber(value)) {
    return 'is too large to be forwarded exactly'
  }
  const { missingProperty, additionalProperty, unevaluatedProperty, allowedValues, allowedValue } =
    params as Record<string, unknown>
  if (missingProperty !== undefined) return 'is required'
  if (additionalProperty !== undefined || unevaluatedProperty !== undefined) return 'is not known'
  if (Array.isArray(allowedValues)) {
    return `must be one of ${allowedValues.map((value) => JSON.stringify(value)).join(', ')}`
  }
  return keyword === 'const' ? `must be ${JSON.stringify(allowedValue)}` : message
}

/** Whether the keyword `type` allows a number. @param type its value: a name, or an array of names */
const wantsNumber = (type: unknown): boolean => [type].flat().some((each) => each === 'integer' || each === 'number')
