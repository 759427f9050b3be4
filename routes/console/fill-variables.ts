import { errors } from '../../plugins/base/errors/index.ts'
import { managementLimits } from '../../plugins/management/index.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'

/** Matches a variable in a text of a config, and a text that consists of one variable. */
const variablePattern = /\$\{([^{}]*)\}/g
const wholeVariablePattern = /^\$\{([^{}]*)\}$/

/** The typed values by the keys of their variables. `lists`: for variables with `multiple`, one value per line. */
interface TypedValues {
  readonly texts: ReadonlyMap<string, string>
  readonly lists: ReadonlyMap<string, readonly string[]>
}

/**
 * Assigns the values of the fields to their variables.
 * @param values the texts of the fields, in the order of the variables
 */
export function assignVariableValues (
  variables: ReadonlyArray<{ readonly key: string, readonly multiple?: boolean }>, values: readonly string[]
): TypedValues {
  const texts = new Map<string, string>()
  const lists = new Map<string, readonly string[]>()
  for (const [at, { key, multiple }] of variables.entries()) {
    const typed = values[at] ?? ''
    if (typed !== '' && !texts.has(key)) texts.set(key, typed)
    if (multiple !== true || lists.has(key)) continue
    const lines = typed.split(/\r?\n/).filter((line) => line.trim() !== '')
    if (lines.length > 0) lists.set(key, lines)
  }
  return { texts, lists }
}

/** The number of characters that values may still add to the configs of one form. */
export interface CharacterBudget { left: number }

export const newCharacterBudget = (): CharacterBudget => ({ left: managementLimits.console.formSize })

/**
 * Returns a value of a config with variables replaced by their values in all its texts. Variables within these values
 * are not replaced.
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
