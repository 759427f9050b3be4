// The worker threads run this module for `checkArguments`.
import { convertArguments } from './arguments.ts'
import { createValidator, type Validator } from './validate.ts'
import { baseLimits } from '../limits/index.ts'

/** A tool's input schema, and arguments for it, as JSON text. */
export interface ArgumentCheckTask {
  readonly schema: string
  readonly args: string
  /** Whether the arguments are only converted: this takes little time, whatever patterns the schema contains. */
  readonly isConversionOnly?: boolean
  /** Whether the arguments are validated as they are, without conversion. */
  readonly isValidationOnly?: boolean
}
/** `args`: the converted arguments as JSON text; `problems`: up to ten of their validation errors, in words. */
export interface ArgumentCheckResult { readonly args: string, readonly problems: readonly string[] }

/** Max number of arguments whose eager conversion is tried, one argument at a time, if validation finds errors. */
const maxAlternatives = 20

/**
 * Converts arguments to the types of a schema unless the task is `isValidationOnly`, and validates them unless it is
 * `isConversionOnly`, or the schema is longer than `baseLimits.checkedSchema`. Has no time limit of its own.
 */
export function run (
  { schema: schemaText, args: text, isConversionOnly = false, isValidationOnly = false }: ArgumentCheckTask
): ArgumentCheckResult {
  const schema: unknown = JSON.parse(schemaText)
  const given = JSON.parse(text) as Record<string, unknown>
  const isLarge = text.length > baseLimits.argumentChecks.large
  let args = isValidationOnly ? given : convertArguments(schema, given)
  if (isConversionOnly || schemaText.length > baseLimits.checkedSchema) {
    return { args: JSON.stringify(args), problems: [] }
  }
  const validate = validatorOf(schemaText, schema, isLarge ? 'first' : 'all')
  let problems = validate(args)
  // A text that the schema accepts only as another string, because of a pattern or a length, may be meant as a number.
  // For large arguments, trying this would take too long.
  const others = problems.length === 0 || isLarge || isValidationOnly
    ? []
    : Object.entries(convertArguments(schema, given, true)).filter(([name, value]) => value !== args[name])
  for (const other of others.slice(0, maxAlternatives)) {
    const tried = Object.fromEntries([...Object.entries(args), other])
    const left = validate(tried)
    if (left.length < problems.length) { args = tried; problems = left }
  }
  return { args: JSON.stringify(args), problems: problems.slice(0, 10) }
}

/** Validators by the text of their schema. Those in `all` find all errors, those in `first` only the first one. */
const validators = { all: new Map<string, Validator>(), first: new Map<string, Validator>() }
const maxValidators = 100

function validatorOf (text: string, schema: unknown, errors: 'all' | 'first'): Validator {
  const known = validators[errors]
  let validator = known.get(text)
  if (!validator) {
    validator = createValidator(schema, errors)
    if (known.size >= maxValidators) known.clear()
    known.set(text, validator)
  }
  return validator
}
