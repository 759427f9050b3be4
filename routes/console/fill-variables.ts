import { errors } from '../../plugins/base/errors/index.ts'
import { managementLimits } from '../../plugins/management/index.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'

/** Patterns for variables such as `${key}`: to find them in a text, and to match a text that is a single variable. */
const variablePattern = /\$\{([^{}]*)\}/g
const wholeVariablePattern = /^\$\{([^{}]*)\}$/

/**
 * The values that the user typed, by the keys of their variables. `lists`: the lines of variables with `multiple`, as
 * elements; within a text, they are separated by commas, as the defaults of a bundle's options.
 */
interface TypedValues {
  readonly texts: ReadonlyMap<string, string>
  readonly lists: ReadonlyMap<string, readonly string[]>
}

/**
 * Returns the typed values by the keys of their variables. Empty values are left out. If two variables have the same
 * key, the first value applies.
 * @param values the texts of the form fields, in the order of the variables
 */
export function typedValuesOf (
  variables: ReadonlyArray<{ readonly key: string, readonly multiple?: boolean }>, values: readonly string[]
): TypedValues {
  const texts = new Map<string, string>()
  const lists = new Map<string, readonly string[]>()
  for (const [at, { key, multiple }] of variables.entries()) {
    const typed = values[at] ?? ''
    const lines = typed.split(/\r?\n/).filter((line) => line.trim() !== '')
    const text = multiple === true ? lines.join() : typed
    if (text === '' || texts.has(key)) continue
    texts.set(key, text)
    if (multiple === true) lists.set(key, lines)
  }
  return { texts, lists }
}

/** The number of characters (`left`) that typed values may still add to the configs of one form. */
export interface CharacterBudget { left: number }

/** Creates the budget for one form: its max size. */
export const newCharacterBudget = (): CharacterBudget => ({ left: managementLimits.console.formSize })

/**
 * Returns a copy of a config, or of a value in it, in which variables are replaced by the typed values. A list element
 * that is a variable with `multiple` is replaced by several elements. Variables in typed values are not replaced.
 * @throws InvalidInput if the budget is exceeded
 */
export function fillVariables (value: unknown, typed: TypedValues, budget: CharacterBudget): unknown {
  const take = (text: string): string => {
    budget.left -= text.length + 1
    if (budget.left < 0) throw new errors.InvalidInput('Too large with its values: use a variable less often')
    return text
  }
  const fill = (each: unknown): unknown => fillVariables(each, typed, budget)
  if (typeof value === 'string') {
    return value.replace(variablePattern, (whole, key: string) => {
      const text = typed.texts.get(key)
      return text === undefined ? whole : take(text)
    })
  }
  if (Array.isArray(value)) {
    return value.flatMap((each: unknown) => {
      const key = typeof each === 'string' ? wholeVariablePattern.exec(each)?.[1] : undefined
      return (key === undefined ? undefined : typed.lists.get(key)?.map(take)) ?? [fill(each)]
    })
  }
  if (!isPlainObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fill(each)]))
}
