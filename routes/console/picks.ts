import { type Form, filterByText, textOf } from './page.ts'

/** The part of a long list of choices that a form shows. */
interface Pick {
  readonly names: readonly string[]
  /** The selected items that are not shown; hidden fields keep them. */
  readonly kept: readonly string[]
  /** The number of matching names that are not shown. */
  readonly rest: number
}

/** Max number of choices that a form shows. */
export const maxShown = 50

/** Returns the choices that match a search, selected ones first. */
export function pickOf (all: readonly string[], chosen: ReadonlySet<string>, words: string): Pick {
  const matching = filterByText(all, words, (name) => [name])
  const ordered = [...matching.filter((name) => chosen.has(name)), ...matching.filter((name) => !chosen.has(name))]
  const names = ordered.slice(0, maxShown)
  const shown = new Set(names)
  return {
    names,
    kept: all.filter((name) => chosen.has(name) && !shown.has(name)),
    rest: ordered.length - names.length
  }
}

/**
 * Whether a form is submitted to see other choices, not to be saved: by its buttons, or by Enter in the search field.
 */
export const isPicking = (form: Form): boolean =>
  /^(?:find$|open:)/.test(textOf(form.do)) || textOf(form.find) !== textOf(form.found)
